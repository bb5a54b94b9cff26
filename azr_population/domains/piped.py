"""Further types of task for `azr-population referee`: code_e and puzzle."""

from collections.abc import Iterable
from typing import Any

from azr_population.domains.code.task_types import CODE_E
from azr_population.domains.code_e.named_error import exception_name, naming, same_name
from azr_population.domains.puzzles.domain import ENTRY, UNSOLVED, defined_names
from azr_population.domains.puzzles.grammar import PUZZLE
from azr_population.referee import Judgement, Question, Reason
from azr_population.referee.pipe import OtherType


class ExceptionTasks:
    """code_e: the gold output is the exception's name; nothing runs to compare names."""

    def question(self, question: Question) -> Question:
        return Question("code_o", naming(question.program, question.imports), question.inputs)

    def verdict(self, question: Question, judgement: Judgement) -> dict[str, Any]:
        name = exception_name(judgement.execution.outputs[0])
        if not name:
            return {"valid": False, "reason": Reason.TAMPERED.value}
        right = (same_name(answer, name) for answer in question.answers)
        return _verdict(name, (Reason.SOLVED if solved else Reason.WRONG for solved in right))


class PuzzleTasks:
    """puzzle: `sat(answer) is True`, and the line's input is one such answer."""

    def question(self, question: Question) -> Question:
        names = defined_names(question.program)
        if "f" in names:
            raise ValueError("program: a puzzle defines sat, and no f")
        program = question.program + ENTRY if names else question.program
        return Question("code_i", program, question.inputs, (), question.answers, question.imports)

    def verdict(self, question: Question, judgement: Judgement) -> dict[str, Any]:
        if judgement.execution.outputs != ("True",):
            return {"valid": False, "reason": UNSOLVED}
        return _verdict("True", (grade.reason for grade in judgement.grades))


def _verdict(output: str, reasons: Iterable[Reason]) -> dict[str, Any]:
    words = [reason.value for reason in reasons]
    solved = [word == Reason.SOLVED.value for word in words]
    return {"valid": True, "output": output, "solved": solved, "reasons": words}


TYPES: dict[str, OtherType] = {CODE_E: ExceptionTasks(), PUZZLE: PuzzleTasks()}
