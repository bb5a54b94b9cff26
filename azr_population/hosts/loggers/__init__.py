"""Loggers: a run's figures in TensorBoard or Weights & Biases, beside the run directory."""

from azr_population.hosts.loggers.logger import LOGGERS, Logger, check_loggers
from azr_population.hosts.loggers.loggers import Loggers, open_loggers
from azr_population.hosts.loggers.scalars import step_figures

__all__ = [
    "LOGGERS",
    "Logger",
    "Loggers",
    "check_loggers",
    "open_loggers",
    "step_figures",
]
