"""What a logger is, and the loggers by name."""

from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Protocol

from azr_population.config.schema import LoggerConfig
from azr_population.errors import UserError
from azr_population.registry import Registry
from azr_population.runs.directory import RunDirectory


class Logger(Protocol):
    """Takes the figures of each step. An exception ends the logger, not the run.

    A logger uses none of the run's random generators and writes only files of its own in the run
    directory.
    """

    def log(self, step: int, figures: Mapping[str, float]) -> None:
        """A finished step, counted from 1; steps ascend."""

    def close(self) -> None:
        """After the last step: everything is on disk or on its way there."""


LOGGERS: Registry[Callable[[LoggerConfig, RunDirectory, int], Logger]] = Registry("logger.names")
"""Name -> opens the logger of a run at a step (0 for a new run). What the run plays is in the run
directory's `config()`. The package that a logger of ours needs and the extra that installs it have
its name."""


@LOGGERS.register("tensorboard", "https://www.tensorflow.org/tensorboard")
def tensorboard(settings: LoggerConfig, directory: RunDirectory, step: int) -> Logger:
    """Event files in `<run>/tensorboard`."""
    from azr_population.hosts.loggers.tensorboard_logger import TensorBoardLogger

    return TensorBoardLogger(directory.path / "tensorboard", step)


@LOGGERS.register("wandb", "https://docs.wandb.ai")
def wandb(settings: LoggerConfig, directory: RunDirectory, step: int) -> Logger:
    """A Weights & Biases run, with its files in `<run>/wandb`."""
    from azr_population.hosts.loggers.wandb_logger import WandbLogger

    return WandbLogger(settings, directory)


@LOGGERS.register("trackio", "https://huggingface.co/docs/trackio")
def trackio(settings: LoggerConfig, directory: RunDirectory, step: int) -> Logger:
    """A trackio run, in its own local database."""
    from azr_population.hosts.loggers.trackio_logger import TrackioLogger

    return TrackioLogger(settings, directory)


def check_loggers(names: Sequence[str]) -> None:
    """Raises `UserError` for an unknown logger, and when the package of one of ours is missing; the
    message has the names, or the command."""
    for name in names:
        LOGGERS.find(name)
        if name in LOGGERS and find_spec(name) is None:
            raise UserError(
                f"logger={name} needs the package {name}; install it by: pip install {name}"
            )
