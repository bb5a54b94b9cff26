"""TensorBoard: one folder of event files per run, whatever number of times it is resumed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


class TensorBoardLogger:
    """Scalars by step.

    A run that is resumed from a checkpoint plays some steps again. Its new event file begins with
    a purge step, by which TensorBoard forgets what the older files have from there on: no step is
    there twice.
    """

    def __init__(self, folder: Path, step: int) -> None:
        """`step` is the last one that stays; 0 for a new run."""
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(folder), purge_step=step + 1 if step else None)

    def log(self, step: int, figures: Mapping[str, float]) -> None:
        """Adds the scalars and flushes: a full disk is noticed here."""
        for name, value in figures.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def close(self) -> None:
        """Ends the file."""
        self._writer.close()
