"""Three of AZR's settings never reach its reward manager.

`azr.data_selection_strategy.num_inputs`, `batched_estimate` and
`banned_keywords_for_errors_and_exceptions` are told to the proposer, but proposals are judged by
the manager's defaults: with another num_inputs every code_f proposal is invalid.
"""

import functools
from typing import Any

from .mechanism import Patch


def _with_settings(original: Any) -> Any:
    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        strategy = self.config.azr.data_selection_strategy
        for manager in (self.reward_fn, self.val_reward_fn):
            if manager is not None:
                manager.num_inputs = strategy.num_inputs
                manager.batched_estimate = strategy.batched_estimate
        if self.reward_fn is not None:
            banned = list(strategy.banned_keywords_for_errors_and_exceptions or [])
            self.reward_fn = functools.partial(self.reward_fn, banned_assertion_keywords=banned)

    return __init__


REWARD_ARGUMENTS = Patch(
    "azr-reward-arguments",
    "absolute_zero_reasoner.trainer.ppo.azr_ray_trainer:CodeIORayPPOTrainer.__init__",
    "4874adca628cb55f",
    "num_inputs, batched_estimate and the banned keywords reach the reward manager",
    _with_settings,
)
