"""The sandbox: the only code that ever runs model-written Python."""

from __future__ import annotations

from .confinement import Layer, confinement
from .reasons import Execution, Grade, Judgement, Program, Question, Reason
from .referee import Referee
from .settings import RefereeSettings

__all__ = [
    "Execution",
    "Grade",
    "Judgement",
    "Layer",
    "Program",
    "Question",
    "Reason",
    "Referee",
    "RefereeSettings",
    "confinement",
]
