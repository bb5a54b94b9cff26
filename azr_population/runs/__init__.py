"""The run directory: the one record of a run; checkpoints and what resuming reads."""

from azr_population.runs.directory import RunDirectory

__all__ = ["RunDirectory"]
