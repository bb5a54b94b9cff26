"""The types of code tasks: a program with input/output pairs, asked about from several sides."""

from enum import Enum

from azr_population.domains.format import shown
from azr_population.domains.task import ParsedProposal, Task

__all__ = ["ParsedProposal", "Task", "TaskType", "reference_answer", "shown"]


class TaskType(str, Enum):
    """The three modes of reasoning about a triplet (program, input, output); AZR, section 3.2.

    Inputs are argument lists as source text, e.g. `"[1, 2], 'a'"` for `f([1, 2], 'a')`: exactly one
    for code_o and code_i, several for code_f. `outputs[i]` is `repr(f(*inputs[i]))`, a literal.
    """

    CODE_O = "code_o"
    """Deduction: given the program and an input, predict the output."""
    CODE_I = "code_i"
    """Abduction: given the program and an output, find an input that gives it."""
    CODE_F = "code_f"
    """Induction: given input/output pairs and a message, write the program."""

    def __str__(self) -> str:
        return self.value


def reference_answer(task: Task) -> str:
    """The missing part: the output, the program, or (of code_i) the input."""
    if task.type == TaskType.CODE_O:
        return task.outputs[0]
    return task.program if task.type == TaskType.CODE_F else task.inputs[0]
