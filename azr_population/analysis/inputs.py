"""What `compare` is given: arms, each with one or more runs (seeds)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import BaseModel, FiniteFloat, ValidationError

from azr_population.analysis.azr_log import flat_lines, read_azr_log
from azr_population.analysis.frame import curve, read_run, seed_folders, tidy
from azr_population.config.effects import flat
from azr_population.domains.domain import Domain
from azr_population.domains.known import find_domain
from azr_population.domains.metric import Metric
from azr_population.errors import UserError, first_problem
from azr_population.files import read_json
from azr_population.runs.directory import RunDirectory
from azr_population.runs.records import domain_of, whole_config

FIGURES = "evaluation/figures.json"
"""Where `azr-population benchmark` leaves a run's figures."""
WEIGHTS = "base.weights"
"""The setting that holds the fingerprint of the base's weights; logs lack it."""
_EVAL_SETTINGS = (
    *("eval.tasks_per_type", "eval.seed", "task.types", "task.domain"),
    *("base.prompt_format", "engine.max_answer_tokens"),
)
_SAMPLED = ("eval.samples", "eval.final_samples")


@dataclass(frozen=True)
class ComparedRun:
    """A run directory, committed results, or a stock AZR log."""

    path: Path
    table: pd.DataFrame
    settings: Mapping[str, Any]
    """By dotted key; of a log what it prints."""
    domain: Domain | None
    is_log: bool = False
    versions: Mapping[str, Any] = field(default_factory=dict)
    figures: Mapping[str, Any] = field(default_factory=dict)
    """What `azr-population benchmark` found, as `benchmark_figures` returns it."""

    @cached_property
    def _by_metric(self) -> dict[Any, pd.DataFrame]:
        return dict(iter(self.table.groupby("metric")))

    @cached_property
    def last(self) -> int:
        """The last step recorded. AZR validates once more after it."""
        played = self.table[~self.table["metric"].str.startswith("validation")]
        return int(played["step"].max()) if len(played) else 0

    def curve(self, metric: Metric | str) -> pd.Series:
        """A metric over the steps; see `frame.curve`."""
        name = metric if isinstance(metric, str) else metric.name
        return curve(self._by_metric.get(name, self.table.iloc[:0]), metric)

    @property
    def members(self) -> int:
        """How many; a log has one."""
        counts = (self.settings.get(f"population.{of}") for of in ("teachers", "students"))
        return sum(int(count or 0) for count in counts) or 1

    def conditions(self, metric: Metric) -> dict[str, Any]:
        """What has to be equal for two values of the metric to be subtracted; None: unknown."""
        if metric.name.startswith("benchmark"):
            return {k: repr(v) for k, v in self.figures.items() if k != "mean"}
        if metric.name.startswith("validation"):
            sources = {name for name in self._by_metric if name.startswith("validation/")}
            return {"tasks of the validation": frozenset(sources)}
        if metric.name.startswith("eval/"):
            sampled = metric.name in ("eval/t0.4", "eval/t1", "eval/pass@8")
            keys = (*_EVAL_SETTINGS, *_SAMPLED * sampled)
            return {key: repr(self.settings[key]) for key in keys if key in self.settings}
        return {}

    def is_copy_of(self, other: ComparedRun) -> bool:
        """Whether both are one run: the same place, or steps with equal values and seconds."""
        columns = ["step", "role", "metric", "value"]
        copied = len(self.table) > 0 and self.table[columns].equals(other.table[columns])
        return copied or self.path.resolve() == other.path.resolve()


@dataclass(frozen=True)
class ComparedArm:
    """Runs that differ in the seed alone; `differences` checks it."""

    name: str
    runs: tuple[ComparedRun, ...]


def arms_of(arguments: Sequence[str]) -> list[ComparedArm]:
    """The arms that the arguments name, in their order.

    An argument is a run directory, a folder of runs named `seed_*`, or a stock AZR log, and may be
    given a name: `NAME=PATH`. Arguments of the same name are seeds of one arm; one without is an
    arm called by as much of its path's end as no other has.

    Raises UserError: fewer than two arms, something that is not a run, or one run (or a copy of it)
    twice in an arm.
    """
    arms: dict[str, list[ComparedRun]] = {}
    for name, path in _names(arguments):
        of_arm = arms.setdefault(name, [])
        for run in _runs(path):
            if copy := next(filter(run.is_copy_of, of_arm), None):
                raise UserError(
                    f"{run.path} and {copy.path} are one run, given twice as a seed of {name}; "
                    "leave one out"
                )
            of_arm.append(run)
    if len(arms) < 2:
        raise UserError(
            f"a comparison needs two arms, and there is {len(arms)}: pass two or more runs, or "
            "name them: one=PATH other=PATH"
        )
    return [ComparedArm(name, tuple(runs)) for name, runs in arms.items()]


def _names(arguments: Sequence[str]) -> list[tuple[str, Path]]:
    """(name, path) of each; without a name the shortest end of its path that no other one has, of a
    seed with its arm's name."""
    unnamed = {a: Path(a).resolve().parts for a in arguments if "=" not in a or Path(a).exists()}
    named: list[tuple[str, Path]] = []
    for argument in arguments:
        if argument not in unnamed:
            name, _, path = argument.partition("=")
            named.append((name, Path(path)))
            continue
        parts = unnamed[argument]
        others = [other for other in unnamed.values() if other != parts]
        least = 2 if parts[-1].startswith("seed_") else 1
        lengths = range(least, len(parts))
        distinct = (n for n in lengths if all(parts[-n:] != other[-n:] for other in others))
        named.append(("/".join(parts[-next(distinct, len(parts)) :]), Path(argument)))
    return named


def _runs(path: Path) -> list[ComparedRun]:
    if path.is_file():
        rows, settings = read_azr_log(path)
        table, code = tidy(flat_lines(rows), str(path)), find_domain("code")
        return [ComparedRun(path, table, settings, code, is_log=True)]
    if not path.is_dir():
        raise UserError(f"{path} is neither a run's folder nor a log file: there is nothing there")
    if RunDirectory(path).exists:
        return [_of_directory(path)]
    if not (seeds := seed_folders(path)):
        raise UserError(
            f"no run in {path}: there is no config.yaml in it, nor folders seed_* that have one"
        )
    return [_of_directory(seed) for seed in seeds]


def _of_directory(path: Path) -> ComparedRun:
    directory = RunDirectory(path)
    config, environment = whole_config(directory), directory.environment()
    if not {"run", "population", "base", "actor_rollout_ref"} & set(config):
        raise UserError(f"{path} is not a run's folder: its config.yaml has no settings of a run")
    packages = environment.get("packages")
    versions = dict(packages) if isinstance(packages, dict) else {}
    if "python" in environment:
        versions["python"] = environment["python"]
    settings = flat(config)
    # A base is its path, as in a log, or the name of one that ships.
    name, where = settings.pop("base.name", None), settings.pop("base.path", None)
    where = where or settings.get("actor_rollout_ref.model.path")  # of a run inside AZR
    if where or name not in (None, "hf"):
        settings["base"] = where or name
    if weights := environment.get("base"):
        settings[WEIGHTS] = str(weights)
    table = read_run(path)
    return ComparedRun(
        path,
        table[table["member"].isna()],
        settings,
        domain_of(directory),
        versions=versions,
        figures=benchmark_figures(path / FIGURES),
    )


class _Cell(BaseModel):
    value: FiniteFloat


class _Line(BaseModel):
    """A model, or a summary of several, over all benchmarks."""

    k: int
    role: str
    cells: dict[str, _Cell]


class _Figures(BaseModel):
    benchmarks: list[dict[str, Any]]
    samples: int
    temperature: float
    lines: list[_Line]


def benchmark_figures(path: Path) -> dict[str, Any]:
    """What `azr-population benchmark` left in a file: `benchmarks`, `samples`, `temperature`, and
    `mean`, pass@1 of the members' mean (of the only model, where there is one) over all benchmarks.
    Empty without a file. Raises UserError: it is damaged."""
    if not path.is_file():
        return {}
    try:
        figures = _Figures.model_validate(read_json(path))
    except ValidationError as error:
        raise UserError(
            f"{path} is damaged: {first_problem(error)}; delete it, or make it anew by "
            "azr-population benchmark"
        ) from error
    order = {"summary": 0, "base": 2}  # the first summary is the mean
    lines = [line for line in figures.lines if line.k == 1 and line.cells]
    if not lines:
        return {}
    cells = min(lines, key=lambda line: order.get(line.role, 1)).cells
    values = [cells["all"]] if "all" in cells else list(cells.values())
    mean = sum(cell.value for cell in values) / len(values)
    return {**figures.model_dump(exclude={"lines"}), "mean": mean}
