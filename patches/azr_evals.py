"""AZR evaluates model-written text in the trainer's process; these patches end that.

AZR a82124e. `PythonExecutor.eval_output_prediction` evaluates the predicted output; every other
method evaluates the text that its worker sends back; the reward code evaluates answers to learn
their types. So an answer such as `__import__("os").system(...)` runs as the trainer, and an object
with its own `__eq__` equals every gold output.

For runs that keep AZR's own executor. What they cannot close: its workers run programs without a
sandbox and send results back as pickles, and a hostile worker's pickle can still run code in the
trainer. Only `azr-executor`, which puts the referee in its place, closes that. Nor do they touch
the `math` metric of AZR's validation: it hands answers to sympy, whose parser evaluates them.
"""

import builtins
import functools
from collections.abc import Callable
from typing import Any

from azr_population.referee.sandbox import literal

from .mechanism import Patch, around

_MODULE = "absolute_zero_reasoner.utils.code_utils.python_executor"
_EXECUTOR = f"{_MODULE}:PythonExecutor"


def _literal_eval(unreadable: Callable[[], object] | None) -> Callable[..., Any]:
    """An `eval` for a module: one argument is read as a literal, more are left to the builtin.

    `unreadable` makes the value of a text that is no literal; None: it raises.
    """

    def eval(text: Any, *namespaces: Any) -> Any:
        if namespaces:  # AZR's worker executing a program; not in the trainer
            return builtins.eval(text, *namespaces)
        try:
            return literal.parse(text)
        except literal.NotLiteral:
            if unreadable is None:
                raise
            return unreadable()

    return eval


def _compare(gold: str, answer: str) -> float:
    try:
        return float(literal.same(literal.parse(answer), literal.parse(gold)))
    except literal.NotLiteral:
        return 0.0


@around(
    "azr-output-prediction",
    f"{_EXECUTOR}.eval_output_prediction",
    "0529bf7dd1dcc53e",
)
def _output(
    original: Any, self: Any, code: str, gold_output: str, agent_output: str, imports: Any = ()
) -> float:
    """AZR evaluates the predicted output."""
    return _compare(gold_output, agent_output)


@around(
    "azr-k-output-prediction",
    f"{_EXECUTOR}.eval_k_output_prediction",
    "90d2d7e3d4d995b7",
)
def _k_outputs(
    original: Any, self: Any, code: str, gold_output: str, k_agent_outputs: Any, imports: Any = ()
) -> list[float]:
    """AZR evaluates them in one program, and returns the scores of those that do not parse last."""
    return [_compare(gold_output, answer) for answer in k_agent_outputs]


@around(
    "azr-input-prediction",
    f"{_EXECUTOR}.eval_input_prediction",
    "9e6851812635107b",
)
def _input(
    original: Any, self: Any, code: str, gold_output: str, agent_input: str, imports: Any = ()
) -> float:
    """AZR executes the predicted input, whatever it says."""
    if not _reads_as_arguments(agent_input):
        return 0.0
    return original(self, code, gold_output, agent_input, list(imports))


@around(
    "azr-k-input-prediction",
    f"{_EXECUTOR}.eval_k_input_prediction",
    "edcf11950701c4e0",
)
def _k_inputs(
    original: Any, self: Any, code: str, gold_output: str, k_agent_inputs: Any, imports: Any = ()
) -> list[float]:
    """AZR runs all of them in one program, so one endless guess ends the training, and it cuts the
    text with the scores, so many cannot be read."""
    score = functools.partial(self.eval_input_prediction, code, gold_output, imports=imports)
    scores = {text: score(text) or 0.0 for text in dict.fromkeys(k_agent_inputs)}
    return [scores[text] for text in k_agent_inputs]


def _reads_as_arguments(text: str) -> bool:
    try:
        literal.parse_arguments(text)
    except literal.NotLiteral:
        return False
    return True


EVALS = (
    _output,
    _k_outputs,
    _input,
    _k_inputs,
    Patch(
        "azr-result-eval",
        f"{_MODULE}:eval",
        "3d5e8e041a3019c7",
        lambda original: _literal_eval(None),
        source_of=("GenericRuntime.eval_code",),
    ),
    Patch(
        "azr-type-counts-eval",
        "absolute_zero_reasoner.rewards.code_reward:eval",
        "2fa1866989f20eca",
        lambda original: _literal_eval(None),
        source_of=("get_type_counts_reward",),
    ),
    Patch(
        "azr-metric-eval",
        "absolute_zero_reasoner.rewards.custom_evaluate:eval",
        "ed660a8930dcc771",
        lambda original: _literal_eval(object),
        source_of=("get_gt_reward",),
    ),
)
"""All of them. `azr-result-eval` goes with the four of the executor before it."""

REWARD_EVALS = EVALS[-2:]
"""Those outside the executor: a run on the referee needs them too."""
