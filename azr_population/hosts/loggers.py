"""Loggers: a run's figures in TensorBoard, Weights & Biases or trackio, beside the run directory.

None of them can stop a run or change what it plays. A resumed run plays some steps again, with the
same results; they are logged once.
"""

import inspect
import json
import os
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from azr_population.config.schema import LoggerConfig
from azr_population.errors import UserError
from azr_population.files import write_atomically
from azr_population.registry import Registry
from azr_population.runs.directory import RunDirectory
from azr_population.runs.records import number

CLOSE_SECONDS = 60.0
"""How long a logger may take to close, such as for uploads over a broken network."""
INIT_SECONDS = 30.0
"""How long a run waits for W&B's server before it goes on without; W&B itself waits 90 s."""


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
class TensorBoardLogger:
    """Event files in `<run>/tensorboard`. The file of a resumed run begins with a purge step, at
    which TensorBoard drops the older files' later scalars."""

    def __init__(self, settings: LoggerConfig, directory: RunDirectory, step: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        folder = directory.path / "tensorboard"
        self._writer = SummaryWriter(str(folder), purge_step=step + 1 if step else None)

    def log(self, step: int, figures: Mapping[str, float]) -> None:
        """Adds the scalars and flushes, so that a full disk is noticed here."""
        for name, value in figures.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def close(self) -> None:
        """Ends the file."""
        self._writer.close()


class _OnceLogger:
    """A run of a tracker that counts steps itself: one run there per run here. `<run>/<file>` keeps
    the id over there and the last step that was logged."""

    _run: Any

    def __init__(self, directory: RunDirectory, file: str) -> None:
        self._file: Path = directory.path / file
        state: dict[str, Any] = {"id": uuid.uuid4().hex[:8], "step": 0}
        if self._file.is_file():
            state |= json.loads(self._file.read_text(encoding="utf-8"))
        self._id, self._step = str(state["id"]), int(state["step"])
        self._config = directory.config()
        self._population = self._config["population"]
        self._seed = self._population.get("seed", self._config.get("seed"))

    def log(self, step: int, figures: Mapping[str, float]) -> None:
        """Logs the step unless the run has it already."""
        if step > self._step:
            self._run.log(dict(figures), step=step)
            self._remember(step)

    def close(self) -> None:
        """Uploads or writes what is left."""
        self._run.finish()

    def _remember(self, step: int) -> None:
        self._step = step
        write_atomically(self._file, json.dumps({"id": self._id, "step": step}))


@LOGGERS.register("wandb", "https://docs.wandb.ai")
class WandbLogger(_OnceLogger):
    """A Weights & Biases run, online or offline by `logger.mode` or WANDB_MODE, with its files in
    `<run>/wandb`."""

    def __init__(self, settings: LoggerConfig, directory: RunDirectory, step: int) -> None:
        import wandb

        super().__init__(directory, "wandb.json")
        if _would_ask(settings.mode):
            raise UserError(
                "Weights & Biases has no key here; use wandb login, or logger.mode=offline"
            )
        self._run = wandb.init(
            dir=str(directory.path),
            id=self._id,
            resume="allow",
            project=settings.project,
            entity=settings.entity,
            name=settings.run_name or f"{self._population['name']} seed {self._seed}",
            group=settings.group or self._population["name"],
            mode=settings.mode or None,
            config=self._config,
            settings=wandb.Settings(console="off", silent=True, init_timeout=INIT_SECONDS),
        )
        self._remember(self._step)


@LOGGERS.register("trackio", "https://huggingface.co/docs/trackio")
class TrackioLogger(_OnceLogger):
    """A trackio run, in the database where TRACKIO_DIR says, by default in the user's cache."""

    def __init__(self, settings: LoggerConfig, directory: RunDirectory, step: int) -> None:
        import trackio

        super().__init__(directory, "trackio.json")
        # trackio goes by the name alone, so that it has to be another one for every run.
        name = f"{self._population['name']}-seed-{self._seed}-{self._id}"
        self._run = trackio.init(
            settings.project,
            name=settings.run_name or name,
            group=settings.group or self._population["name"],
            config=self._config,
            resume="allow",
            embed=False,
            auto_log_gpu=False,
            auto_log_cpu=False,
        )
        self._remember(self._step)


def _would_ask(mode: str | None) -> bool:
    """Whether W&B would wait for somebody who chooses an account: online, and without a key."""
    import wandb

    if (mode or os.environ.get("WANDB_MODE") or "online") != "online":
        return False
    if "prompt" in inspect.signature(wandb.login).parameters:
        return not wandb.login(prompt=False)
    return not wandb.api.api_key  # versions that have no other way to ask


class Loggers:
    """Passes figures on. A logger that fails is reported once and not called again.

    Args:
        loggers: by name.
        note: shows a line to the person who watches the run.
    """

    def __init__(self, loggers: Mapping[str, Logger], note: Callable[[str], None]) -> None:
        self._loggers = dict(loggers)
        self._note = note

    def log(self, step: int, figures: Mapping[str, float]) -> None:
        """Hands `figures` to every logger that still works."""
        for name, logger in list(self._loggers.items()):
            try:
                logger.log(step, figures)
            except Exception as error:
                del self._loggers[name]
                self._note(_failure(name, error))

    def close(self) -> None:
        """Closes every logger, and waits `CLOSE_SECONDS` at most for each."""
        while self._loggers:
            name, logger = self._loggers.popitem()
            # A daemon, so that a hanging logger does not keep the process alive.
            thread = threading.Thread(target=self._close, args=(name, logger), daemon=True)
            thread.start()
            thread.join(CLOSE_SECONDS)
            if thread.is_alive():
                self._note(
                    f"logger {name} did not close within {CLOSE_SECONDS:.0f} s; not waiting any "
                    "longer"
                )

    def _close(self, name: str, logger: Logger) -> None:
        try:
            logger.close()
        except Exception as error:
            self._note(_failure(name, error))


def check_loggers(names: Sequence[str]) -> None:
    """Raises `UserError` for an unknown logger, and when the package of one of ours is missing; the
    message has the names, or the command."""
    for name in names:
        LOGGERS.find(name)
        if name in LOGGERS and find_spec(name) is None:
            raise UserError(
                f"logger={name} needs the package {name}; install it by: pip install {name}"
            )


def open_loggers(
    settings: LoggerConfig, directory: RunDirectory, step: int, note: Callable[[str], None]
) -> Loggers:
    """Opens the loggers that `logger.names` lists, for a run that stands at `step`."""
    opened: dict[str, Logger] = {}
    for name in dict.fromkeys(settings.names):
        try:
            opened[name] = LOGGERS.find(name).function(settings, directory, step)
        except Exception as error:
            note(_failure(name, error))
    return Loggers(opened, note)


def step_figures(line: Mapping[str, Any]) -> dict[str, float]:
    """All finite numbers of a line of `metrics.jsonl` under their names, but `step`."""
    numbers = {name: number(value) for name, value in line.items() if name != "step"}
    return {name: value for name, value in numbers.items() if value is not None}


def _failure(name: str, error: BaseException) -> str:
    """The line that reports a failed logger."""
    lines = str(error).strip().splitlines()
    reason = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    return f"logger {name} failed ({reason}); the run goes on without it"
