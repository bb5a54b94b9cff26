"""AZR's executor with a memory: of the scores of answers, of which AZR's estimate keeps the mean
only; and of programs that have run before it is asked for them, many at once, not one by one.

AZR's reward manager hands over one program, waits for it, ten seconds for an endless loop, and
hands over the next. Here what it is going to ask for runs first, on as many processes as there are
cores; AZR's own code then asks as ever and is answered at once. Templates, processes, time limits
and how a result is read stay AZR's: `batch_apply` runs what `apply` would have run. What nobody
foresaw runs when it is asked for.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from azr_population.domains.code.task_types import CODE_E, TaskType
from azr_population.domains.code_e.named_error import same_name

_PROCESSES = 32
"""Most that are started; each is a fork of AZR's trainer."""


class PrefetchingExecutor:
    """Runs programs ahead for `executor`, AZR's; `missed` counts those that were not foreseen.

    AZR takes its programs for deterministic, and caches by answer; so the same program runs once.
    """

    def __init__(self, executor: Any, processes: int | None = None) -> None:
        self._executor = executor
        self._wide = _apart(executor)
        cores = len(os.sched_getaffinity(0))
        self._wide.max_workers = max(executor.max_workers, processes or min(_PROCESSES, cores))
        self._results: dict[str, Any] = {}
        self.missed = 0

    @staticmethod
    def works_with(executor: Any) -> bool:
        """Whether it is AZR's own; the referee in its place needs no help."""
        return hasattr(executor, "batch_apply")

    @contextmanager
    def answering(self) -> Iterator[PrefetchingExecutor]:
        """Inside, the executor is answered from what has been run."""
        self._executor.apply = self._answer
        try:
            yield self
        finally:
            del self._executor.apply
            self._wide.cleanup()

    def prefetch(self, calls: Iterable[Callable[[Any], object]]) -> None:
        """Runs what these calls ask of an executor that says yes to everything; their results are
        thrown away."""
        asked: dict[str, Any] = {}
        asking = _apart(self._executor)
        asking.apply = lambda code: asked.setdefault(code, ("True", "Done"))
        for call in calls:
            call(asking)
        if codes := [code for code in asked if code not in self._results]:
            self._results.update(zip(codes, self._wide.batch_apply(codes), strict=True))

    def _answer(self, code: str) -> Any:
        if code not in self._results:
            self.missed += 1
            return type(self._executor).apply(self._executor, code)
        return self._results[code]


def _apart(executor: Any) -> Any:
    """The executor with processes of its own: a copy that shared them would end them."""
    made = copy.copy(executor)
    made._process_pool = None
    return made


class RecordingExecutor:
    """AZR's executor, which it hands every call on to, with a memory of the scores of answers."""

    def __init__(self, executor: Any) -> None:
        self._executor = executor
        self._scores: dict[tuple[str, str, str], float | None] = {}
        self.checked = 0
        """How many programs it was asked to check."""

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._executor, name)
        return partial(self._score, method) if name.startswith("eval_") else method

    def check_all(self, *args: Any, **kwargs: Any) -> Any:
        """AZR's method."""
        self.checked += 1
        return self._executor.check_all(*args, **kwargs)

    def _score(
        self, method: Callable[..., Any], code: str, gold_output: str, *rest: Any, **named: Any
    ) -> Any:
        """AZR's `eval_[k_]<input|output>_prediction`, whose answer or answers come next."""
        scores = method(code, gold_output, *rest, **named)
        answers = rest[0] if rest else next(v for name, v in named.items() if "agent" in name)
        several = isinstance(scores, list)
        for text, score in zip(
            answers if several else [answers], scores if several else [scores], strict=True
        ):
            self._scores[code, gold_output, text] = score
        return scores

    def judge(
        self, manager: Any, kind: str, answer: Mapping[str, Any], responses: Sequence[str]
    ) -> list[tuple[str | None, bool]]:
        """(the answer that AZR's `manager` read in a response, whether it solved the task).

        The answer is None where the response has none.
        """
        judged: list[tuple[str | None, bool]] = []
        for response in responses:
            text, read = read_answer(manager, kind, response)
            if kind == TaskType.CODE_F:
                scores = [
                    self._scores.get((text, output, given)) for given, output in _hidden(answer)
                ]
                solved = read and bool(scores) and all(score == 1.0 for score in scores)
            elif kind == CODE_E:  # AZR compares names itself and asks no executor
                solved = same_name(text, answer["output"])
            else:
                solved = self._scores.get((answer["snippet"], answer["output"], text)) == 1.0
            judged.append((text if read else None, solved))
        return judged


def read_answer(manager: Any, kind: str, response: str) -> tuple[str, bool]:
    """What AZR's `manager` reads in a response, and whether there is anything."""
    from absolute_zero_reasoner.rewards.code_reward import parse_code_function
    from absolute_zero_reasoner.rewards.custom_evaluate import extract_answer

    text = extract_answer(
        response, manager.reward_fn_extraction_type, boxed_retry=manager.boxed_retry
    )
    if kind == TaskType.CODE_F:
        parsed, program = parse_code_function(text)
        return program, bool(parsed)
    is_input = kind == TaskType.CODE_I
    text = manager.extract_input_output(text, return_input=is_input, return_output=not is_input)
    return text, bool(text)


def _hidden(answer: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(input, output) pairs that a task of code_f keeps back."""
    return zip(answer["hidden_inputs"], answer["hidden_outputs"], strict=True)


def evaluations(
    kind: str, text: str, program: str, task: Mapping[str, Any]
) -> Iterator[Callable[[Any], object]]:
    """What AZR calls of an executor to judge the answer `text` to a task with this `program`;
    outputs are compared and not executed."""
    asked: list[tuple[str, str, str]] = []
    if kind == TaskType.CODE_I:
        asked = [(program, task["output"], text)]
    elif kind == TaskType.CODE_F:
        pairs = zip(task["hidden_inputs"], task["hidden_outputs"], strict=False)
        asked = [(text, output, given) for given, output in pairs]
    for code, output, given in asked:
        yield partial(_evaluate, code, output, given, list(set(task["imports"])))


def _evaluate(code: str, output: str, given: str, imports: list[str], executor: Any) -> object:
    return executor.eval_input_prediction(
        code=code, gold_output=output, agent_input=given, imports=imports
    )
