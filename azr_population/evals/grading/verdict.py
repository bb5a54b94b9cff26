"""What a grader says of a completion."""

from dataclasses import dataclass

PASSED, WRONG, NO_ANSWER = "passed", "wrong", "no answer"
"""Reasons of every grader; programs also have the referee's (timeout, error, memory, ...)."""


@dataclass(frozen=True)
class Verdict:
    """Whether a completion is right, why not, and what was taken for its answer."""

    passed: bool
    reason: str
    detail: str = ""
    answer: str = ""
    base_passed: bool | None = None
    """Of HumanEval+ and MBPP+: whether the tests of the original benchmark are passed."""
