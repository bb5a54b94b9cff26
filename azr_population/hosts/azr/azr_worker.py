"""The worker inside AZR: a worker of the population that writes its part of AZR's checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from azr_population.engines.workers.worker import EngineWorker
from azr_population.errors import UserError
from azr_population.runs.checkpoint import (
    EARLIER_INSIDE_AZR,
    read_tensors,
    restoring,
    save_checkpoint,
)


class PopulationWorker(EngineWorker):
    """All members on one rank."""

    def save_checkpoint(self, folder: str, step: int, plain: dict[str, Any]) -> None:
        """The first rank writes `folder/step_<step>`: factors, optimizer states and `plain`."""
        if self.rank == 0:
            save_checkpoint(Path(folder), step, self.engine.state_dict(), plain, keep=1)

    def load_checkpoint(self, folder: str, step: int) -> None:
        """Every rank takes the members of a checkpoint that the trainer found to be sound."""
        tensors = read_tensors(Path(folder), step, mapped=True)
        with restoring(f"{folder}/step_{step}", tensors, way_out=EARLIER_INSIDE_AZR):
            stored, slots = len(tensors["adapters"]), self.settings.slots
            try:
                if stored != slots:
                    raise UserError(f"{stored} members, and this run has {slots}")
                self.engine.load_state_dict(tensors)
            except UserError as error:
                raise UserError(
                    f"{folder} was written by another run ({error}); resume with the same "
                    "+population, or give another trainer.experiment_name"
                ) from error
