"""Problems of benchmarks: a prompt, an answer in a completion, a verdict."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from azr_population.errors import UserError

PASSED, WRONG, NO_ANSWER = "passed", "wrong", "no answer"
"""Reasons of every grader; programs also have the referee's (timeout, error, memory, ...)."""
WRONG_NUMBER = "271828182.5"
"""A number that is no problem's answer."""


@dataclass(frozen=True)
class Prompt:
    """A user's turn of a chat, or `raw`: plain text to be continued."""

    text: str
    raw: bool = False
    answer_begins: str = ""
    """Beginning of the model's turn, if the template allows one."""
    plain: str = ""
    """For a model without a chat template; '' takes `text`."""
    stops: tuple[str, ...] = ()
    """Texts that end an answer."""
    plain_stops: tuple[str, ...] = ()


@dataclass(frozen=True)
class EvalVerdict:
    """Whether a completion is right, why not, and what was taken for its answer."""

    passed: bool
    reason: str
    detail: str = ""
    answer: str = ""


class VerdictLost(UserError):
    """The process that read or ran an answer was ended from outside, for example because the
    machine has no memory left. This says nothing about the answer, so it is not judged."""


class Problem(ABC):
    """A problem; a subclass is a kind of problems with one prompt and one judge."""

    id: str

    @property
    @abstractmethod
    def prompt(self) -> Prompt:
        """The prompt for a model."""

    @abstractmethod
    def read(self, completion: str) -> str:
        """The answer in a completion; '' for none."""

    @classmethod
    def read_all(cls, completions: Sequence[tuple[Any, str]]) -> list[str]:
        """`read` of (problem, completion) pairs, in order."""
        return [problem.read(text) for problem, text in completions]

    @classmethod
    @abstractmethod
    def judge(cls, answers: Sequence[tuple[Any, str]]) -> list[EvalVerdict]:
        """Verdicts on (problem, answer) pairs, in order."""

    @classmethod
    @abstractmethod
    def known_completions(cls, problems: Sequence[Any]) -> list[tuple[Any, str, str]]:
        """(problem, right completion, wrong completion), for the judge's self-test."""
