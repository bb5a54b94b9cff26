"""Reading and writing a run directory.

    config.yaml  environment.json  metrics.jsonl  matches.jsonl  lineage.jsonl  tasks.jsonl
    evals.jsonl  validations.jsonl  completions.jsonl  members/<name>/  checkpoints/step_<n>/
    snapshots/step_<n>/<name>/  report.html

The results that recipes commit have config.yaml, environment.json, metrics.jsonl.gz and
lineage.jsonl only.

`completions.jsonl` is for reading (`method/completion_log.py`). At 32 MB it becomes
`completions.older.jsonl` and replaces the previous one.

Each `.jsonl` file gets whole lines, flushed at the end of a step. Readers skip a line that a crash
cut off, and resume removes it. One process at a time writes a run (`locked`).
"""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import date
from difflib import get_close_matches
from itertools import chain, count
from pathlib import Path
from typing import Any

from azr_population.errors import UserError
from azr_population.files import (
    check_name,
    lock,
    open_own,
    read_json,
    read_yaml,
    refuse_unplain,
    sync,
    write_atomically,
    writing,
)
from azr_population.runs import jsonl
from azr_population.versions import refuse_older_format

RECORDS = ("metrics", "matches", "lineage", "tasks", "evals", "validations", "completions")
BOUNDED = {"completions": 32_000_000}
"""Bytes at which a record's file replaces its older file."""


def next_folder(population: str, reserve: bool = False) -> Path:
    """The first folder `runs/<population>-<date>-<n>` that does not exist. With `reserve` it is
    made, so that no other process gets it too."""
    name = f"{population}-{date.today().isoformat()}"
    number = count(1)
    while True:
        path = Path("runs", f"{name}-{next(number)}")
        if path.exists():
            continue
        with writing(f"run.dir={path}"), suppress(FileExistsError):
            if reserve:
                path.mkdir(parents=True)
            return path


_DEPTHS = ("*", "*/*", "*/*/*", "*/*/*/*")
"""`runs/recipes/defaults/4t4s/seed_1` is the deepest place where our own commands put a run."""


def runs_in(folder: Path) -> list[Path]:
    """The folders of runs in `folder`, which is none itself, sorted by path; at most four deep."""
    configs = (path for depth in _DEPTHS for path in folder.glob(f"{depth}/config.yaml"))
    return sorted(path.parent for path in configs)


def _holds_run(folder: Path) -> bool:
    return (folder / "config.yaml").is_file()


class RunDirectory:
    """One run's folder. Nothing is created until `create` is called."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.members = self.path / "members"
        """The folder with a PEFT folder for each member."""
        self.checkpoints = self.path / "checkpoints"
        """The folder of the `step_<n>` checkpoints."""
        self.snapshots = self.path / "snapshots"
        """The folder of the `step_<n>` folders that hold the members of that step."""

    @property
    def exists(self) -> bool:
        """Whether there is a run in the folder."""
        return _holds_run(self.path)

    @property
    def config_file(self) -> Path:
        """The file that makes the folder a run. Raises UserError: there is none."""
        path = self.path / "config.yaml"
        if not path.exists():
            below = (run for depth in _DEPTHS[:3] for run in sorted(self.path.glob(depth)))
            names = [path.name for path in self.path.parent.glob("*")]
            beside = map(self.path.with_name, get_close_matches(self.path.name, names))
            near = next(filter(_holds_run, chain(self.path.parents, below, beside)), None)
            hint = f"; did you mean {near}?" if near else ", which train and demo write"
            raise UserError(f"no run at {self.path}: there is no config.yaml in it{hint}")
        return path

    def member(self, name: str) -> Path:
        """The member's PEFT folder. Raises UserError: no member can have that name."""
        return self.members / check_name(name)

    def refuse_unless_new(self) -> None:
        """Raises UserError if the folder is not empty."""
        if self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
            resume = f"continue it with: azr-population resume {self.path} run.steps=N, or "
            way_out = resume if self.exists else ""
            raise UserError(
                f"run.dir={self.path} is not empty; {way_out}choose another run.dir", key="run.dir"
            )

    @property
    def results_only(self) -> bool:
        """Whether the folder only has a run's settings and metrics (`metrics.jsonl.gz`), as recipes
        commit them."""
        return (self.path / "metrics.jsonl.gz").is_file()

    def refuse_results_only(self) -> None:
        """Raises UserError if the folder only has a run's settings and metrics."""
        if self.results_only:
            raise UserError(
                f"{self.path} has a run's metrics and not its members or tasks; look at them by "
                "azr-population compare, or azr-population recipe NAME"
            )

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keeps other processes from writing this run; a crash releases it too. Raises UserError:
        another process has it, it contains a link, or a folder is in the place of a file or the
        other way round."""
        refuse_unplain(
            self.path, below=(self.members.name, self.checkpoints.name, self.snapshots.name)
        )
        for folder in (self.members, self.checkpoints, self.snapshots):
            if folder.exists() and not folder.is_dir():
                raise UserError(f"{folder} is not a folder; move it away")
        for path in (path for record in RECORDS for path in self._files(record)):
            if path.is_dir():
                raise UserError(f"{path} is a folder, and a file belongs there; move it away")
        with lock(self.path / ".lock", f"run.dir={self.path} is in use by another process"):
            yield

    def create(self, config_yaml: str, environment: dict[str, Any]) -> None:
        """Starts a new run here. Raises UserError: the folder is not empty or cannot be written."""
        self.refuse_unless_new()
        with writing(f"run.dir={self.path}"):
            self.members.mkdir(parents=True)
            self.checkpoints.mkdir()
            write_atomically(self.path / "environment.json", json.dumps(environment, indent=2))
            # Last, because a folder with a config.yaml counts as a run.
            write_atomically(self.path / "config.yaml", config_yaml)

    def append(self, record: str, rows: Iterable[dict[str, Any]]) -> None:
        """Adds one JSON line per row to `<record>.jsonl`."""
        text = "".join(jsonl.line(row) for row in rows)
        older, path = self._files(record)
        with open(path, "a", encoding="utf-8", opener=open_own) as file:
            file.write(text)
            sync(file)
            size = file.tell()
        if size > BOUNDED.get(record, size):
            os.replace(path, older)

    def truncate(self, last_step: int) -> None:
        """Removes what was recorded after `last_step`: lines of all records, and snapshots. Earlier
        lines stay as they are, damaged ones too."""
        for step, folder in steps(self.snapshots):
            if step > last_step:
                shutil.rmtree(folder)
        for record in RECORDS:
            older, path = self._files(record)
            _truncate(path, last_step)
            if path.exists() and path.stat().st_size:
                continue
            # The file was replaced after that step, so the older one is the current one again.
            if _truncate(older, last_step):
                os.replace(older, path)

    def last_recorded_step(self) -> int:
        """The last step in `metrics.jsonl`; 0 if there is none."""
        return max((row["step"] for row in self.read("metrics")), default=0)

    def refuse_lost_steps(self, step: int, way_out: str = "") -> None:
        """Raises UserError: the metrics end before `step`, the checkpoint's, which a run never
        leaves; a resume would go on behind a gap. `way_out` continues from an earlier
        checkpoint."""
        last = self.last_recorded_step()
        move = f"move {self.checkpoints}/step_{step} away to continue from the checkpoint before it"
        if last < step:
            raise UserError(
                f"{self.path}/metrics.jsonl ends at step {last}, and the checkpoint is of step "
                f"{step}; restore the lines between, or {way_out or move}"
            )

    def config(self) -> dict[str, Any]:
        """The resolved configuration as plain data. Raises UserError: there is none, or it cannot
        be read."""
        settings = read_yaml(self.config_file, dumped=self.results_only)
        refuse_older_format(self.config_file, settings)
        return settings

    def environment(self) -> dict[str, Any]:
        """Versions, platform, command; empty if the run has none. Raises UserError: it cannot be
        read."""
        path = self.path / "environment.json"
        stored = read_json(path) if path.exists() else {}
        return stored if isinstance(stored, dict) else {}

    def check_base(self, weights: str, fix: str = "") -> None:
        """Raises UserError if the run's base has another hash than `weights`; `fix` is the way
        out."""
        recorded = self.environment().get("base")
        if recorded and recorded != weights:
            raise UserError(
                f"{self.path} was made on a base with the hash {recorded}, and this one "
                f"has {weights}{fix}"
            )

    def unreadable(self) -> dict[str, int]:
        """The number of lines that readers skip, for each record with any. A last line that a crash
        cut off does not count."""
        counts: Counter[str] = Counter()
        for record in RECORDS:
            for line in self._lines(record):
                counts[record] += line.endswith(b"\n") and jsonl.parse(line) is None
        return {record: count for record, count in counts.items() if count}

    def read(self, record: str) -> Iterator[dict[str, Any]]:
        """The lines of one of `RECORDS` that parse, in their order."""
        return (row for line in self._lines(record) if (row := jsonl.parse(line)) is not None)

    def _lines(self, record: str) -> Iterator[bytes]:
        for path in self._files(record):
            if path.is_file():
                with path.open("rb") as file:
                    yield from jsonl.bounded(file)
        if record == "metrics" and self.results_only:
            source = self.path / "metrics.jsonl.gz"
            try:
                with gzip.open(source) as packed:
                    yield from jsonl.bounded(packed)
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                raise UserError(f"{source} is damaged ({error}); restore it") from error

    def _files(self, record: str) -> tuple[Path, Path]:
        """The files with the older and the newer lines; only `BOUNDED` records have older ones."""
        return self.path / f"{record}.older.jsonl", self.path / f"{record}.jsonl"


def split_address(address: str | Path) -> tuple[RunDirectory, str | None]:
    """The run at an address, and the member's name in RUN/MEMBER; None in RUN, and where no run
    is."""
    path = Path(address)
    run, parent = RunDirectory(path), RunDirectory(path.parent)
    return (parent, path.name) if parent.exists and not run.exists else (run, None)


def member_folders(folder: Path) -> list[Path]:
    """The members' PEFT folders in `members/` or in a snapshot, by name; `members/best`, a copy, is
    left out. Raises UserError: a folder has a name that no member can have."""
    folders = (path for path in sorted(folder.glob("[!.]*_*")) if path.is_dir())
    return [path for path in folders if check_name(path.name)]


def _truncate(path: Path, last_step: int) -> bool:
    """Cuts the file after the last whole line of a step up to `last_step`. Returns whether it was
    longer."""
    if not path.exists():
        return False
    end = 0
    with path.open("rb") as file:
        for line in file:
            row = jsonl.parse(line)
            if row is not None and row["step"] <= last_step and line.endswith(b"\n"):
                end = file.tell()
    with open(path, "rb+", opener=open_own) as file:
        later = os.fstat(file.fileno()).st_size > end
        file.truncate(end)
        sync(file)
    return later


def steps(folder: Path) -> list[tuple[int, Path]]:
    """The `step_<n>` folders in `folder`, oldest first; none if it does not exist."""
    if not folder.is_dir():
        return []
    matches = ((re.fullmatch(r"step_(\d+)", path.name), path) for path in folder.iterdir())
    return sorted((int(match[1]), path) for match, path in matches if match)
