"""What is compared: arms, each with one or more runs (seeds), from the command's arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from azr_population.config.differences import REPEATED, touches_only
from azr_population.errors import UserError
from azr_population.pages.comparison.azr_log import Rows, azr_series, last_step, read_azr_log
from azr_population.runs import diagnostics
from azr_population.runs.diagnostics import Series
from azr_population.runs.directory import RunDirectory
from azr_population.runs.records import number

WEIGHTS = "base.weights"
"""The setting that holds the fingerprint of the base's weights; older runs and logs lack it."""


@dataclass(frozen=True)
class Run:
    """One run: a run directory, or the log of a stock AZR run with what can be read from it."""

    path: Path
    directory: RunDirectory | None
    log: Rows = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Flat, `population.rows` and the like; of a log what it tells."""
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The folder's or file's name."""
        return self.path.resolve().name

    def series(self, name: str) -> Series:
        """A measure of whoever proposes or solves; empty where there is none."""
        if self.directory is None:
            return azr_series(self.log, name)
        return diagnostics.series(self.directory, name)

    @cached_property
    def last(self) -> int:
        """The last step recorded; 0 before the first. Read once, so that a page about a run that
        goes on says one thing throughout."""
        if self.directory is None:
            return last_step(self.log)
        return diagnostics.last_step(self.directory)

    @property
    def identity(self) -> str:
        """What two runs share that are one run played or copied twice: seed and settings, of a log
        its rows."""
        if self.directory is None:
            return repr(self.log)
        told = {k: self.settings[k] for k in sorted(self.settings) if not touches_only(k, REPEATED)}
        return repr(told) if "seed" in told else str(self.path.resolve())

    @property
    def planned(self) -> int | None:
        """The steps that it is to have; None where unknown."""
        steps = number(self.settings.get("run.steps"))
        return None if steps is None else int(steps)

    @property
    def unfinished(self) -> bool:
        """Whether it is known to have more steps than are recorded."""
        return self.planned is not None and self.last < self.planned

    def consumption(self, last: int) -> dict[str, Any]:
        """What all members consumed up to step `last`; of a log the totals that it holds."""
        if self.directory is not None:
            return diagnostics.consumption(self.directory, last)["all"]
        steps = {step for step in self.log if 0 < step <= last}  # step 0 is a validation
        total: dict[str, Any] = {"members": 1, "steps": len(steps)}
        for key in ("tokens", "seconds"):
            if values := [value for step, value in azr_series(self.log, key) if step in steps]:
                total[key] = sum(values)
        return total

    @property
    def solver(self) -> str | None:
        """The role of those who solve; None where the settings do not tell."""
        students = self.settings.get("population.students")
        return None if students is None else "student" if students else "agent"


@dataclass(frozen=True)
class Arm:
    """Runs that differ in nothing but the seed, hopefully; `differences` checks it."""

    name: str
    runs: tuple[Run, ...]

    @cached_property
    def independent(self) -> tuple[Run, ...]:
        """The runs without those that repeat another one: of these the one that got furthest."""
        found: dict[str, Run] = {}
        for run in self.runs:
            same = found.setdefault(run.identity, run)
            if run.last > same.last:
                found[run.identity] = run
        return tuple(found.values())


def are_mixed(arms: Sequence[Arm]) -> bool:
    """Whether stock logs stand against our own runs, which measure some things otherwise."""
    return len({run.directory is None for arm in arms for run in arm.runs}) > 1


def arms_of(arguments: Sequence[str]) -> list[Arm]:
    """The arms that the arguments name, in their order.

    An argument is a run directory, a folder of runs named `seed_*`, or a stock AZR log, and may be
    given a name: `NAME=PATH`. Arguments given the same name are seeds of one arm; one without is
    an arm of its own, called by as much of its path's end as no other one has.

    Raises:
        UserError: fewer than two arms, something that is no run, or one run twice in an arm.
    """
    found: dict[str, list[Run]] = {}
    for name, path in _names(arguments):
        own = found.setdefault(name, [])
        for run in _runs(path):
            if run.path.resolve() in [one.path.resolve() for one in own]:
                raise UserError(f"{run.path} is given twice as a seed of {name}; leave one out")
            own.append(run)
    if len(found) < 2:
        raise UserError(
            f"a comparison needs two arms, and there is {len(found)}: pass two or more runs, or "
            "name them: one=PATH other=PATH"
        )
    return [Arm(name, tuple(runs)) for name, runs in found.items()]


def flat(config: Any, prefix: str = "") -> dict[str, Any]:
    """Nested dicts as `{"population.rows": 24}`; an empty dict stays as a value."""
    if not isinstance(config, dict) or not config:
        return {prefix: config} if prefix else {}
    found: dict[str, Any] = {}
    for key, value in config.items():
        found |= flat(value, f"{prefix}.{key}" if prefix else str(key))
    return found


def _names(arguments: Sequence[str]) -> list[tuple[str, Path]]:
    """(arm, path) of each argument."""
    split = [_split(argument) for argument in arguments]
    ends = [path.resolve().parts for name, path in split if name is None]
    return [
        (_end(path.resolve().parts, ends) if name is None else name, path) for name, path in split
    ]


def _split(argument: str) -> tuple[str | None, Path]:
    name, equals, rest = argument.partition("=")
    if equals and not Path(argument).exists():
        return name, Path(rest)
    return None, Path(argument)


def _end(parts: tuple[str, ...], others: Sequence[tuple[str, ...]]) -> str:
    """The shortest end of a path that tells it from all others; of a seed its arm's name too."""
    least = 2 if parts[-1].startswith("seed_") else 1
    for length in range(least, len(parts)):
        if all(other[-length:] != parts[-length:] for other in others if other != parts):
            return "/".join(parts[-length:])
    return "/".join(parts)


def _runs(path: Path) -> list[Run]:
    if path.is_file():
        rows, settings = read_azr_log(path)
        return [Run(path, None, rows, settings)]
    if not path.is_dir():
        raise UserError(f"{path} is neither a run's folder nor a log file: there is nothing there")
    if (path / "config.yaml").is_file():
        return [_of_directory(path)]
    seeds = sorted(
        (one for one in path.glob("seed_*") if (one / "config.yaml").is_file()), key=_seed
    )
    if not seeds:
        raise UserError(
            f"no run in {path}: there is no config.yaml in it, nor folders seed_* that have one"
        )
    return [_of_directory(one) for one in seeds]


def _of_directory(path: Path) -> Run:
    directory = RunDirectory(path)
    environment = directory.environment()
    packages = environment.get("packages")
    versions = {str(k): str(v) for k, v in packages.items()} if isinstance(packages, dict) else {}
    if "python" in environment:
        versions["python"] = str(environment["python"])
    settings = flat(directory.config())
    # A base is its path, as in a log, or the name of one that ships: "hf" without the path, as in
    # what is kept of a run, names none.
    name, where = settings.pop("base.name", None), settings.pop("base.path", None)
    where = where or settings.get("actor_rollout_ref.model.path")  # of a run inside AZR
    if where or name not in (None, "hf"):
        settings["base"] = where or name
    if weights := environment.get("base"):
        settings[WEIGHTS] = str(weights)
    return Run(path, directory, {}, settings, versions)


def _seed(path: Path) -> tuple[int, str]:
    digits = path.name.removeprefix("seed_")
    return (int(digits) if digits.isdecimal() else 1 << 30, path.name)
