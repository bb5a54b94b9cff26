"""Further types of task for `azr-population referee`: code_e and puzzle."""

from typing import Any

from azr_population.domains.code.source import read_program
from azr_population.domains.code.task_types import CODE_E
from azr_population.domains.code_e.domain import exception_name
from azr_population.domains.code_e.named_error import naming, same_name
from azr_population.domains.puzzles.domain import ENTRY, UNSOLVED, top_level_names
from azr_population.domains.puzzles.grammar import PUZZLE
from azr_population.referee import Judgement, Question, Reason
from azr_population.referee.pipe import OtherType


class ExceptionTasks:
    """code_e: the gold output is the exception's name; nothing runs to compare names."""

    def question(self, question: Question) -> Question:
        program = question.program
        if (
            read_program(program).tree is not None
        ):  # else the referee is to say what is wrong with it
            program = naming(program, question.imports)
        return Question("code_o", program, question.inputs)

    def verdict(self, question: Question, judgement: Judgement) -> dict[str, Any]:
        name = exception_name(judgement.execution.outputs[0])
        if not name:
            return {"valid": False, "reason": Reason.TAMPERED.value}
        solved = [same_name(answer, name) for answer in question.answers]
        return _verdict(
            name, solved, [Reason.SOLVED if right else Reason.WRONG for right in solved]
        )


class PuzzleTasks:
    """puzzle: `sat(answer) is True`, and the line's input is one such answer."""

    def question(self, question: Question) -> Question:
        program, tree = question.program, read_program(question.program).tree
        names = top_level_names(tree) if tree is not None else set()
        if "f" in names:
            raise ValueError("program: a puzzle defines sat, and no f")
        if names == {"sat"}:
            program += ENTRY
        return Question("code_i", program, question.inputs, (), question.answers, question.imports)

    def verdict(self, question: Question, judgement: Judgement) -> dict[str, Any]:
        if judgement.execution.outputs != ("True",):
            return {"valid": False, "reason": UNSOLVED}
        grades = judgement.grades
        return _verdict(
            "True", [grade.solved for grade in grades], [grade.reason for grade in grades]
        )


def _verdict(output: str, solved: list[bool], reasons: list[Reason]) -> dict[str, Any]:
    return {"valid": True, "output": output, "solved": solved, "reasons": [*map(str, reasons)]}


TYPES: dict[str, OtherType] = {CODE_E: ExceptionTasks(), PUZZLE: PuzzleTasks()}
