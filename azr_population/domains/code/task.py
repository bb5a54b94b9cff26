"""What a task is: a program with input/output pairs, asked about from one of three sides."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class TaskType(str, Enum):
    """The three modes of reasoning about a triplet (program, input, output); AZR, section 3.2."""

    CODE_O = "code_o"
    """Deduction: given the program and an input, predict the output."""
    CODE_I = "code_i"
    """Abduction: given the program and an output, find an input that gives it."""
    CODE_F = "code_f"
    """Induction: given input/output pairs and a message, write the program."""

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Proposal:
    """What a teacher wrote, parsed but not yet executed.

    `inputs` are argument lists as source text, e.g. `"[1, 2], 'a'"` for `f([1, 2], 'a')`;
    exactly one for code_o and code_i, several for code_f.
    """

    type: TaskType
    program: str
    inputs: tuple[str, ...]
    message: str = ""
    imports: tuple[str, ...] = ()


@dataclass(frozen=True)
class Task:
    """A proposal that the referee executed and the validity rules accepted.

    `outputs[i]` is `repr(f(*inputs[i]))`, a Python literal. For code_f the first half of the pairs
    (rounded up) is shown to the solver, the rest is hidden and decides.
    """

    type: TaskType
    program: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    message: str = ""
    imports: tuple[str, ...] = ()

    @property
    def shown(self) -> int:
        """How many of a code_f task's pairs the solver sees."""
        return (len(self.inputs) + 1) // 2

    @property
    def shown_pairs(self) -> tuple[tuple[str, str], ...]:
        """The pairs (arguments, value) of a code_f task that the solver sees."""
        return tuple(zip(self.inputs[: self.shown], self.outputs[: self.shown], strict=True))

    @property
    def reference_answer(self) -> str:
        """The missing part: the output, the input, or the program."""
        if self.type is TaskType.CODE_O:
            return self.outputs[0]
        return self.inputs[0] if self.type is TaskType.CODE_I else self.program
