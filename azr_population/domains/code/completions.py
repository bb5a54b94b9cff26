"""What is read out of a completion. One that the token limit cut off says nothing."""

from __future__ import annotations

from azr_population.domains.code.formats import Format
from azr_population.domains.code.task import Proposal, TaskType
from azr_population.engines.engine import Completion


def read_proposal(format: Format, type: TaskType, completion: Completion) -> Proposal | None:
    """The proposal, or None where the form is wrong or the end is missing."""
    return format.parse_proposal(type, completion.text) if completion.finished else None


def read_answer(format: Format, type: TaskType, completion: Completion) -> str | None:
    """The answer, or None where the form is wrong or the end is missing."""
    return format.parse_answer(type, completion.text) if completion.finished else None
