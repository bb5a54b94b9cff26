"""Settings and versions in which arms differ, besides what is compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from azr_population.analysis.inputs import ComparedArm
from azr_population.analysis.sentences import joined
from azr_population.config.effects import INCIDENTAL, OPTIONAL, touches_only
from azr_population.reading.run_data import WEIGHTS, RunData
from azr_population.runs.azr_log import SETTINGS

GROUPS = {
    "base": ("base",),
    "rewards": ("population.teacher_reward", "population.student_", "population.duplicate_", "azr"),
    "budget": ("population.batch_size", "population.samples_per_task", "run.steps", "data."),
    "eval": ("eval.",),
    "task rules": ("task.", "referee."),
}
"""Settings that a fair comparison has equal, by their beginnings; others are the method."""
_PLURAL = {"base": "bases", "budget": "budgets", "eval": "evals"}
_OF_ONE_RUN = ("seed", "population.seed", "trainer.experiment_name")
"""Settings that differ between the seeds of an arm by design."""
_LONGEST = 60
UNKNOWN = "unknown"


@dataclass(frozen=True)
class Difference:
    """One setting or version that is not the same everywhere; `values` are texts, one per arm."""

    group: str
    key: str
    values: tuple[str, ...]


def differences(arms: Sequence[ComparedArm], step: int) -> tuple[list[Difference], list[str]]:
    """Differing settings and versions, and warnings to bear in mind; `step` is the last that
    all runs have."""
    warnings = []
    for arm in arms:
        inside = _rows([ComparedArm(run.path.name, (run,)) for run in arm.runs], "settings")
        if inside:
            keys = ", ".join(row.key for row in inside[:4])
            warnings.append(f"The seeds of {arm.name} are not alike: {keys}.")
        seeds = [str(run.seed) for run in arm.runs if run.seed is not None]
        if len(seeds) > len(set(seeds)):
            warnings.append(f"{arm.name} has one seed twice: its runs are not independent.")
        warnings += [
            f"{arm.name}, {run.path.name}: {run.last} of {run.steps} steps are recorded."
            for run in arm.runs
            if run.steps and run.last < run.steps
        ]
        warnings += _gone_wrong(arm)
    lasts = {run.last for arm in arms for run in arm.runs}
    if len(lasts) > 1 and step:
        warnings.append(
            f"Runs have {min(lasts)} to {max(lasts)} steps: everything is compared at step {step}."
        )
    for group in ("base", "budget", "eval"):
        if lacking := [arm.name for arm in arms if all(_lacks(run, group) for run in arm.runs)]:
            warnings.append(f"Not recorded by {', '.join(lacking)}, so unknown: {group}.")
    return _rows(arms, "settings") + _rows(arms, "versions"), warnings


def _gone_wrong(arm: ComparedArm) -> list[str]:
    """Warnings from the records of an arm's runs: the first of each kind, and in how many runs."""
    runs = [run for run in arm.runs if not run.is_log]
    warnings = [{warning.kind: warning for warning in reversed(run.warnings)} for run in runs]
    return [
        f"{arm.name}, {len(those)} of {len(runs)} runs: {min(those).text}."
        for kind in dict.fromkeys(kind for by_kind in warnings for kind in by_kind)
        if (those := [by_kind[kind] for by_kind in warnings if kind in by_kind])
    ]


def short_differences(*arms: ComparedArm) -> str:
    """`rewards and budgets differ`; empty where nothing but the method does."""
    groups = dict.fromkeys(row.group for row in _rows(arms, "settings"))
    names = [_PLURAL.get(group, group) for group in groups if group in GROUPS]
    return f"{joined(names)} differ" if names else ""


def _rows(arms: Sequence[ComparedArm], source: str) -> list[Difference]:
    runs = [run for arm in arms for run in arm.runs]
    recorded = all(WEIGHTS in run.settings for run in runs)
    skipped = {*_OF_ONE_RUN, "base" if recorded else WEIGHTS}
    differences = []
    for key in dict.fromkeys(key for run in runs for key in getattr(run, source)):
        if key in skipped or (source == "settings" and touches_only(key, INCIDENTAL)):
            continue
        values = [dict.fromkeys(_value(run, source, key) for run in arm.runs) for arm in arms]
        distinct = {frozenset(texts) - {UNKNOWN} for texts in values} - {frozenset()}
        if len(distinct) > 1:
            group = "versions" if source == "versions" else group_of(key)
            differences.append(Difference(group, key, tuple(" / ".join(texts) for texts in values)))
    order = [*GROUPS, "method", "versions"]
    return sorted(differences, key=lambda row: (order.index(row.group), row.key))


def group_of(key: str) -> str:
    """The group of `GROUPS` that a setting belongs to, else `method`."""
    return next((g for g, starts in GROUPS.items() if key.startswith(starts)), "method")


def _value(run: RunData, source: str, key: str) -> str:
    """A setting as text. One that is not recorded may have any value; an option or a package that
    is not there is not there."""
    recorded = getattr(run, source)
    if key not in recorded:
        complete = bool(run.versions) if source == "versions" else not _lacks(run, "method")
        return "-" if complete and (source == "versions" or OPTIONAL.search(key)) else UNKNOWN
    shown = "-" if recorded[key] is None else str(recorded[key])
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}..."


def _lacks(run: RunData, group: str) -> bool:
    """Whether a run has no setting of a group; a log has none of the method."""
    keys = [key for key in run.settings if group_of(key) == group and key != "seed"]
    return not (set(keys) - set(SETTINGS) if group == "method" else keys)
