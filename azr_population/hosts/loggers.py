"""Loggers: a run's figures in TensorBoard, Weights & Biases or trackio, beside the run directory.

None of them can stop a run or change what it plays. A resumed run plays some steps again, with the
same results; they are logged once.
"""

import json
import os
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from azr_population.errors import UserError, first_line
from azr_population.files import write_atomically
from azr_population.method.run_plan import RunPlan
from azr_population.printable import redact, shareable
from azr_population.runs.directory import RunDirectory
from azr_population.runs.records import finite_or_none

CLOSE_SECONDS = 60.0
"""Seconds in which a logger has to close, such as for uploads over a broken network."""
INIT_SECONDS = 30.0
"""Seconds that a run waits for W&B's server before it continues without; W&B itself waits 90 s."""


class TensorBoardLogger:
    """Event files in `<run>/tensorboard`. The file of a resumed run begins with a purge step, at
    which TensorBoard drops the older files' later scalars."""

    def __init__(self, directory: RunDirectory, step: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        folder = directory.path / "tensorboard"
        self._writer = SummaryWriter(str(folder), purge_step=step + 1 if step else None)

    def log(self, step: int, figures: Mapping[str, float]) -> None:
        for name, value in figures.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()  # so that a full disk is noticed here

    def close(self) -> None:
        self._writer.close()


class _Tracker:
    """A run of a tracker that counts steps itself: one run there per run here. `<run>/<name>.json`
    keeps the id over there and the last step that was logged."""

    name: str

    def __init__(self, directory: RunDirectory, step: int) -> None:
        self._file = directory.path / f"{self.name}.json"
        self._state: dict[str, Any] = {"id": uuid.uuid4().hex[:8], "step": 0}
        if self._file.is_file():
            self._state |= json.loads(self._file.read_text(encoding="utf-8"))
        config = directory.config()
        self._seed, self._population = config["seed"], config["population"]["name"]
        self._options: dict[str, Any] = {
            "project": os.environ.get(f"{self.name.upper()}_PROJECT", "azr-population"),
            "group": self._population,  # so that seeds of an arm are one group
            "config": shareable(config),
            "resume": "allow",
        }
        self._run = self._open(directory)
        self._store(self._state["step"])

    def _open(self, directory: RunDirectory) -> Any:
        raise NotImplementedError

    def log(self, step: int, figures: Mapping[str, float]) -> None:
        if step > self._state["step"]:
            self._run.log(dict(figures), step=step)
            self._store(step)

    def close(self) -> None:
        self._run.finish()

    def _store(self, step: int) -> None:
        self._state["step"] = step
        write_atomically(self._file, json.dumps(self._state))


class WandbLogger(_Tracker):
    """A Weights & Biases run, with its files in `<run>/wandb`."""

    name = "wandb"

    def _open(self, directory: RunDirectory) -> Any:
        import wandb

        return wandb.init(
            **self._options,
            dir=str(directory.path),
            id=self._state["id"],
            name=f"{self._population} seed {self._seed}",
            settings=wandb.Settings(console="off", silent=True, init_timeout=INIT_SECONDS),
        )


class TrackioLogger(_Tracker):
    """A trackio run, in the database where TRACKIO_DIR says, by default in the user's cache."""

    name = "trackio"

    def _open(self, directory: RunDirectory) -> Any:
        import trackio

        # trackio goes by the name alone, so that it has to be another one for every run.
        name = f"{self._population}-seed-{self._seed}-{self._state['id']}"
        quiet: dict[str, Any] = {"embed": False, "auto_log_gpu": False, "auto_log_cpu": False}
        return trackio.init(name=name, **self._options, **quiet)


LOGGERS: dict[str, Callable[[RunDirectory, int], Any]] = {
    "tensorboard": TensorBoardLogger,
    "wandb": WandbLogger,
    "trackio": TrackioLogger,
}
"""Name, which is that of the package it needs -> opens the logger of a run at a step (0 for a new
run): an object with `log(step, figures)`, for each finished step, and `close()`. It uses none of
the run's random generators and writes only its own files in the run directory."""


class Loggers:
    """Passes figures on. A logger that fails is reported once by `note` and not called again."""

    def __init__(self, loggers: Mapping[str, Any], note: Callable[[str], None]) -> None:
        self._loggers = dict(loggers)
        self._note = note

    def log(self, step: int, figures: Mapping[str, float]) -> None:
        """Hands `figures` to every logger that still works."""
        for name, logger in list(self._loggers.items()):
            self._try(name, lambda logger=logger: logger.log(step, figures))  # type: ignore[misc]

    def close(self) -> None:
        """Closes every logger, and waits `CLOSE_SECONDS` at most for each."""
        for name, logger in self._loggers.items():
            # A daemon, so that a hanging logger does not keep the process alive.
            thread = threading.Thread(target=self._try, args=(name, logger.close), daemon=True)
            thread.start()
            thread.join(CLOSE_SECONDS)
            if thread.is_alive():
                self._note(
                    f"logger {name} did not close within {CLOSE_SECONDS:.0f} s; not waiting any "
                    "longer"
                )
        self._loggers = {}

    def _try(self, name: str, call: Callable[[], None]) -> None:
        try:
            call()
        except (Exception, SystemExit) as error:  # of any kind: it is not worth a run
            self._loggers = {key: value for key, value in self._loggers.items() if key != name}
            self._note(_failure(name, error))


def check_loggers(plan: RunPlan) -> None:
    """Raises `UserError` if the package of a logger is missing."""
    for name in plan.config.logger.names:
        if find_spec(name) is None:
            raise UserError(
                f"logger={name} needs the package {name}; install it with: pip install {name}"
            )


def open_loggers(
    names: Sequence[str], directory: RunDirectory, step: int, note: Callable[[str], None]
) -> Loggers:
    """Opens these loggers for a run that is at `step`."""
    opened: dict[str, Any] = {}
    for name in dict.fromkeys(names):
        try:
            opened[name] = LOGGERS[name](directory, step)
        except (Exception, SystemExit) as error:  # as in `Loggers`
            note(_failure(name, error))
    return Loggers(opened, note)


def step_figures(line: Mapping[str, Any]) -> dict[str, float]:
    """All finite numbers of a line of `metrics.jsonl` under their names, but `step`."""
    numbers = {name: finite_or_none(value) for name, value in line.items() if name != "step"}
    return {name: value for name, value in numbers.items() if value is not None}


def _failure(name: str, error: BaseException) -> str:
    kind, reason = type(error).__name__, redact(first_line(error))
    return f"logger {name} failed ({kind}: {reason}); the run continues without it"
