"""AZR's first checkpoint raises: its plain DataLoader has no `state_dict`, which veRL saves."""

import functools
from typing import Any

from .mechanism import Patch


def _with_state(original: Any) -> Any:
    @functools.wraps(original)
    def _create_dataloader(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        # AZR's loop never reads this loader (its steps make their own), so it has no state.
        if not hasattr(self.train_dataloader, "state_dict"):
            self.train_dataloader.state_dict = dict
            self.train_dataloader.load_state_dict = lambda state: None

    return _create_dataloader


DATALOADER_STATE = Patch(
    "azr-dataloader-state",
    "absolute_zero_reasoner.trainer.ppo.reason_rl_ray_trainer:"
    "ReasonRLRayPPOTrainer._create_dataloader",
    "e138b3c06f0e3e85",
    "the training loader, which AZR never reads, has an empty state, so checkpoints can be written",
    _with_state,
)
