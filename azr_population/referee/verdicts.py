"""The words of the referee: what is asked of it and what it answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum


class Reason(str, Enum):
    """Why a verdict is what it is. The list is fixed and the pipe prints these words; what each
    means is in `runs/meanings.py`."""

    OK = "ok"
    SOLVED = "solved"
    WRONG = "wrong"
    SYNTAX_ERROR = "syntax_error"
    NO_FUNCTION = "no_function"
    BANNED = "banned"
    BAD_INPUT = "bad_input"
    ERROR = "error"
    TIMEOUT = "timeout"
    MEMORY = "memory"
    TOO_LARGE = "too_large"
    NOT_LITERAL = "not_literal"
    NONDETERMINISTIC = "nondeterministic"
    FORBIDDEN = "forbidden"
    CRASHED = "crashed"
    TAMPERED = "tampered"
    LOST = "lost"
    MALFORMED = "malformed"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Program:
    """A program that defines `f`, and inputs to run it on.

    `inputs` are argument lists as source text, e.g. `"[1, 2], 'a'"`. `imports` are import
    statements put before the source.
    """

    source: str
    inputs: tuple[str, ...]
    imports: tuple[str, ...] = ()
    literal_inputs: bool = False
    """Whether each input must come to literals, as those of a code_f task must, so that another
    program can be given the same."""


@dataclass(frozen=True)
class Question:
    """A task and the answers to it.

    type: "code_o" | "code_i" | "code_f" (a str or an enum with such a value).
    code_o: `outputs[0]` is the gold output; answers are literals.
    code_i: `program` and `outputs[0]`, the gold output; answers are argument lists of literals.
    code_f: `inputs` and `outputs` are the hidden pairs; answers are programs that define `f`. They
    are given the inputs as literals; what is an expression is evaluated with `program` before.

    `judge` computes the gold outputs itself from `program` and `inputs` and ignores `outputs`,
    but for code_f without a program, whose pairs are given.
    """

    type: str
    program: str = ""
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """The type as a plain string."""
        return str(getattr(self.type, "value", self.type))


@dataclass(frozen=True)
class Execution:
    """What came of running a program: `outputs[i]` is the literal of `f(*inputs[i])`.

    Where it is not valid, `outputs` is empty and `detail` may say more; that text is the
    program's own, not the referee's. `inputs`, if literals were asked for, are the inputs as such.
    """

    valid: bool
    reason: Reason
    outputs: tuple[str, ...] = ()
    detail: str = ""
    inputs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Grade:
    """The verdict on one answer. `accuracy`: 0 or 1, for code_f the share of hidden pairs right."""

    solved: bool
    accuracy: float
    reason: Reason
    detail: str = ""


@dataclass(frozen=True)
class Judgement:
    """Validation and grading in one: the execution, and one grade per answer if it is valid."""

    execution: Execution
    grades: Sequence[Grade] = ()
