"""The referee's questions and verdicts."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum


class Reason(str, Enum):
    """The reason of a verdict. The list is fixed, and the pipe prints these words;
    `runs/meanings.py` explains each."""

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
    """Whether each input must evaluate to literals, as in a code_f task, so that another program
    can get the same input."""


@dataclass(frozen=True)
class Question:
    """A task and the answers to it.

    type: "code_o" | "code_i" | "code_f" (a str or an enum with such a value).
    code_o: `outputs[0]` is the gold output; answers are literals.
    code_i: `program` and `outputs[0]`, the gold output; answers are argument lists of literals.
    code_f: `inputs` and `outputs` are the hidden pairs; answers are programs that define `f`. They
    get the inputs as literals; an expression is first evaluated with `program`.

    `judge` computes the gold outputs from `program` and `inputs` and ignores `outputs`, except for
    code_f without a program, where the pairs are given.
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
    """The result of validating a program: `outputs[i]` is the literal of `f(*inputs[i])`.

    If it is not valid, `outputs` is empty and `detail` may explain why; that text comes from the
    program, not from the referee. `inputs` has the inputs as literals if these were required.
    """

    valid: bool
    reason: Reason
    outputs: tuple[str, ...] = ()
    detail: str = ""
    inputs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Grade:
    """The verdict on one answer. `accuracy`: 0 or 1; for code_f the share of right hidden pairs."""

    solved: bool
    accuracy: float
    reason: Reason
    detail: str = ""


@dataclass(frozen=True)
class Judgement:
    """Validation and grading together: the execution and, if it is valid, a grade per answer."""

    execution: Execution
    grades: Sequence[Grade] = ()
