"""The contenders of `referee.py`: the referee, AZR's executor called in several ways, our
replacement of it, and a process for each execution.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Callable, Sequence

from azr_population.referee import Question, Referee

DEADLINE = 10

Contender = Callable[[Sequence[Question]], int]
"""Judges the tasks; returns the number of right answers."""


def with_referee(referee: Referee) -> Contender:
    """All tasks in one batch."""

    def run(tasks: Sequence[Question]) -> int:
        return sum(grade.solved for judged in referee.judge(tasks) for grade in judged.grades)

    return run


def with_executor(executor: object) -> Contender:
    """One call per validation and per answer, as AZR's reward manager makes them."""

    def run(tasks: Sequence[Question]) -> int:
        right = 0
        _forget(executor)
        for task in tasks:
            imports = list(task.imports)
            _, output = executor.check_all(task.program, task.inputs[0], imports=imports)  # type: ignore[attr-defined]
            for answer in task.answers:
                score = executor.eval_input_prediction(task.program, output, answer, imports)  # type: ignore[attr-defined]
                right += bool(score)
        return right

    return run


def with_executor_k(executor: object) -> Contender:
    """As above, but all answers to a task in one call, as with AZR's `batched_estimate`."""

    def run(tasks: Sequence[Question]) -> int:
        right = 0
        _forget(executor)
        for task in tasks:
            imports = list(task.imports)
            _, output = executor.check_all(task.program, task.inputs[0], imports=imports)  # type: ignore[attr-defined]
            with contextlib.suppress(AssertionError):  # AZR's, where one answer ends them all
                scores = executor.eval_k_input_prediction(  # type: ignore[attr-defined]
                    task.program, output, list(task.answers), imports
                )
                right += sum(map(bool, scores))
        return right

    return run


def _forget(executor: object) -> None:
    """Empties the replacement's cache, so that every round executes everything."""
    if hasattr(executor, "_remembered"):
        executor._remembered.clear()


def with_azr_batches(executor: object) -> Contender:
    """AZR's executor at its best: all snippets in one `batch_apply`, over all its workers."""
    from absolute_zero_reasoner.utils.code_utils.templates import EVAL_INPUT_PREDICTION_TEMPLATE

    def run(tasks: Sequence[Question]) -> int:
        attempts = executor.batch_apply(  # type: ignore[attr-defined]
            [
                EVAL_INPUT_PREDICTION_TEMPLATE.format(
                    code=source, gold_output=output, agent_input=answer
                )
                for source, output, task in _azr_checked(executor, tasks)
                for answer in task.answers
            ]
        )
        return sum(result == "True" for result, _ in attempts)

    return run


def with_azr_k_answers(executor: object) -> Contender:
    """As above, but a task's eight answers in one snippet, as AZR's `batched_estimate` does.

    One that hangs or exits costs its neighbours their verdicts, and all run in one namespace.
    """
    from absolute_zero_reasoner.utils.code_utils.templates import EVAL_K_INPUT_PREDICTION_TEMPLATE

    def run(tasks: Sequence[Question]) -> int:
        attempts = executor.batch_apply(  # type: ignore[attr-defined]
            [
                EVAL_K_INPUT_PREDICTION_TEMPLATE(
                    code=source, gold_output=output, k_agent_inputs=list(task.answers)
                )
                for source, output, task in _azr_checked(executor, tasks)
            ]
        )
        return sum(result.count("True") for result, _ in attempts)

    return run


def _azr_checked(executor: object, tasks: Sequence[Question]) -> list[tuple[str, str, Question]]:
    """(source, gold output, task), the outputs by one batch of AZR's determinism checks."""
    from absolute_zero_reasoner.utils.code_utils.templates import CHECK_DETERMINISM_TEMPLATE

    sources = ["\n".join([*task.imports, task.program]) for task in tasks]
    checks = executor.batch_apply(  # type: ignore[attr-defined]
        [
            CHECK_DETERMINISM_TEMPLATE.format(code=source, inputs=task.inputs[0])
            for source, task in zip(sources, tasks, strict=True)
        ]
    )
    outputs = [output for output, _ in checks]
    return list(zip(sources, outputs, tasks, strict=True))


_ONE = """
import sys
source, call = sys.argv[1:]
space = {}
exec(source, space)
print(repr(eval(call, space)))
"""


def with_processes() -> Contender:
    """A fresh interpreter for each execution."""

    def execute(source: str, text: str) -> str:
        command = [sys.executable, "-I", "-S", "-c", _ONE, source, f"f({text})"]
        return subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE).stdout

    def run(tasks: Sequence[Question]) -> int:
        right = 0
        for task in tasks:
            source = "\n".join([*task.imports, task.program])
            gold = execute(source, task.inputs[0])
            execute(source, task.inputs[0])
            right += sum(execute(source, answer) == gold for answer in task.answers)
        return right

    return run
