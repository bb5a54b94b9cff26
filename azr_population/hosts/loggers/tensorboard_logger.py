"""TensorBoard: one folder of event files per run, however often it is resumed."""

from collections.abc import Mapping
from pathlib import Path


class TensorBoardLogger:
    """Scalars by step.

    A resumed run plays the steps after its checkpoint again. Its new event file begins with a purge
    step, at which TensorBoard drops the older files' later scalars, so no step is there twice.
    """

    def __init__(self, folder: Path, step: int) -> None:
        """`step` is the last step to keep; 0 for a new run."""
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(folder), purge_step=step + 1 if step else None)

    def log(self, step: int, figures: Mapping[str, float]) -> None:
        """Adds the scalars and flushes, so that a full disk is noticed here."""
        for name, value in figures.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def close(self) -> None:
        """Ends the file."""
        self._writer.close()
