"""Warnings about long runs: a teacher that runs away, proposals that become copies, a student that
forgets. They are computed from records alone, so a run, its report and a comparison agree."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from azr_population.runs.directory import RunDirectory
from azr_population.runs.records import Record, config_of, lines_of, number, role_of

STEPS = 20
"""Steps over which a teacher's metrics are averaged."""
LOW, HIGH = 0.1, 0.9
"""Solve rates of a teacher's valid tasks beyond which they teach hardly anything."""
UNIQUE = 0.5
"""The share of valid proposals without a copy below which they have collapsed."""


class RunWarning(NamedTuple):
    """One problem of one member, with the settings that helped."""

    step: int
    """The step at which it began."""
    member: str
    kind: str
    """`runaway`, `copies` or `forgets`."""
    text: str


def warnings_of(run: RunDirectory) -> list[RunWarning]:
    """The warnings of a run, as far as it is recorded."""
    return find_warnings(lines_of(run), run.evals(), suggested_fix(run))


def suggested_fix(run: RunDirectory) -> str:
    """The setting that helped most in recipes/line6_choice: replay. Empty if the run has it;
    AZR's solver always does."""
    inside_azr = config_of(run, "azr") is not None
    if inside_azr or config_of(run, "population", "replay_fraction"):
        return ""
    return "population.replay_fraction=0.5 lets students keep what they learned"


def find_warnings(
    lines: Iterable[Record], evals: Iterable[Record] = (), fix: str = ""
) -> list[RunWarning]:
    """Each kind of warning once for a member, at the step at which it begins, by step.

    Args:
        lines: of `metrics.jsonl`, ascending.
        evals: lines of `evals.jsonl`, ascending.
        fix: the setting that is named first; see `suggested_fix`.
    """
    warnings: dict[tuple[str, str], RunWarning] = {}
    recent: dict[str, list[float]] = {}
    for line in lines:
        for key in line:
            member, _, metric = key.partition("/")
            if metric not in _OF_PROPOSALS or role_of(member) in ("", "student", member):
                continue
            if (value := number(line[key])) is None:
                continue
            step = line["step"]
            window = recent.setdefault(key, [])
            window.append(value)
            del window[:-STEPS]
            mean = sum(window) / STEPS
            text = _OF_PROPOSALS[metric](member, mean, fix) if len(window) == STEPS else None
            if text:
                kind = "copies" if metric == "unique_frac" else "runaway"
                text = f"{text} (mean of {STEPS} steps, step {step})"
                warnings.setdefault((member, kind), RunWarning(step, member, kind, text))
    for warning in _forgetting(evals, fix):
        warnings.setdefault((warning.member, warning.kind), warning)
    return sorted(warnings.values())


def _runaway(member: str, rate: float, fix: str) -> str | None:
    if LOW <= rate <= HIGH:
        return None
    below = rate < LOW
    ways = [fix] if fix else []
    if role_of(member) == "teacher":
        ways.append("population.teacher_target_solve_rate=[0.25,0.75] slows the teacher down")
    ways.append("population.teacher_reward=frontier pays for tasks that some attempts solve")
    return (
        f"{member} has run away: its valid tasks are too {'hard' if below else 'easy'}, {rate:.0%} "
        f"of attempts solve them ({'below' if below else 'above'} {LOW if below else HIGH:.0%}); "
        + ", ".join(ways)
    )


def _copies(member: str, unique: float, fix: str) -> str | None:
    if unique >= UNIQUE:
        return None
    return (
        f"{member} repeats itself: {unique:.0%} of its valid proposals have no copy; raise "
        "population.duplicate_penalty"
    )


_OF_PROPOSALS = {"solve_rate": _runaway, "unique_frac": _copies}


def _forgetting(evals: Iterable[Record], fix: str) -> Iterable[RunWarning]:
    """Evals that are worse than the member's best one by more than twice the standard error of the
    difference over tasks."""
    best: dict[str, Sequence[float]] = {}
    for row in evals:
        member, step = str(row.get("member")), row["step"]
        scores = [score for score in row.get("greedy") or () if score is not None]
        if not scores:
            continue
        before = best.setdefault(member, scores)
        if len(before) != len(scores) or sum(scores) >= sum(before):
            best[member] = scores
            continue
        gaps = [a - b for a, b in zip(before, scores, strict=True)]
        drop = sum(gaps) / len(gaps)
        variance = sum((gap - drop) ** 2 for gap in gaps) / max(1, len(gaps) - 1)
        if drop > 2 * math.sqrt(variance / len(gaps)) and len(gaps) > 1:
            score, most = (sum(values) / len(values) for values in (scores, before))
            text = (
                f"{member} forgets: it solves {score:.0%} of the held-out tasks at step {step}, "
                f"{most:.0%} at its best (kept in members/best)" + (f"; {fix}" if fix else "")
            )
            yield RunWarning(step, member, "forgets", text)
