"""The worker inside AZR: a worker of the population that writes its part of AZR's checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from verl.single_controller.base.decorator import Dispatch, register

from azr_population.engines.workers.worker import EngineWorker
from azr_population.errors import UserError
from azr_population.runs.checkpoint import read_tensors, save_checkpoint

OTHER_RUN = "resume with the same +population, or give another trainer.experiment_name"


class PopulationWorker(EngineWorker):
    """The members of one worker group on one rank."""

    @register(dispatch_mode=Dispatch.ONE_TO_ALL)
    def save_checkpoint(self, folder: str, step: int, plain: dict[str, Any]) -> str | None:
        """The first rank writes `folder/step_<step>`: factors, optimizer states and `plain`."""
        if self.rank != 0:
            return None
        state = self.engine.state_dict()
        return str(save_checkpoint(Path(folder), step, state, plain, keep=1))

    @register(dispatch_mode=Dispatch.ONE_TO_ALL)
    def load_checkpoint(self, folder: str, step: int) -> None:
        """Every rank takes the members of a checkpoint that the trainer found to be sound."""
        tensors = read_tensors(Path(folder), step, mapped=True)
        stored = len(tensors["adapters"])
        if stored != self.settings.slots:
            raise UserError(
                f"{folder} was written by a run with {stored} members in this place, and this one "
                f"has {self.settings.slots}; {OTHER_RUN}"
            )
        try:
            self.engine.load_state_dict(tensors)
        except UserError as error:
            raise UserError(
                f"{folder} was written by a run with other adapters ({error}); {OTHER_RUN}"
            ) from error
