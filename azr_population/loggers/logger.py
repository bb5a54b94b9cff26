"""What a logger is, and which there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Protocol

from azr_population.conf.schema import Config
from azr_population.errors import UserError
from azr_population.registry import Registry
from azr_population.runs.directory import RunDirectory


class Logger(Protocol):
    """Takes the figures of one step after another. Whatever it raises ends the logger, not the run.

    A logger draws from no random generator of the run and changes nothing in the run directory but
    files of its own.
    """

    def log(self, step: int, figures: Mapping[str, float]) -> None:
        """A finished step, counted from 1; steps ascend."""

    def close(self) -> None:
        """After the last step of this process: everything is on disk, or on its way."""


LOGGERS: Registry[Callable[[Config, RunDirectory, int], Logger]] = Registry("logger.names")
"""name -> opens the logger of a run that stands at a step (0: new). The name is that of the package
it needs and of the extra that installs it."""


@LOGGERS.register("tensorboard", "https://www.tensorflow.org/tensorboard")
def tensorboard(config: Config, directory: RunDirectory, step: int) -> Logger:
    """Event files in `<run>/tensorboard`."""
    from azr_population.loggers.tensorboard_logger import TensorBoardLogger

    return TensorBoardLogger(directory.path / "tensorboard", step)


@LOGGERS.register("wandb", "https://docs.wandb.ai")
def wandb(config: Config, directory: RunDirectory, step: int) -> Logger:
    """A Weights & Biases run, with its files in `<run>/wandb`."""
    from azr_population.loggers.wandb_logger import WandbLogger

    return WandbLogger(config, directory.path)


def check_names(names: Sequence[str]) -> None:
    """Raises `UserError` for an unknown logger; the message lists those there are."""
    for name in names:
        LOGGERS.find(name)


def check_packages(names: Sequence[str]) -> None:
    """Raises `UserError` when a logger's package is missing; the message has the command."""
    for name in names:
        if find_spec(name) is None:
            raise UserError(
                f"logger={name} needs the package {name}; install it by: "
                f"pip install 'azr-population[{name}]'"
            )
