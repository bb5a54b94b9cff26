"""The sandbox: the only code that ever runs model-written Python.

    with Referee(RefereeSettings(timeout=2.0)) as referee:
        referee.check([Program("def f(x): return x + 1", ("3",))])
        referee.grade([Question("code_o", outputs=("4",), answers=("4", "5"))])

How it works, and which attacks it stops and which not: README.md in this folder.
"""

from .limits import RefereeSettings
from .referee import Referee, confinement
from .verdicts import Execution, Grade, Judgement, Program, Question, Reason
from .zygote_handle import SandboxLayer

__all__ = [
    "Execution",
    "Grade",
    "Judgement",
    "Program",
    "Question",
    "Reason",
    "Referee",
    "RefereeSettings",
    "SandboxLayer",
    "confinement",
]
