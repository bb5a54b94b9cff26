"""The code tasks: a program with input/output pairs, asked about from one of three sides."""

from enum import Enum

from azr_population.domains.task import Proposal, Task

__all__ = ["Proposal", "Task", "TaskType", "reference_answer", "shown", "shown_pairs"]


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


def shown(task: Task) -> int:
    """How many of a code_f task's pairs the solver sees: the first half, rounded up. The others are
    hidden and decide."""
    return (len(task.inputs) + 1) // 2


def shown_pairs(task: Task) -> tuple[tuple[str, str], ...]:
    """The pairs (arguments, value) of a code_f task that the solver sees."""
    count = shown(task)
    return tuple(zip(task.inputs[:count], task.outputs[:count], strict=True))


def reference_answer(task: Task) -> str:
    """The missing part: the output, the input, or the program."""
    if task.type == TaskType.CODE_O:
        return task.outputs[0]
    return task.inputs[0] if task.type == TaskType.CODE_I else task.program
