"""A stand-in for AZR's `PythonExecutor` that runs everything in the referee's sandbox.

Same constructor, same return values, and the methods that AZR calls (AZR a82124e,
`utils/code_utils/python_executor.py`), so that an AZR run can use it in place of its own. It
differs where AZR's is unsafe or wrong:

- nothing is evaluated in the caller's process; a predicted output is compared as a literal;
- predicted inputs must be literals, as the referee's rules say;
- an output that is no literal, is too large or differs between two runs makes a program invalid
  (AZR's check lets a program pass that it has just found nondeterministic: the status it raises
  holds no "error");
- outputs are never cut; `True` is not `1`; sets have one order;
- `eval_k_*` return the scores in the order of the answers.

AZR calls it once per answer. Plain programs (nearly all of AZR's seeds) are executed in a child
that is there already and knows the program from the last call; each execution of any other costs a
child. Results are remembered by (program, imports, input), since a program that passed `check_all`
is deterministic. Code that can batch should use `Referee` itself.
"""

import ast
import re
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from azr_population.domains.code.source import read_program
from azr_population.referee import Reason, Referee, RefereeSettings
from azr_population.referee.jobs import CallOutcome
from azr_population.referee.sandbox import literal, wire
from azr_population.referee.sandbox.wire import Call, SandboxWork

from .mechanism import Patch

_REMEMBERED = 20_000


class RefereeExecutor:
    """AZR's executor interface over a `Referee`, which is started at the first use.

    `runtime`, `get_answer_symbol`, `get_answer_expr`, `get_answer_from_stdout` and `ast_check` are
    accepted for the sake of AZR's calls; AZR's own `batch_apply` ignores the first four, and a
    syntax check before execution is always made.
    """

    def __init__(
        self,
        runtime: Any = None,
        get_answer_symbol: str | None = None,
        get_answer_expr: str | None = None,
        get_answer_from_stdout: bool = False,
        timeout_length: int = 10,
        ast_check: bool = False,
        max_workers: int = 1,
    ) -> None:
        # In processor time, so that a busy machine gives the same verdicts.
        seconds = float(timeout_length)
        self.settings = RefereeSettings(
            workers=max_workers, timeout=6 * seconds, cpu_seconds=seconds
        )
        self._referee: Referee | None = None
        self._remembered: OrderedDict[tuple[str, tuple[str, ...], str], CallOutcome] = OrderedDict()

    def __del__(self) -> None:
        self.cleanup()

    def cleanup(self) -> None:
        """End the workers; the next call starts new ones."""
        referee, self._referee = getattr(self, "_referee", None), None
        if referee is not None:
            referee.close()

    def run_code(self, code: str, inputs: str, imports: Sequence[str] = ()) -> tuple[str, str]:
        """`repr(f(inputs))` and `Done`, or '' and what went wrong."""
        source = _with_imports(code, imports)
        return self._scripts([(source, f"repr(f({inputs}))")])[0]

    def check_all(
        self,
        code: str,
        inputs: str,
        banned_keywords: Sequence[str] = (),
        check_determinism: bool = True,
        imports: Sequence[str] = (),
        check_error: bool = False,
        banned_keywords_for_errors_and_exceptions: Sequence[str] = (),
    ) -> tuple[bool, str | None]:
        """Whether the program is valid, and its output; (False, None) when it is banned.

        With `check_error` a program that raises is valid too, and the output is the exception's
        name, or `NoError`.
        """
        runs = (False, True) if check_determinism else (False,)
        statements = _list(banned_keywords_for_errors_and_exceptions) if check_error else ()
        if _is_banned(_with_imports(code, imports), _list(banned_keywords), statements):
            return False, None
        calls = tuple(Call(wire.LITERAL, inputs, again) for again in runs)
        work = SandboxWork(code, calls, tuple(_list(imports)))
        outcomes = self._run([work])[0]
        first, last = outcomes[0], outcomes[-1]
        if first.reason is Reason.BANNED:
            return False, None
        if check_error:
            if first.reason in (Reason.SYNTAX_ERROR, Reason.BAD_INPUT) or not _agree(first, last):
                return False, "error"
            return True, "NoError" if _ran(first) else _exception(first)
        if first.reason is not Reason.OK or not _agree(first, last):
            return False, ""
        self._remember((code, work.imports, inputs), first)  # a student's first guess
        return True, first.text

    def eval_input_prediction(
        self, code: str, gold_output: str, agent_input: str, imports: Sequence[str] = ()
    ) -> float:
        """1.0 if the program maps the predicted input to the gold output, else 0.0."""
        return self.eval_k_input_prediction(code, gold_output, [agent_input], imports)[0]

    def eval_k_input_prediction(
        self,
        code: str,
        gold_output: str,
        k_agent_inputs: Sequence[str],
        imports: Sequence[str] = (),
    ) -> list[float]:
        """Evaluates several input predictions, each in a child of its own."""
        gold = _literal(gold_output)
        if gold is _NOT_LITERAL:
            return [0.0] * len(k_agent_inputs)
        outcomes = self._outputs(code, tuple(_list(imports)), k_agent_inputs)
        return [float(_equals(outcome, gold)) for outcome in outcomes]

    def eval_output_prediction(
        self, code: str, gold_output: str, agent_output: str, imports: Sequence[str] = ()
    ) -> float:
        """1.0 if the predicted output is the literal of the gold output, else 0.0."""
        return self.eval_k_output_prediction(code, gold_output, [agent_output], imports)[0]

    def eval_k_output_prediction(
        self,
        code: str,
        gold_output: str,
        k_agent_outputs: Sequence[str],
        imports: Sequence[str] = (),
    ) -> list[float]:
        """Evaluates several output predictions; nothing is executed."""
        gold = _literal(gold_output)
        if gold is _NOT_LITERAL:
            return [0.0] * len(k_agent_outputs)
        predicted = [_literal(text) for text in k_agent_outputs]
        return [float(p is not _NOT_LITERAL and literal.same(p, gold)) for p in predicted]

    def apply(self, code: str) -> tuple[str, str]:
        """Run a script; see `batch_apply`."""
        return self.batch_apply([code])[0]

    def batch_apply(self, batch_code: Sequence[str]) -> list[tuple[str, str]]:
        """Run scripts. As in AZR, the result is the `str` of the expression in the last line, or,
        when that line prints, what was printed; and the status is `Done` or the exception."""
        scripts = []
        for code in batch_code:
            *body, last = code.strip().split("\n")
            prints = "print(" in last
            scripts.append(("\n".join([*body, last] if prints else body), "" if prints else last))
        return self._scripts(scripts)

    def _scripts(self, scripts: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
        works = [SandboxWork(source, (Call(wire.SCRIPT, last),)) for source, last in scripts]
        results = []
        for (outcome,) in self._run(works):
            ok = outcome.reason is Reason.OK
            results.append((outcome.text.strip(), "Done") if ok else ("", _status(outcome)))
        return results

    def _run(self, works: Sequence[SandboxWork]) -> list[list[CallOutcome]]:
        if self._referee is None:
            self._referee = Referee(self.settings)
        return self._referee.run(works)

    def _outputs(
        self, code: str, imports: tuple[str, ...], inputs: Sequence[str]
    ) -> list[CallOutcome]:
        """Outputs of the program by input; equal inputs are executed once."""
        keys = [(code, imports, text) for text in inputs]
        outcomes_by_key = {key: self._remembered[key] for key in keys if key in self._remembered}
        missing = [key for key in dict.fromkeys(keys) if key not in outcomes_by_key]
        if missing:
            calls = tuple(Call(wire.LITERAL, text) for _, _, text in missing)
            outcomes = self._run([SandboxWork(code, calls, imports)])[0]
            outcomes_by_key.update(zip(missing, outcomes, strict=True))
            for key, outcome in zip(missing, outcomes, strict=True):
                if outcome.reason not in (Reason.TIMEOUT, Reason.LOST):  # a busy moment's fault?
                    self._remember(key, outcome)
        return [outcomes_by_key[key] for key in keys]

    def _remember(self, key: tuple[str, tuple[str, ...], str], outcome: CallOutcome) -> None:
        self._remembered[key] = outcome
        while len(self._remembered) > _REMEMBERED:
            self._remembered.popitem(last=False)


_STATEMENTS = {
    ast.Assert: "assert",
    ast.Raise: "raise",
    ast.Try: "try",
    ast.ExceptHandler: "except",
}


def _is_banned(source: str, modules: Sequence[str], statements: Sequence[str]) -> bool:
    """Whether the source imports a module with such a component in its dotted name, or has such a
    statement. It is a matter of taste in tasks, not of safety: text can hide anything. A source
    that does not parse is searched for the modules' names."""
    tree = read_program(source)
    if tree is None:
        return any(re.search(rf"\b{re.escape(name)}\b", source) for name in modules)
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            dotted = [alias.name for alias in node.names]
            dotted.append(getattr(node, "module", None) or "")
            names.update(part for name in dotted for part in name.split("."))
        names.add("statement " + _STATEMENTS.get(type(node), ""))
    return not names.isdisjoint([*modules, *(f"statement {kind}" for kind in statements)])


_NOT_LITERAL = object()


def _literal(text: str) -> object:
    try:
        return literal.parse(text)
    except literal.NotLiteral:
        return _NOT_LITERAL


def _equals(outcome: CallOutcome, gold: object) -> bool:
    if outcome.reason is not Reason.OK:
        return False
    value = _literal(outcome.text)
    return value is not _NOT_LITERAL and literal.same(value, gold)


def _ran(outcome: CallOutcome) -> bool:
    """Whether the program returned, literal or not."""
    return outcome.reason in (Reason.OK, Reason.NOT_LITERAL, Reason.TOO_LARGE)


def _agree(first: CallOutcome, last: CallOutcome) -> bool:
    """Whether two runs came to the same; of exceptions the names, a message may hold anything."""
    if first.reason is Reason.ERROR:
        return last.reason is Reason.ERROR and _exception(first) == _exception(last)
    return first.reason is last.reason and first.text == last.text


def _exception(outcome: CallOutcome) -> str:
    return _status(outcome).split(":")[0].strip()


def _status(outcome: CallOutcome) -> str:
    """A status in AZR's manner: callers look for the word "error" in it."""
    if outcome.reason is Reason.TIMEOUT:
        return "Timeout Error"
    if outcome.reason is Reason.MEMORY:
        return "MemoryError"
    if outcome.reason in (Reason.ERROR, Reason.SYNTAX_ERROR) and outcome.text:
        has_word = "error" in outcome.text.lower()
        return outcome.text if has_word else f"Error: {outcome.text}"
    return f"Error: {outcome.reason} {outcome.text}".strip()


def _list(values: Any) -> list[str]:
    """AZR hands over lists and numpy arrays."""
    return list(values.tolist() if hasattr(values, "tolist") else values)


def _with_imports(code: str, imports: Any) -> str:
    return "\n".join([*_list(imports), code])


EXECUTOR = Patch(
    "azr-executor",
    "absolute_zero_reasoner.trainer.ppo.azr_ray_trainer:PythonExecutor",
    "3b9f8e0a8be67e7e",
    lambda original: RefereeExecutor,
)
"""AZR runs model-written programs in unconfined worker processes; the referee takes their place."""
