"""What differs between the arms besides what is compared, shown before any figure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from azr_population.config.differences import INCIDENTAL, touches_only
from azr_population.pages.comparison.azr_log import SETTINGS
from azr_population.pages.comparison.inputs import WEIGHTS, Arm, Run
from azr_population.pages.comparison.verdict_table import horizon

GROUPS = (
    ("base", ("base",)),
    ("budget", ("population.rows", "population.attempts", "run.steps", "data.", "azr.")),
    ("exam", ("exam.",)),
    ("tasks", ("task.", "referee.")),
)
"""What should be the same in a fair comparison; the rest is the method, which may be its point."""

_OPTION = re.compile(r"(operators|options)\b")
"""Settings that a run has only if somebody gives them."""

_LONGEST = 60
"""Characters shown of a value."""

_WORDS = {
    "base": "base model",
    "budget": "budget (rows per member, attempts, steps)",
    "exam": "exam",
    "tasks": "rules of tasks and referee",
    "versions": "versions of the software",
}


@dataclass(frozen=True)
class Difference:
    """One setting that is not the same everywhere; `values` are texts, one per arm."""

    group: str
    key: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class Differences:
    """All that differs, and what it means in plain words."""

    rows: list[Difference] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    same: list[str] = field(default_factory=list)
    """Groups that were checked and found equal, in words."""


def differences(arms: Sequence[Arm]) -> Differences:
    """Compares settings, versions and recorded steps of all runs."""
    rows = _rows(arms, "settings") + _rows(arms, "versions")
    found = Differences(rows)
    differing = {row.group for row in rows}
    lasts = {run.last for arm in arms for run in arm.runs}
    cut = len(lasts) > 1 or any(run.unfinished for arm in arms for run in arm.runs)
    hidden: dict[str, list[str]] = {}
    for group, words in _WORDS.items():
        unknown = [arm.name for arm in arms if any(_lacks(run, group, arms) for run in arm.runs)]
        if group in differing:
            told = [f"{row.key} ({', '.join(row.values)})" for row in rows if row.group == group]
            found.warnings.append(f"Different {words}: {_truncated(told)}.")
        if unknown:
            hidden.setdefault(_truncated(unknown), []).append(words)
        elif group not in differing:
            found.same.append(f"planned {words}" if group == "budget" and cut else words)
    rates = {arm.name: rate for arm in arms if (rate := _solver_rate(arm)) is not None}
    if len(set(rates.values())) > 1:
        each = ", ".join(f"{name} {rate}" for name, rate in rates.items())
        found.warnings.append(f"Those who solve learn at different rates: {each}.")
    for names, keys in _older(arms).items():
        found.warnings.append(
            f"Played before the setting {keys} existed, so its value is unknown: {names}."
        )
    for names, groups in hidden.items():
        found.warnings.append(f"Not recorded by {names}, so unknown: {'; '.join(groups)}.")
    for arm in arms:
        inside = [row.key for row in _rows([Arm(run.name, (run,)) for run in arm.runs], "settings")]
        if inside:
            found.warnings.append(f"The seeds of {arm.name} are not alike: {_truncated(inside)}.")
        seeds = [
            run.settings.get("seed") for run in arm.runs if run.settings.get("seed") is not None
        ]
        repeated = [run.name for run in arm.runs if run not in arm.independent]
        if repeated:
            found.warnings.append(
                f"{arm.name} has one run more than once, with the same seed and settings or rows: "
                f"verdicts, curves and budgets leave out {_truncated(repeated)}."
            )
        elif len(seeds) > len(set(seeds)):
            found.warnings.append(f"{arm.name} has one seed twice: its runs are not independent.")
        for run in arm.runs:
            if run.unfinished:
                found.warnings.append(
                    f"{arm.name}, {run.name}: {run.last} of {run.planned} steps are recorded; it "
                    "goes on or was stopped."
                )
    if len(lasts) > 1 and (least := horizon(arms)):
        found.warnings.append(
            f"Not all runs have the same steps: verdicts and budgets are taken at step {least}, "
            f"the last that all{' but those without any' * (0 in lasts)} have; curves are drawn as "
            "far as they go."
        )
    return found


def _solver_rate(arm: Arm) -> str | None:
    """The learning rate of those who solve. Every run's settings have one for every role, also for
    those that it has not, so that no single setting tells the difference."""
    found = set()
    for run in arm.runs:
        if run.solver is None:
            return None
        found.add(str(run.settings.get(f"population.{run.solver}_lr")))
    return " / ".join(sorted(found)) if found - {"None"} else None


def _rows(arms: Sequence[Arm], what: str) -> list[Difference]:
    runs = [run for arm in arms for run in arm.runs]
    keys = dict.fromkeys(key for run in runs for key in getattr(run, what))
    skipped = {"base", WEIGHTS} - {_base(arms)}
    found = []
    for key in keys:
        if key in skipped or _ignored(key):
            continue
        group = "versions" if what == "versions" else _group(key)
        values = [_values(arm, what, key, group) for arm in arms]
        known = {frozenset(one) - {"unknown"} for one in values}
        if len(known - {frozenset()}) > 1:
            found.append(Difference(group, key, tuple(" / ".join(one) for one in values)))
    order = [*_WORDS, "method"]
    return sorted(found, key=lambda row: (order.index(row.group), row.key))


def _ignored(key: str) -> bool:
    """Whether a setting changes nothing, or is meant to differ between seeds."""
    return key == "seed" or touches_only(key, INCIDENTAL)


def _base(arms: Sequence[Arm]) -> str:
    """The setting that tells which base it is: the weights, wherever it lies, but only if all runs
    recorded them."""
    return WEIGHTS if all(WEIGHTS in run.settings for arm in arms for run in arm.runs) else "base"


def _values(arm: Arm, what: str, key: str, group: str) -> list[str]:
    """The setting of an arm; more than one value where its seeds are not alike."""
    values: dict[str, None] = {}
    for run in arm.runs:
        own = getattr(run, what)
        # A setting that is not recorded may have any value; an option or a package that is not
        # there is told by its absence.
        absent = _known(run, "method") if _OPTION.search(key) else group == "versions"
        missing = "-" if absent and _known(run, group) else "unknown"
        values[_text(own[key]) if key in own else missing] = None
    return list(values)


def _older(arms: Sequence[Arm]) -> dict[str, str]:
    """Arms -> settings that their runs lack and others have, logs left out."""
    whole = {arm.name: [run for run in arm.runs if _known(run, "method")] for arm in arms}
    keys = dict.fromkeys(key for runs in whole.values() for run in runs for key in run.settings)
    found: dict[str, list[str]] = {}
    for key in keys:
        lacking = [name for name, runs in whole.items() if any(key not in r.settings for r in runs)]
        if (
            lacking
            and not _ignored(key)
            and key not in ("base", WEIGHTS)
            and not _OPTION.search(key)
        ):
            found.setdefault(_truncated(lacking), []).append(key)
    return {names: _truncated(keys) for names, keys in found.items()}


def _text(value: Any) -> str:
    shown = "-" if value is None else str(value)
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}..."


def _group(key: str) -> str:
    for group, prefixes in GROUPS:
        if key.startswith(prefixes):
            return group
    return "method"


def _known(run: Run, group: str) -> bool:
    if group == "versions":
        return bool(run.versions)
    if group == "method":  # any configuration beyond what a log gives away
        return any(key not in SETTINGS for key in run.settings)
    return any(_group(key) == group for key in run.settings if not _ignored(key))


def _lacks(run: Run, group: str, arms: Sequence[Arm]) -> bool:
    """Whether a run tells nothing of a group that could be compared: what a stock log tells of its
    budget are AZR's own settings, which our runs have not."""
    if group == "base":
        return _base(arms) not in run.settings
    ours = any(_known(one, "method") for arm in arms for one in arm.runs)
    foreign = group == "budget" and ours and not _known(run, "method")
    return foreign or not _known(run, group)


def _truncated(names: Sequence[str], most: int = 4) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
