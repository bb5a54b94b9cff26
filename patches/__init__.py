"""What AZR and veRL need changed at run time; one file per upstream defect. See README.md."""

from .azr_evals import EVALS, REWARD_EVALS
from .azr_executor import EXECUTOR
from .mechanism import Patch, applied, apply, undo

__all__ = ["EVALS", "EXECUTOR", "REWARD_EVALS", "Patch", "applied", "apply", "undo"]
