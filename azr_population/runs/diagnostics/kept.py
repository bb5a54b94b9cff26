"""What is kept of a run in place of its directory: its settings, versions and `curves.json`.

A run directory of 100 steps takes megabytes and is not committed. Its curves are: every diagnostic
over the steps, by role but not by member, and the totals of the budget. `series` and `consumption`
read such a folder like that of a run, so recipes and comparisons can be drawn from it.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from azr_population.errors import UserError
from azr_population.files import read_json, write_atomically
from azr_population.runs.diagnostics.statistics import Series
from azr_population.runs.directory import CURVES, RunDirectory
from azr_population.runs.records import domain_of, remembered

_WHOSE = ("", "teacher", "student", "agent", "training")
"""Whose series are kept, beside those of the domain's types and the exam's strata: not those of
members and phases."""


def is_kept(run: RunDirectory) -> bool:
    """Whether the folder holds the curves of a run and not the run itself."""
    return (run.path / CURVES).is_file()


def kept_series(run: RunDirectory, name: str, of: str) -> Series:
    """As `diagnostics.series`."""
    curves = _content(run)["curves"]
    points = curves.get(_key(name, of), [])
    if isinstance(points, str):  # the name of an equal series
        points = curves[points]
    return [(int(step), float(value)) for step, value in points]


def kept_totals(run: RunDirectory) -> dict[str, Any]:
    """`consumption` of all members together."""
    return dict(_content(run)["totals"])


def kept_steps(run: RunDirectory) -> int:
    """The last step that was played."""
    return int(_content(run)["steps"])


def keep(
    run: RunDirectory,
    curves: Iterable[tuple[str, Mapping[str, Series]]],
    totals: Mapping[str, Any],
    steps: int,
    folder: Path,
) -> None:
    """Writes settings and versions, without the machine's paths, and `curves` (by diagnostic).

    Numbers have six digits. A series that equals an earlier one (the unnamed one is also that of a
    role) is written as the name of the earlier one.
    """
    config, domain = run.config(), domain_of(run)
    whose = {*_WHOSE, *domain.types, *domain.strata(int(config["exam"]["tasks_per_type"]))}
    texts: dict[str, str] = {}
    names: dict[str, str] = {}
    for diagnostic, by_whom in curves:
        for of, points in by_whom.items():
            if of in whose and points:
                rounded = [[step, float(f"{value:.6g}")] for step, value in points]
                text, key = json.dumps(rounded, separators=(",", ":")), _key(diagnostic, of)
                first = names.setdefault(text, key)
                texts[key] = text if first == key else json.dumps(first)
    config["run"]["dir"] = ""
    if config["base"]["path"]:
        config["base"]["path"] = Path(config["base"]["path"]).name
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / "config.yaml", yaml.safe_dump(config, sort_keys=False))
    told = ("python", "packages", "base", "commit")
    versions = {key: value for key, value in run.environment().items() if key in told}
    write_atomically(folder / "environment.json", json.dumps(versions, indent=1) + "\n")
    head = f'"steps": {steps},\n"totals": {json.dumps(totals)}'
    lines = ",\n".join(f"{json.dumps(key)}: {text}" for key, text in texts.items())
    write_atomically(folder / CURVES, f'{{\n{head},\n"curves": {{\n{lines}\n}}\n}}\n')


def _key(name: str, of: str) -> str:
    return f"{name} {of}".rstrip()


def _content(run: RunDirectory) -> dict[str, Any]:
    def read() -> dict[str, Any]:
        path = run.path / CURVES
        try:
            stored = read_json(path)
            missing = {"steps", "totals", "curves"} - set(stored)
            int(stored.get("steps", 0))
        except (UserError, ValueError, TypeError) as error:
            raise UserError(f"{path} cannot be read ({error}); play the run instead") from error
        if missing:
            raise UserError(f"{path} lacks {', '.join(sorted(missing))}; play the run instead")
        content: dict[str, Any] = stored
        return content

    return remembered(run, "kept", read)
