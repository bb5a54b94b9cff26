"""AZR plays one step less than `trainer.total_training_steps` says."""

import functools
from typing import Any

from .mechanism import Patch


def _all_steps(original: Any) -> Any:
    @functools.wraps(original)
    def fit(self: Any) -> Any:
        # The loop runs while the step at hand, counted from 1, is below the total.
        self.total_training_steps += 1
        try:
            return original(self)
        finally:
            self.total_training_steps -= 1

    return fit


TOTAL_STEPS = Patch(
    "azr-total-steps",
    "absolute_zero_reasoner.trainer.ppo.azr_ray_trainer:CodeIORayPPOTrainer.fit",
    "ef7b1276f7305e9b",
    "trainer.total_training_steps=N plays N steps",
    _all_steps,
)
