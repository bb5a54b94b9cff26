"""What is compared: arms, each with one or more runs (seeds), from the command's arguments."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from azr_population.config.differences import REPEATED, touches_only
from azr_population.domains.domain import Domain
from azr_population.domains.known import find_domain
from azr_population.errors import UserError
from azr_population.pages.comparison.azr_log import (
    LACKING,
    Rows,
    azr_series,
    last_step,
    read_azr_log,
    sources,
)
from azr_population.runs import diagnostics
from azr_population.runs.diagnostics import Series
from azr_population.runs.diagnostics.from_evaluation import (
    FIGURES,
    conditions,
    headline,
    read_figures,
)
from azr_population.runs.directory import RunDirectory
from azr_population.runs.records import domain_of, number

WEIGHTS = "base.weights"
"""The setting that holds the fingerprint of the base's weights; older runs and logs lack it."""


@dataclass(frozen=True)
class Run:
    """One run: a run directory, or the log of a stock AZR run with what can be read from it, or a
    table of `evaluate` alone."""

    path: Path
    directory: RunDirectory | None
    log: Rows = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Flat, `population.rows` and the like; of a log what it tells."""
    versions: Mapping[str, str] = field(default_factory=dict)
    table: Mapping[str, Any] = field(default_factory=dict)
    """What `evaluate` found, where it was given beside the run."""

    @property
    def only_evaluated(self) -> bool:
        """Whether it is a table of `evaluate` alone."""
        return self.directory is None and not self.log

    @property
    def kind(self) -> str:
        """What it is, in words."""
        if self.directory is not None:
            return "our run"
        return "table of evaluate" if self.only_evaluated else "stock AZR log"

    @cached_property
    def figures(self) -> Mapping[str, Any]:
        """What `evaluate` found of it; {} where nothing is known."""
        if self.table or self.directory is None:
            return self.table
        return read_figures(self.path / FIGURES)

    @property
    def name(self) -> str:
        """The folder's or file's name."""
        return self.path.resolve().name

    def series(self, name: str) -> Series:
        """A measure of whoever proposes or solves; empty where there is none."""
        if name == "benchmarks" and self.table:
            value = headline(self.table)
            return [] if value is None else [(0, value)]
        if self.directory is None:
            return azr_series(self.log, name)
        return diagnostics.series(self.directory, name)

    def conditions(self, name: str) -> Any:
        """What has to be equal for a value of the measure to be compared with another run's."""
        if name == "benchmarks":
            return conditions(self.figures)
        if name == "validation" and self.directory is None:
            return sources(self.log)
        if name == "validation" and self.directory is not None:
            return frozenset(diagnostics.readings(self.directory, name)) - {""}
        return None

    def lacks(self, name: str) -> str:
        """Why it has no value of a measure, in two words."""
        if name == "benchmarks":
            return "not evaluated"
        if self.directory is None:
            return "only evaluated" if self.only_evaluated else LACKING.get(name, "not logged")
        return "no validation" if name == "validation" else "not recorded"

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
            return repr((self.log, self.table))
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


def domains_of(arms: Sequence[Arm]) -> list[Domain]:
    """The domains that the arms play, each once; AZR's logs are of `code`."""
    runs = [run.directory for arm in arms for run in arm.runs]
    played = [find_domain("code") if run is None else domain_of(run) for run in runs]
    return list({type(domain): domain for domain in played}.values())


def are_mixed(arms: Sequence[Arm]) -> bool:
    """Whether stock logs stand against our own runs, which measure some things otherwise."""
    kinds = {run.kind for arm in arms for run in arm.runs if not run.only_evaluated}
    return len(kinds) > 1


def arms_of(arguments: Sequence[str]) -> list[Arm]:
    """The arms that the arguments name, in their order.

    An argument is a run directory, a folder of runs named `seed_*`, a stock AZR log, or a table of
    `evaluate`, and may be given a name: `NAME=PATH`. Arguments given the same name are seeds of one
    arm; one without is an arm of its own, called by as much of its path's end as no other one has.
    Tables under the name of other runs are of these, in their order.

    Raises UserError: fewer than two arms, something that is no run, one run twice in an arm, or not
    as many tables as runs.
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
    return [Arm(name, _with_tables(name, runs)) for name, runs in found.items()]


def _with_tables(name: str, runs: Sequence[Run]) -> tuple[Run, ...]:
    """The runs of an arm, each with the table that was given for it."""
    tables = [run for run in runs if run.only_evaluated]
    played = [run for run in runs if run not in tables]
    if not tables or not played:
        return tuple(runs)
    if len(tables) != len(played):
        raise UserError(
            f"{name} has {len(played)} runs and {len(tables)} tables of evaluate; give one for "
            "each run, in the same order"
        )
    return tuple(replace(run, table=table.table) for run, table in zip(played, tables, strict=True))


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
    if path.is_file() and path.suffix == ".json" and (found := read_figures(path)):
        return [Run(path, None, table=found)]
    if path.is_file():
        rows, settings = read_azr_log(path)
        return [Run(path, None, rows, settings)]
    if not path.is_dir():
        raise UserError(f"{path} is neither a run's folder nor a log file: there is nothing there")
    if (path / "config.yaml").is_file():
        return [_of_directory(path)]
    if (table := path / Path(FIGURES).name).is_file() and (found := read_figures(table)):
        return [Run(table, None, table=found)]
    seeds = sorted(
        (one for one in path.glob("seed_*") if (one / "config.yaml").is_file()), key=_seed
    )
    if not seeds:
        raise UserError(
            f"no run in {path}: there is no config.yaml in it, nor folders seed_* that have one, "
            "nor a table of evaluate"
        )
    return [_of_directory(one) for one in seeds]


def _of_directory(path: Path) -> Run:
    directory = RunDirectory(path)
    environment = directory.environment()
    packages = environment.get("packages")
    versions = {str(k): str(v) for k, v in packages.items()} if isinstance(packages, dict) else {}
    if "python" in environment:
        versions["python"] = str(environment["python"])
    config = directory.config()
    if not {"run", "population", "base", "actor_rollout_ref"} & set(config):
        raise UserError(f"{path} is no run's folder: its config.yaml has no settings of a run")
    settings = flat(config)
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
