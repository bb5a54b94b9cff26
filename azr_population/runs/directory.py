"""Reading and writing a run directory.

    config.yaml  environment.json  metrics.jsonl  matches.jsonl  lineage.jsonl  tasks.jsonl
    members/<name>/  checkpoints/step_<n>/  report.html

Each `.jsonl` file gets whole lines, flushed at the end of a step; a line torn by a crash is skipped
by readers and cut off on resume. One process at a time writes a run (`locked`).
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from azr_population.errors import UserError

RECORDS = ("metrics", "matches", "lineage", "tasks")
CURVES = "curves.json"
"""What is kept of a run in the place of its records; see `reports.diagnostics.kept`."""
_MEND = "mend it by hand, put back a copy, or play the run anew"


class RunDirectory:
    """One run's folder. Nothing is created until `create` is called."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @property
    def checkpoints(self) -> Path:
        """Folder of the `step_<n>` checkpoints."""
        return self.path / "checkpoints"

    @property
    def members(self) -> Path:
        """Folder of the PEFT folders, one per member."""
        return self.path / "members"

    def refuse_unless_new(self) -> None:
        """Raises `UserError` when the folder holds something already."""
        if self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
            is_run = (self.path / "config.yaml").is_file()
            way_out = f"go on with it by: azr-population resume {self.path}, or " if is_run else ""
            raise UserError(f"run.dir={self.path} is not empty; {way_out}choose another run.dir")

    def refuse_curves(self) -> None:
        """Raises `UserError` when there are but the curves of a run here."""
        if (self.path / CURVES).is_file():
            raise UserError(
                f"{self.path} keeps the curves of a run, not the run; draw them by "
                "azr-population compare, or azr-population recipe NAME --kept"
            )

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keeps every other process from writing this run; freed even by a crash.

        Raises:
            UserError: another process has it.
        """
        with (self.path / ".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise UserError(f"run.dir={self.path} is in use by another process") from error
            yield

    def create(self, config_yaml: str, environment: dict[str, Any]) -> None:
        """Starts a new run here.

        Raises:
            UserError: the folder holds something already, or cannot be written.
        """
        self.refuse_unless_new()
        try:
            self.members.mkdir(parents=True)
            self.checkpoints.mkdir()
            write_atomically(self.path / "environment.json", json.dumps(environment, indent=2))
            # Last, because a folder with a config.yaml is what counts as a run.
            write_atomically(self.path / "config.yaml", config_yaml)
        except OSError as error:
            raise UserError(f"run.dir={self.path} cannot be written: {error.strerror}") from error

    def append(self, record: str, rows: Iterable[dict[str, Any]]) -> None:
        """Adds one JSON line per row to `<record>.jsonl`."""
        text = "".join(_line(row) for row in rows)
        with (self.path / f"{record}.jsonl").open("a", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())

    def truncate(self, last_step: int) -> None:
        """Drops what was recorded after `last_step`, and any torn line, from every record."""
        for record in RECORDS:
            path = self.path / f"{record}.jsonl"
            if path.exists():
                kept = (row for row in self._read(record) if row["step"] <= last_step)
                text = "".join(_line(row) for row in kept)
                write_atomically(path, text)

    def config(self) -> dict[str, Any]:
        """The resolved configuration as plain dicts.

        Raises:
            UserError: there is none, or it cannot be read.
        """
        from omegaconf import OmegaConf
        from yaml import YAMLError

        path = self.path / "config.yaml"
        if not path.is_file():
            raise UserError(f"no run at {self.path}: there is no config.yaml in it")
        try:
            found = OmegaConf.to_container(OmegaConf.load(path))
        except (YAMLError, OSError, ValueError) as error:
            mark = getattr(error, "problem_mark", None)
            where = f" (line {mark.line + 1})" if mark else ""
            raise UserError(f"{path} is no readable YAML{where}; {_MEND}") from error
        if not isinstance(found, dict):
            raise UserError(f"{path} holds no settings by name; {_MEND}")
        return {str(key): value for key, value in found.items()}

    def environment(self) -> dict[str, Any]:
        """Versions, platform, command; empty when it was never written."""
        path = self.path / "environment.json"
        return json.loads(path.read_text()) if path.is_file() else {}

    def metrics(self) -> Iterator[dict[str, Any]]:
        """One record per step."""
        return self._read("metrics")

    def matches(self) -> Iterator[dict[str, Any]]:
        """One record per match."""
        return self._read("matches")

    def lineage(self) -> Iterator[dict[str, Any]]:
        """One record per replacement."""
        return self._read("lineage")

    def tasks(self) -> Iterator[dict[str, Any]]:
        """One record per valid task, with the answers and verdicts."""
        return self._read("tasks")

    def _read(self, record: str) -> Iterator[dict[str, Any]]:
        path = self.path / f"{record}.jsonl"
        if not path.is_file():
            return
        with path.open(encoding="utf-8", errors="replace") as file:
            for line in file:
                try:
                    row = json.loads(line)
                except ValueError:
                    continue
                if isinstance(row, dict):
                    yield row


def _line(row: dict[str, Any]) -> str:
    """One line of strict JSON: what is not finite (a blown-up loss) becomes null."""
    try:
        return json.dumps(row, separators=(",", ":"), allow_nan=False) + "\n"
    except ValueError:
        return json.dumps(_finite(row), separators=(",", ":")) + "\n"


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_atomically(path: Path, text: str) -> None:
    """Writes to a temporary name, syncs and renames: the file is old or new, never half."""
    temporary = path.with_name(f".{path.name}.tmp")
    with temporary.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


@contextmanager
def replacing_folder(final: Path) -> Iterator[Path]:
    """Gives a path to make a folder at, and puts that in the place of `final`, synced to disk.

    An error on the way leaves `final` as it was.
    """
    temporary = final.with_name(f".{final.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    yield temporary
    for path in temporary.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
    old = final.with_name(f".{final.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if final.exists():
        os.rename(final, old)
    os.rename(temporary, final)
    shutil.rmtree(old, ignore_errors=True)
    directory = os.open(final.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
