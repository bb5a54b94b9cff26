"""A loaded run: a run directory, committed results or a stock AZR log, read once."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, FiniteFloat, TypeAdapter, ValidationError

from azr_population.config.effects import flat
from azr_population.domains.domain import Domain
from azr_population.domains.known import UntrustedDomain, find_domain
from azr_population.domains.metric import Metric
from azr_population.errors import UserError, first_problem
from azr_population.files import read_json
from azr_population.printable import printable
from azr_population.registry import trusted
from azr_population.runs.azr_log import flat_lines, read_azr_log
from azr_population.runs.directory import RunDirectory, steps
from azr_population.runs.records import ROLES, Birth, births_of, finite_or_none, grouped, role_of
from azr_population.runs.run_warnings import RunWarning, Watch

if TYPE_CHECKING:  # pandas takes half a second
    import pandas as pd

FIGURES = "evaluation/figures.json"
"""The file in which `azr-population benchmark` leaves a run's figures."""
WEIGHTS = "base.weights"
"""The setting that holds the fingerprint of the base's weights; logs lack it."""


class RunData:
    """One run as it is stored now; what grows afterwards is not seen.

    Raises UserError: there is no run at `path`, it is of a version that cannot be read, or its
    configuration is damaged.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.directory = RunDirectory(path)
        self.is_log = self.path.is_file()
        self.config: Mapping[str, Any] = {}
        """`config.yaml`; empty for a log."""
        self._log: list[dict[str, Any]] = []
        if self.is_log:
            rows, self._printed = read_azr_log(self.path)
            self._log = flat_lines(rows)
        else:
            self.config = self.directory.config()
        self.environment: Mapping[str, Any] = {} if self.is_log else self.directory.environment()

    def value(self, *keys: str) -> Any:
        """The value at this path of keys in `config.yaml`, or None."""
        value: Any = self.config
        for key in keys:
            value = value.get(key) if isinstance(value, Mapping) else None
        return value

    @property
    def inside_azr(self) -> bool:
        """Whether AZR played the run: its configuration is AZR's."""
        return self.value("actor_rollout_ref") is not None

    @property
    def steps(self) -> int | None:
        """Steps that the run is to play, if its configuration says so."""
        keys = ("trainer", "total_training_steps") if self.inside_azr else ("run", "steps")
        return int(finite_or_none(self.value(*keys)) or 0) or None

    @property
    def seed(self) -> Any:
        """The seed of the run's random streams; None where its configuration has none."""
        return self.value("population", "seed") if self.inside_azr else self.value("seed")

    def read(self, record: str) -> Iterator[dict[str, Any]]:
        """The lines of a record (`tasks`, `matches`, ...) of a run directory, one by one."""
        return self.directory.read(record)

    @cached_property
    def lines(self) -> list[dict[str, Any]]:
        """The flat lines of `metrics.jsonl`, the later of two of a step, by ascending step."""
        rows = self._log if self.is_log else self.read("metrics")
        steps = {row["step"]: row for row in rows}
        return [steps[step] for step in sorted(steps)]

    @cached_property
    def births(self) -> list[Birth]:
        """The replacements, in the order recorded."""
        return births_of(self.read("lineage"))

    @cached_property
    def evals(self) -> list[dict[str, Any]]:
        """The lines of `evals.jsonl` that have greedy scores: `step`, `member`, `generation`,
        `greedy` (a score for each task, or None), ..."""
        return [line for line in self.read("evals") if line.get("greedy")]

    @cached_property
    def tasks(self) -> list[dict[str, Any]]:
        """The lines of `tasks.jsonl`: the valid tasks with their attempts."""
        return [*self.read("tasks")]

    @cached_property
    def warnings(self) -> list[RunWarning]:
        """The warnings of the run, as far as it is recorded. Students of AZR always replay."""
        replay = self.value("population", "replay_fraction")
        uses_replay = self.value("azr") is not None or bool(replay)
        return Watch(uses_replay).read(self.lines, self.read("evals"))

    @cached_property
    def last(self) -> int:
        """The last recorded step; 0 if there is none."""
        return int(self.lines[-1]["step"]) if self.lines else 0

    @cached_property
    def stored_step(self) -> int:
        """The step of the members in `members`: of a local run that was killed the last
        checkpoint's, and there are records behind it. Inside AZR the last recorded one."""
        checkpoints = steps(self.directory.checkpoints)
        return checkpoints[-1][0] if checkpoints else self.last

    @cached_property
    def settings(self) -> dict[str, Any]:
        """Settings by dotted key; of a log what it prints. `base` is its path, as in a log, or
        the name of one that ships."""
        if self.is_log:
            return dict(self._printed)
        settings = flat(dict(self.config))
        name, where = settings.pop("base.name", None), settings.pop("base.path", None)
        where = where or settings.get("actor_rollout_ref.model.path")  # of a run inside AZR
        if where or name not in (None, "hf"):
            settings["base"] = where or name
        if weights := self.environment.get("base"):
            settings[WEIGHTS] = str(weights)
        return settings

    @cached_property
    def versions(self) -> dict[str, Any]:
        """Packages and Python; empty where they are not recorded."""
        packages = self.environment.get("packages")
        versions = dict(packages) if isinstance(packages, dict) else {}
        if "python" in self.environment:
            versions["python"] = self.environment["python"]
        return versions

    @cached_property
    def domain(self) -> Domain:
        """The domain of the run's tasks; `code` where the configuration has none.

        Custom domains are not run for reading (see `registry.trust`): measures and coverage are
        left out, with a line in the log. Raises UserError: a trusted domain cannot be imported.
        """
        name = str(self.value("task", "domain") or "code")
        if "." in name and not trusted(name):
            _log_once(name)
            return UntrustedDomain()
        return find_domain(name)

    @cached_property
    def measures(self) -> tuple[Metric, ...]:
        """The metrics of this run alone: its domain's and its callbacks'. Raises UserError:
        environment.json is damaged."""
        stored = self.environment.get("metrics", ())
        try:
            declared = _METRICS.validate_python(stored)
        except ValidationError as error:
            file = self.path / "environment.json"
            raise UserError(f"{file} is damaged: metrics.{first_problem(error)}") from error
        shown = [
            replace(metric, title=printable(metric.title), about=printable(metric.about))
            for metric in declared
            if metric.name.isprintable() and metric.unit.isprintable()
        ]
        return (*self.domain.measures, *shown)

    @cached_property
    def roles(self) -> dict[str, str]:
        """The role of every member in the metrics, in the order recorded."""
        groups = dict.fromkeys(group for line in self.lines for group in grouped(line))
        return {name: role for name in groups if name not in ROLES and (role := role_of(name))}

    @property
    def members(self) -> int:
        """The number of members; a log has one."""
        counts = (self.value("population", role) for role in ("teachers", "students"))
        return sum(int(finite_or_none(count) or 0) for count in counts) or 1

    @cached_property
    def placed_tasks(self) -> pd.DataFrame:
        """The valid tasks that have a place in the problem space; see `derived.placed_tasks`."""
        from azr_population.reading.derived import placed_tasks

        return placed_tasks(self.domain, self.tasks)

    @cached_property
    def derived(self) -> dict[int, dict[str, float]]:
        """{step: {key: value}} of a whole run; empty for committed results, whose lines have it."""
        from azr_population.reading.derived import derived

        if self.is_log or self.directory.results_only:
            return {}
        tasks = self.placed_tasks if self.domain.space else None
        return derived(self.path, [row["step"] for row in self.lines], self.roles.values(), tasks)

    @cached_property
    def complete_lines(self) -> list[dict[str, Any]]:
        """`lines` with what is `derived`, and AZR's validations as `validation` (the mean over the
        sources) and `validation/<source>`."""
        lines = {line["step"]: dict(line) for line in self.lines}
        for step, values in self.derived.items():
            lines.setdefault(step, {"step": step}).update(values)
        for row in () if self.is_log else self.read("validations"):
            numbers = {
                source: finite_or_none(raw) for source, raw in (row.get("shares") or {}).items()
            }
            shares = {source: value for source, value in numbers.items() if value is not None}
            if shares:
                line = lines.setdefault(row["step"], {"step": row["step"]})
                line |= {f"validation/{source}": value for source, value in shares.items()}
                line["validation"] = math.fsum(shares.values()) / len(shares)
        return [lines[step] for step in sorted(lines)]

    @cached_property
    def table(self) -> pd.DataFrame:
        """The tidy table of `complete_lines`; see `tidy`."""
        from azr_population.reading.tidy import tidy

        return tidy(self.complete_lines)

    @cached_property
    def of_run(self) -> pd.DataFrame:
        """`table` without members."""
        return self.table[self.table["member"].isna()]

    @cached_property
    def _by_metric(self) -> dict[Any, pd.DataFrame]:
        return dict(iter(self.of_run.groupby("metric")))

    def curve(self, metric: Metric | str) -> pd.Series:
        """A metric over the steps; see `tidy.curve`."""
        from azr_population.reading.tidy import curve

        name = metric if isinstance(metric, str) else metric.name
        return curve(self._by_metric.get(name, self.of_run.iloc[:0]), metric)

    @cached_property
    def figures(self) -> dict[str, Any]:
        """Results of `azr-population benchmark`; see `benchmark_figures`."""
        return benchmark_figures(self.path / FIGURES)

    @property
    def stale_figures(self) -> str:
        """Of which members the `figures` are, where these are not those that the run has; else
        empty."""
        step = self.figures.get("step")
        if step in (None, self.stored_step):
            return ""
        return f"benchmark figures of step {step}, and members of step {self.stored_step}"


_METRICS = TypeAdapter(tuple[Metric, ...])


@lru_cache
def _log_once(name: str) -> None:
    logging.getLogger(__name__).warning(
        "task.domain=%s is not built in, so its measures and coverage are left out; "
        "azr-population --trust COMMAND runs it",
        printable(name[:200]),
    )


class _Cell(BaseModel):
    value: FiniteFloat


class _FigureRow(BaseModel):
    """A model, or a summary of several, over all benchmarks."""

    model: str
    k: int
    role: str
    cells: dict[str, _Cell]


class _Figures(BaseModel):
    step: int | None = None
    """Of the members that were asked."""
    benchmarks: list[dict[str, Any]]
    samples: int
    temperature: float
    lines: list[_FigureRow]


def benchmark_figures(path: Path) -> dict[str, Any]:
    """The results file of `azr-population benchmark`: `benchmarks`, `samples`, `temperature`,
    `lines` (a model and its pass@k each), and `mean`, pass@1 of the members' mean (of the only
    member, where there is one) over all benchmarks; figures of a base alone are not the run's.
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
    lines = [line for line in figures.lines if line.k == 1 and line.cells and line.role != "base"]
    if not lines:
        return {}
    cells = min(lines, key=lambda line: line.role != "summary").cells  # the first is the mean
    values = [cells["all"]] if "all" in cells else list(cells.values())
    mean = sum(cell.value for cell in values) / len(values)
    return {**figures.model_dump(), "mean": mean}
