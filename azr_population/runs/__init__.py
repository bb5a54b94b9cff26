"""The run directory: the one record of a run; checkpoints and what resuming reads."""

from azr_population.runs.checkpoint import load_latest, save_checkpoint
from azr_population.runs.directory import RunDirectory

__all__ = ["RunDirectory", "load_latest", "save_checkpoint"]
