"""The arguments of `compare`: arms, each with one or more runs (seeds)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from azr_population.domains.metric import Metric
from azr_population.errors import UserError
from azr_population.reading.run_data import RunData
from azr_population.reading.tidy import seed_folders
from azr_population.runs.directory import RunDirectory

_EVAL_SETTINGS = (
    *("eval.tasks_per_type", "eval.seed", "task.types", "task.domain"),
    *("base.prompt_format", "engine.max_answer_tokens"),
)
_SAMPLED_METRICS = ("eval/t1", "eval/pass@8")


@dataclass(frozen=True)
class ComparedArm:
    """Runs that differ in the seed alone; `differences` checks it."""

    name: str
    runs: tuple[RunData, ...]


def conditions(run: RunData, metric: Metric) -> dict[str, str | None]:
    """Settings that two values of the metric must share to be subtracted. None is unknown,
    and equals nothing."""
    if metric.name.startswith("benchmark"):
        return {
            key: repr(value)
            for key, value in run.figures.items()
            if key not in ("mean", "lines", "step")
        }
    if metric.name.startswith("validation"):
        names = run.of_run["metric"].unique()
        sources = sorted(name for name in names if name.startswith("validation/"))
        files = run.settings.get("data.val_files")
        if isinstance(files, list) and len(files) == 1:
            files = files[0]
        sets = None if files is None else str(files)
        return {"the sources of the validation": repr(sources), "data.val_files": sets}
    if metric.name.startswith("eval/"):
        keys = (*_EVAL_SETTINGS, *("eval.samples",) * (metric.name in _SAMPLED_METRICS))
        settings = run.settings
        given = {key: repr(settings[key]) if key in settings else None for key in keys}
        # A run of before the setting has all strata.
        return given | {"eval.strata": repr(settings.get("eval.strata", []))}
    return {}


def arms_of(arguments: Sequence[str], fewest: int = 2) -> list[ComparedArm]:
    """The arms that the arguments name, in their order.

    An argument is a run directory, a folder of runs named `seed_*`, a folder of these, each an arm,
    or a stock AZR log, and may be given a name: `NAME=PATH`. Arguments of the same name are seeds
    of one arm; one without is an arm called by as much of its path's end as no other has.

    Raises UserError: fewer than `fewest` arms, something that is not a run, or one run (or a copy
    of it) twice.
    """
    arms: dict[str, list[RunData]] = {}
    for name, path in _names([arm for argument in arguments for arm in _taken_apart(argument)]):
        arms.setdefault(name, []).extend(_runs(path))
    if len(arms) < fewest:
        raise UserError(
            f"a comparison needs two arms, and there is {len(arms)}: pass two or more runs, or "
            "name them: one=PATH other=PATH"
        )
    _refuse_copies(arms)
    return [ComparedArm(name, tuple(runs)) for name, runs in arms.items()]


def _taken_apart(argument: str) -> list[str]:
    """The arms in a folder of arms; else the argument."""
    path = Path(argument)
    if not path.is_dir() or RunDirectory(path).exists or seed_folders(path):
        return [argument]
    arms = [p for p in sorted(path.iterdir()) if RunDirectory(p).exists or seed_folders(p)]
    return list(map(str, arms)) or [argument]


def _refuse_copies(arms: dict[str, list[RunData]]) -> None:
    """Raises UserError: two of the runs are one. Seeds of one arm are copies where half of their
    steps or more have equal records; arms may share a beginning, so theirs have to be equal in
    all steps."""
    loaded = [(name, run, _records(run)) for name, runs in arms.items() for run in runs]
    for i, (name, run, records) in enumerate(loaded):
        for other_name, other, others in loaded[:i]:
            steps = records.keys() & others.keys()
            equal = sum(records[step] == others[step] for step in steps)
            needed = len(steps) / 2 if name == other_name else len(steps)
            copied = bool(steps) and equal >= max(1.0, needed)
            if copied or run.path.resolve() == other.path.resolve():
                where = f"seeds of {name}" if name == other_name else f"{other_name} and {name}"
                raise UserError(
                    f"{other.path} and {run.path} are one run ({equal} of {len(steps)} steps have "
                    f"equal records), given twice, as {where}; leave one out"
                )


def _records(run: RunData) -> dict[int, dict[str, Any]]:
    """The records of each step without seconds; steps that recorded nothing else are left out."""
    lines = {
        line["step"]: {k: v for k, v in line.items() if k != "step" and "time/" not in k}
        for line in run.lines
    }
    return {step: line for step, line in lines.items() if line}


def _names(arguments: Sequence[str]) -> list[tuple[str, Path]]:
    """(name, path) of each; without a name the shortest end of its path that no other one has, of a
    seed with its arm's name."""
    unnamed = {a: Path(a).resolve().parts for a in arguments if "=" not in a or Path(a).exists()}
    given = {a.partition("=")[0] for a in arguments if a not in unnamed}
    named: list[tuple[str, Path]] = []
    for argument in arguments:
        if argument not in unnamed:
            name, _, path = argument.partition("=")
            named.append((name, Path(path)))
            continue
        parts = unnamed[argument]
        others = [other for other in unnamed.values() if other != parts]
        least = 2 if parts[-1].startswith("seed_") else 1
        ends = {n: "/".join(parts[-n:]) for n in range(least, len(parts) + 1)}
        distinct = (
            end
            for n, end in ends.items()
            if end not in given and all(parts[-n:] != other[-n:] for other in others)
        )
        named.append((next(distinct, "/".join(parts)), Path(argument)))
    return named


def _runs(path: Path) -> list[RunData]:
    if path.is_file():
        return [RunData(path)]
    if not path.is_dir():
        raise UserError(f"{path} is neither a run's folder nor a log file: there is nothing there")
    folders = [path] if RunDirectory(path).exists else seed_folders(path)
    if not folders:
        raise UserError(
            f"no run in {path}: there is no config.yaml in it, nor folders seed_* that have one"
        )
    runs = [RunData(folder) for folder in folders]
    for run in runs:
        if not {"run", "population", "base", "actor_rollout_ref"} & set(run.config):
            raise UserError(
                f"{run.path} is not a run's folder: its config.yaml has no settings of a run"
            )
    return runs
