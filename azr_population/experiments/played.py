"""A run as a recipe sees it: a run directory, or a folder of `recipes/runs` that keeps its curves.

A run directory of 100 steps weighs tens of megabytes and is not committed. What recipes draw of it
is, as `curves.json` beside the run's `config.yaml`: every diagnostic over the steps, by role but
not by member, and the totals of the budget. So every table and figure can be drawn again, and
seeds be added, without playing everything anew.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import yaml

from azr_population.errors import UserError
from azr_population.reports.diagnostics import DIAGNOSTICS, Series, consumption, series
from azr_population.reports.diagnostics.records import config_of, roles_of
from azr_population.runs import RunDirectory
from azr_population.runs.directory import write_atomically

CURVES = "curves.json"
_KEPT = ("", "teacher", "student", "agent", "code_o", "code_i", "code_f", "training")
"""Whose series are kept; those of members and phases are not."""


class Played(Protocol):
    """What recipes ask of a run."""

    path: Path

    def curve(self, name: str, of: str) -> Series:
        """A diagnostic of a role, as `reports.diagnostics.series`."""

    @property
    def last_step(self) -> int:
        """The last step that is recorded, 0 without any."""

    @property
    def totals(self) -> Mapping[str, Any]:
        """`consumption` of all members together."""

    @property
    def learning_rates(self) -> dict[str, Any]:
        """By role, of the roles that the run has."""


class DirectoryRun:
    """A run directory, also an unfinished one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.directory = RunDirectory(path)

    def curve(self, name: str, of: str) -> Series:
        """See `Played`."""
        return series(self.directory, name, of)

    @property
    def last_step(self) -> int:
        """See `Played`."""
        record = self.path / "metrics.jsonl"
        for line in reversed(record.read_bytes().splitlines() if record.is_file() else []):
            try:
                return int(json.loads(line)["step"])
            except (ValueError, KeyError, TypeError):
                continue  # torn by a crash
        return 0

    @property
    def totals(self) -> Mapping[str, Any]:
        """See `Played`."""
        return consumption(self.directory)["all"]

    @property
    def learning_rates(self) -> dict[str, Any]:
        """See `Played`."""
        roles = dict.fromkeys(roles_of(self.directory).values())
        rates = {role: config_of(self.directory, "population", f"{role}_lr") for role in roles}
        return {role: rate for role, rate in rates.items() if rate is not None}


class KeptRun:
    """A folder that `keep` wrote."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def _content(self) -> dict[str, Any]:
        try:
            found = json.loads((self.path / CURVES).read_text(encoding="utf-8"))
            found["steps"], found["curves"], found["totals"], found["learning_rates"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UserError(
                f"{self.path / CURVES} cannot be read ({error}); play the run by leaving out --kept"
            ) from error
        content: dict[str, Any] = found
        return content

    def curve(self, name: str, of: str) -> Series:
        """See `Played`."""
        DIAGNOSTICS.find(name)
        found = self._content["curves"].get(f"{name} {of}".rstrip(), [])
        if isinstance(found, str):  # the same as another one
            found = self._content["curves"][found]
        return [(int(step), float(value)) for step, value in found]

    @property
    def last_step(self) -> int:
        """See `Played`."""
        return int(self._content["steps"])

    @property
    def totals(self) -> Mapping[str, Any]:
        """See `Played`."""
        totals: dict[str, Any] = self._content["totals"]
        return totals

    @property
    def learning_rates(self) -> dict[str, Any]:
        """See `Played`."""
        rates: dict[str, Any] = self._content["learning_rates"]
        return rates

    @property
    def commit(self) -> str | None:
        """The checkout's commit when it was kept."""
        return self._content.get("commit")


def played(path: Path) -> DirectoryRun | KeptRun:
    """The run in a folder of either kind."""
    return KeptRun(path) if (path / CURVES).is_file() else DirectoryRun(path)


def keep(run: DirectoryRun, folder: Path, commit: str | None) -> None:
    """Writes the run's `config.yaml` and `curves.json` into `folder`, without the machine's paths.

    Numbers have six digits. A series that equals an earlier one (that of the only role that has
    any is the unnamed one as well) is given by that one's name.
    """
    curves: dict[str, Any] = {}
    names: dict[str, str] = {}
    for diagnostic in DIAGNOSTICS:
        for of, points in diagnostic.function(run.directory).items():
            if of not in _KEPT or not points:
                continue
            key = f"{diagnostic.name} {of}".rstrip()
            rounded = [[step, float(f"{value:.6g}")] for step, value in points]
            first = names.setdefault(json.dumps(rounded), key)
            curves[key] = rounded if first == key else first
    head = {
        "commit": commit,
        "steps": run.last_step,
        "learning_rates": run.learning_rates,
        "totals": run.totals,
    }
    lines = [f'"{key}": {json.dumps(value)}' for key, value in head.items()]
    series_lines = [
        f'"{key}": {json.dumps(value, separators=(",", ":"))}' for key, value in curves.items()
    ]
    config = run.directory.config()
    config["run"]["dir"], config["base"]["path"] = "", None
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / "config.yaml", yaml.safe_dump(config, sort_keys=False))
    body = ",\n".join([*lines, '"curves": {\n' + ",\n".join(series_lines) + "\n}"])
    write_atomically(folder / CURVES, f"{{\n{body}\n}}\n")
