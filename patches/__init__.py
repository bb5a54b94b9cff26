"""What AZR and veRL need changed at run time; nothing of theirs is copied. See README.md."""

from .azr_evals import EVALS, REWARD_EVALS
from .mechanism import Patch, apply, around, undo
from .referee_executor import EXECUTOR

__all__ = ["EVALS", "EXECUTOR", "REWARD_EVALS", "Patch", "apply", "around", "undo"]
