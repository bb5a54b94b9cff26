"""AZR runs model-written programs in unconfined worker processes; the referee takes their place."""

from typing import Any

from .mechanism import Patch


def _referee(original: Any) -> Any:
    from .referee_executor import RefereeExecutor

    return RefereeExecutor


EXECUTOR = Patch(
    "azr-executor",
    "absolute_zero_reasoner.trainer.ppo.azr_ray_trainer:PythonExecutor",
    "3b9f8e0a8be67e7e",
    "the trainer's executor is the referee: sandboxed, nothing evaluated or unpickled",
    _referee,
)
