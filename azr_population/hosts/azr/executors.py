"""AZR's executor for the length of a step: it runs programs before AZR asks for them, many at once
and beside decoding, and remembers the scores of answers.

AZR's reward manager hands over one program, waits for it, ten seconds for an endless loop, and
hands over the next. Here a program runs as soon as it is written, on as many processes as there are
cores; AZR's own code then asks as always and is answered from what has run. Templates, processes,
time limits and how a result is read stay AZR's. A program that was not foreseen runs when AZR asks.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from operator import methodcaller
from typing import Any

from azr_population.domains.code.task_types import TaskType

_PROCESSES = 32
"""Most that are started; each is a fork of AZR's trainer."""
Call = Callable[[Any], object]
"""Something that AZR does with an executor."""


class StepExecutor:
    """Replaces AZR's `executor` while a step is judged.

    AZR assumes deterministic programs and caches by answer, so the same program runs once.
    `checked` counts the programs that it was asked to check, `missed` those that it ran for AZR
    because they were not foreseen.
    """

    def __init__(self, executor: Any, processes: int | None = None) -> None:
        self._executor = executor
        self._answering: Any = executor
        self._scores: dict[tuple[str, str, str], float | None] = {}
        self._runs: dict[str, Future[Any]] = {}
        self._threads: ThreadPoolExecutor | None = None
        self.checked = self.missed = 0
        # Only AZR's own: the referee's stand-in asks no `apply` when it checks a program.
        if hasattr(executor, "_get_process_pool"):
            self._answering = _with_own_pool(executor)
            self._answering.apply = self._answer
            cores = len(os.sched_getaffinity(0))
            count = max(executor.max_workers, processes or min(_PROCESSES, cores))
            self._wide = _with_own_pool(executor)
            self._wide.max_workers = count
            self._threads = ThreadPoolExecutor(count)

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._answering, name)
        return partial(self._score, method) if name.startswith("eval_") else method

    def prefetch(self, calls: Iterable[Call]) -> None:
        """Starts what these calls ask of an executor that says yes to everything; their results are
        thrown away."""
        if self._threads is None:
            return
        results: dict[str, Any] = {}
        asking = _with_own_pool(self._executor)
        asking.apply = lambda code: results.setdefault(code, ("True", "Done"))
        for call in calls:
            call(asking)
        if results and not self._runs:
            # Before there are threads: none may make a smaller one.
            self._wide._get_process_pool(self._wide.max_workers)
        for code in results:
            if code not in self._runs:
                self._runs[code] = self._threads.submit(self._run, code)

    def check_all(self, *args: Any, **kwargs: Any) -> Any:
        """Checks programs as AZR's executor does, and counts the calls."""
        self.checked += 1
        return self._answering.check_all(*args, **kwargs)

    def close(self) -> None:
        """Ends the processes."""
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)
            self._wide.cleanup()

    def _run(self, code: str) -> Any:
        return self._wide.batch_apply([code])[0]

    def _answer(self, code: str) -> Any:
        if code in self._runs:
            return self._runs[code].result()
        self.missed += 1
        return self._executor.apply(code)

    def _score(
        self, method: Callable[..., Any], code: str, gold_output: str, *values: Any, **named: Any
    ) -> Any:
        """AZR's `eval_[k_]<input|output>_prediction`, whose answer or answers come next."""
        scores = method(code, gold_output, *values, **named)
        answers = values[0] if values else next(v for name, v in named.items() if "agent" in name)
        several = isinstance(scores, list)
        for text, score in zip(
            answers if several else [answers], scores if several else [scores], strict=True
        ):
            self._scores[code, gold_output, text] = score
        return scores

    def solved(self, kind: str, text: str, task: Mapping[str, Any]) -> bool:
        """Whether the answer `text` solves the task, by the scores that AZR has asked for."""
        if kind == TaskType.CODE_F:
            pairs = zip(task["hidden_inputs"], task["hidden_outputs"], strict=True)
            scores = [self._scores.get((text, output, given)) for given, output in pairs]
            return bool(scores) and all(score == 1.0 for score in scores)
        return self._scores.get((task["snippet"], task["output"], text)) == 1.0


def _with_own_pool(executor: Any) -> Any:
    """The executor with processes of its own: a copy that shared them would end them."""
    copied = copy.copy(executor)
    copied._process_pool = None
    return copied


def read_answer(manager: Any, kind: str, response: str) -> tuple[str, bool]:
    """The answer that AZR's `manager` reads in a response, and whether there is one."""
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


def evaluations(kind: str, text: str, program: str, task: Mapping[str, Any]) -> Iterator[Call]:
    """AZR's calls of an executor that judge the answer `text` to a task with this `program`;
    outputs are compared and not executed."""
    checks: list[tuple[str, str, str]] = []
    if kind == TaskType.CODE_I:
        checks = [(program, task["output"], text)]
    elif kind == TaskType.CODE_F:
        pairs = zip(task["hidden_inputs"], task["hidden_outputs"], strict=False)
        checks = [(text, output, input) for input, output in pairs]
    for code, output, input in checks:
        named = {"gold_output": output, "agent_input": input, "imports": list(set(task["imports"]))}
        yield methodcaller("eval_input_prediction", code=code, **named)
