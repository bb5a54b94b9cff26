"""The sandbox: the only code that ever runs model-written Python."""

from __future__ import annotations

from .reasons import Execution, Grade, Judgement, Program, Question, Reason
from .referee import Referee
from .settings import RefereeSettings

__all__ = [
    "Execution",
    "Grade",
    "Judgement",
    "Program",
    "Question",
    "Reason",
    "Referee",
    "RefereeSettings",
]
