"""What `compare` is given: arms, each with one or more runs (seeds)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from azr_population.analysis.azr_log import flat_lines, last_step, read_azr_log, sources
from azr_population.analysis.frame import curve, read_run, seed_folders, tidy
from azr_population.config.effects import REPEATED, flat, touches_only
from azr_population.domains.domain import Domain
from azr_population.domains.known import find_domain
from azr_population.domains.metric import Metric
from azr_population.errors import UserError
from azr_population.files import read_json
from azr_population.runs.directory import RunDirectory
from azr_population.runs.records import domain_of, number, whole_config

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
    """A run directory, committed results, a stock AZR log, or benchmark figures alone."""

    path: Path
    kind: str
    """In words: `run`, `stock AZR log`, `benchmark figures`."""
    table: pd.DataFrame
    last: int = 0
    """The last step recorded."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """By dotted key; of a log what it prints."""
    versions: Mapping[str, str] = field(default_factory=dict)
    figures: Mapping[str, Any] = field(default_factory=dict)
    """What `azr-population benchmark` found."""
    validation_sources: frozenset[str] = frozenset()
    domain: Domain | None = None

    @property
    def is_log(self) -> bool:
        return self.kind == "stock AZR log"

    @property
    def has_steps(self) -> bool:
        return self.kind != "benchmark figures"

    @cached_property
    def _by_metric(self) -> dict[Any, pd.DataFrame]:
        return dict(iter(self.table.groupby("metric")))

    def curve(self, metric: Metric) -> pd.Series:
        """A metric over the steps; see `frame.curve`."""
        return curve(self._by_metric.get(metric.name, self.table.iloc[:0]), metric)

    def conditions(self, metric: Metric) -> dict[str, Any]:
        """What has to be equal for two values of the metric to be subtracted; None: unknown."""
        if metric.name.startswith("benchmark"):
            of_figures = ("benchmarks", "samples", "temperature")
            return {key: repr(self.figures.get(key)) for key in of_figures if self.figures}
        if metric.name.startswith("validation"):
            return {"tasks of the validation": self.validation_sources}
        if metric.name.startswith("eval/"):
            sampled = metric.name in ("eval/t0.4", "eval/t1", "eval/pass@8")
            keys = (*_EVAL_SETTINGS, *_SAMPLED * sampled)
            return {key: repr(self.settings[key]) for key in keys if key in self.settings}
        return {}

    @property
    def planned(self) -> int | None:
        """The steps that it is to have; None where unknown."""
        steps = number(self.settings.get("run.steps"))
        return None if steps is None else int(steps)

    @property
    def identity(self) -> str:
        """Equal for two runs that are one run played or copied twice."""
        if self.is_log or not self.has_steps:
            return f"{self.kind} {self.table.to_csv()} {self.figures}"
        played = {k: v for k, v in self.settings.items() if not touches_only(k, REPEATED)}
        return repr(sorted(played.items(), key=str)) if "seed" in played else str(self.path)


@dataclass(frozen=True)
class ComparedArm:
    """Runs that differ in the seed alone; `differences` checks it."""

    name: str
    runs: tuple[ComparedRun, ...]

    @cached_property
    def independent(self) -> tuple[ComparedRun, ...]:
        """The runs without those that repeat another one: of these the one that got furthest."""
        by_identity: dict[str, ComparedRun] = {}
        for run in self.runs:
            same = by_identity.setdefault(run.identity, run)
            if run.last > same.last:
                by_identity[run.identity] = run
        return tuple(by_identity.values())


def arms_of(arguments: Sequence[str]) -> list[ComparedArm]:
    """The arms that the arguments name, in their order.

    An argument is a run directory, a folder of runs named `seed_*`, a stock AZR log, or benchmark
    figures, and may be given a name: `NAME=PATH`. Arguments of the same name are seeds of one arm;
    one without is an arm called by as much of its path's end as no other has. Figures under the
    name of other runs are of these, in their order.

    Raises UserError: fewer than two arms, something that is not a run, one run twice in an arm, or
    not as many figures as runs.
    """
    arms: dict[str, list[ComparedRun]] = {}
    for name, path in _names(arguments):
        of_arm = arms.setdefault(name, [])
        for run in _runs(path):
            if run.path.resolve() in [other.path.resolve() for other in of_arm]:
                raise UserError(f"{run.path} is given twice as a seed of {name}; leave one out")
            of_arm.append(run)
    if len(arms) < 2:
        raise UserError(
            f"a comparison needs two arms, and there is {len(arms)}: pass two or more runs, or "
            "name them: one=PATH other=PATH"
        )
    return [ComparedArm(name, _with_figures(name, runs)) for name, runs in arms.items()]


def _with_figures(name: str, runs: Sequence[ComparedRun]) -> tuple[ComparedRun, ...]:
    figures = [run for run in runs if not run.has_steps]
    played = [run for run in runs if run.has_steps]
    if not figures or not played:
        return tuple(runs)
    if len(figures) != len(played):
        raise UserError(
            f"{name} has {len(played)} runs and {len(figures)} benchmark figures; give one for "
            "each run, in the same order"
        )
    pairs = zip(played, figures, strict=True)
    return tuple(replace(run, figures=other.figures) for run, other in pairs)


def _names(arguments: Sequence[str]) -> list[tuple[str, Path]]:
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
    """The shortest end of a path that no other one has; of a seed with its arm's name."""
    least = 2 if parts[-1].startswith("seed_") else 1
    for length in range(least, len(parts)):
        if all(other[-length:] != parts[-length:] for other in others if other != parts):
            return "/".join(parts[-length:])
    return "/".join(parts)


def _runs(path: Path) -> list[ComparedRun]:
    if path.is_file() and path.suffix == ".json" and (figures := read_figures(path)):
        return [ComparedRun(path, "benchmark figures", tidy(()), figures=figures)]
    if path.is_file():
        rows, settings = read_azr_log(path)
        return [
            ComparedRun(
                path,
                "stock AZR log",
                tidy(flat_lines(rows), str(path)),
                last_step(rows),
                settings,
                validation_sources=sources(rows),
                domain=find_domain("code"),
            )
        ]
    if not path.is_dir():
        raise UserError(f"{path} is neither a run's folder nor a log file: there is nothing there")
    if (path / "config.yaml").is_file():
        return [_of_directory(path)]
    if figures := read_figures(path / Path(FIGURES).name):
        return [ComparedRun(path, "benchmark figures", tidy(()), figures=figures)]
    if not (seeds := seed_folders(path)):
        raise UserError(
            f"no run in {path}: there is no config.yaml in it, nor folders seed_* that have one, "
            "nor benchmark figures"
        )
    return [_of_directory(seed) for seed in seeds]


def _of_directory(path: Path) -> ComparedRun:
    directory = RunDirectory(path)
    config, environment = whole_config(directory), directory.environment()
    if not {"run", "population", "base", "actor_rollout_ref"} & set(config):
        raise UserError(f"{path} is not a run's folder: its config.yaml has no settings of a run")
    packages = environment.get("packages")
    versions = {str(k): str(v) for k, v in packages.items()} if isinstance(packages, dict) else {}
    if "python" in environment:
        versions["python"] = str(environment["python"])
    settings = flat(config)
    # A base is its path, as in a log, or the name of one that ships.
    name, where = settings.pop("base.name", None), settings.pop("base.path", None)
    where = where or settings.get("actor_rollout_ref.model.path")  # of a run inside AZR
    if where or name not in (None, "hf"):
        settings["base"] = where or name
    if weights := environment.get("base"):
        settings[WEIGHTS] = str(weights)
    table = read_run(path)
    table = table[table["member"].isna()]
    names = table.loc[table["metric"].str.startswith("validation/"), "metric"].unique()
    steps = table.loc[~table["metric"].str.startswith("validation"), "step"]
    return ComparedRun(
        path,
        "run",
        table,
        int(steps.max()) if len(steps) else 0,
        settings,
        versions,
        read_figures(path / FIGURES),
        frozenset(name.removeprefix("validation/") for name in names),
        domain_of(directory),
    )


def read_figures(path: Path) -> dict[str, Any]:
    """Benchmark figures in a file; {} where there is none, or a file of something else."""
    try:
        figures = read_json(path)
        for line in figures["lines"]:
            [line["model"], line["k"] + 0]
            for cell in line["cells"].values():
                [float(cell[key]) for key in ("value", "low", "high")]
    except (UserError, ValueError, KeyError, TypeError, AttributeError):
        return {}
    return dict(figures)


def benchmark_mean(figures: Mapping[str, Any]) -> float | None:
    """Pass@1 of the members' mean (of the only model, where there is one) over all benchmarks."""
    lines = [line for line in figures.get("lines", ()) if line["k"] == 1]
    order = {"summary": 0, "base": 2}  # the first summary is the mean
    line = min(lines, key=lambda line: order.get(line.get("role"), 1), default=None)
    if line is None or not line["cells"]:
        return None
    titles = [benchmark.get("title") for benchmark in figures.get("benchmarks", ())]
    columns = ["all"] if "all" in line["cells"] else titles
    cells = [line["cells"][title] for title in columns if title in line["cells"]]
    values = [float(cell["value"]) for cell in cells or line["cells"].values()]
    return sum(values) / len(values)
