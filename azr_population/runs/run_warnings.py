"""Warnings about long runs: tasks that are too hard or too easy, proposals that become copies, a
student that forgets, proposals that could not be judged. They are computed from records alone, so a
run, its report and a comparison agree."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from azr_population.runs.meanings import UNJUDGED
from azr_population.runs.records import Record, finite_or_none, role_of

STEPS = 20
"""Steps over which a teacher's metrics are averaged."""
LOW, HIGH = 0.1, 0.9
"""Solve rates of a teacher's valid tasks beyond which they teach hardly anything."""
UNIQUE = 0.5
"""The share of valid proposals without a copy below which they have collapsed."""
FORGETS = 4
"""Standard errors below its best eval by which a student has forgotten. The best of many evals is
also the luckiest: of runs in which no skill changes, 2 would warn in nine of ten and 4 in one in a
hundred (30 independent evals)."""


REPLAY = "population.replay_fraction=0.5 lets students keep what they learned"


class RunWarning(NamedTuple):
    """One problem of one member, with what helps."""

    step: int
    """The step at which it began."""
    member: str
    """Empty where it is of the whole run."""
    kind: str
    """`runaway`, `copies`, `forgets` or `unjudged`."""
    text: str


class Watch:
    """Reads records as they come. Each kind of warning is given once for each individual: a child
    is judged by its own records, not by those of the member that it replaced.
    """

    def __init__(self, uses_replay: bool = False) -> None:
        """`uses_replay`: whether the run has what keeps students from forgetting."""
        self._uses_replay = uses_replay
        self._recent: dict[tuple[str, Any, str], list[float]] = {}
        self._generation: dict[str, Any] = {}
        """Of each member in the line before: the line of a birth has the child's generation and the
        results of the member that it replaced."""
        self._best: dict[tuple[str, Any], Sequence[float | None]] = {}
        self._given: set[tuple[str, Any, str]] = set()

    def read(self, lines: Iterable[Record], evals: Iterable[Record] = ()) -> list[RunWarning]:
        """The warnings that begin with these lines of `metrics.jsonl` and `evals.jsonl`, both
        ascending, by step."""
        of_proposals = (warning for line in lines for warning in self._read_metrics(line))
        return sorted([*of_proposals, *self._read_evals(evals)])

    def _read_metrics(self, line: Record) -> Iterator[RunWarning]:
        """A line of `metrics.jsonl`. Committed results have no members, so there the role is
        judged."""
        for key in line:
            member, _, metric = key.partition("/")
            if metric not in _OF_PROPOSALS or role_of(member) in ("", "student"):
                continue
            value = finite_or_none(line[key])
            if value is None or f"{member}_0/generation" in line:
                continue
            step, generation = line["step"], self._generation.get(member, 0)
            window = self._recent.setdefault((member, generation, metric), [])
            window.append(value)
            del window[:-STEPS]
            kind, text_of = _OF_PROPOSALS[metric]
            text = text_of(member, sum(window) / STEPS) if len(window) == STEPS else None
            if text and self._is_new(member, generation, kind):
                text = f"{text} (mean of {STEPS} steps, step {step})"
                yield RunWarning(step, member, kind, text)
        unjudged = sum(finite_or_none(line.get(f"reason/{name}")) or 0 for name in UNJUDGED)
        if unjudged and self._is_new("", 0, "unjudged"):
            text = (
                f"{unjudged:.0f} proposals could not be judged, for a fault of this program or the "
                f"machine: see the log; nobody was paid or rated by them (step {line['step']})"
            )
            yield RunWarning(line["step"], "", "unjudged", text)
        generations = ((key.partition("/"), number) for key, number in line.items())
        self._generation.update((who, n) for (who, _, of), n in generations if of == "generation")

    def _read_evals(self, rows: Iterable[Record]) -> Iterator[RunWarning]:
        """Lines of `evals.jsonl`: an eval is worse than the student's best one by more than
        `FORGETS` standard errors of the difference over tasks."""
        for row in rows:
            member, generation, step = str(row.get("member")), row.get("generation"), row["step"]
            scores = row.get("greedy") or ()
            if all(score is None for score in scores):
                continue
            best = self._best.setdefault((member, generation), scores)
            # Tasks that could not be judged in either eval count in neither.
            judged = [(a, b) for a, b in zip(best, scores, strict=False)
                      if a is not None and b is not None]  # fmt: skip
            gaps = [a - b for a, b in judged]
            if len(best) != len(scores) or sum(gaps) <= 0:
                self._best[member, generation] = scores
                continue
            drop = sum(gaps) / len(gaps)
            variance = sum((gap - drop) ** 2 for gap in gaps) / max(1, len(gaps) - 1)
            certain = len(gaps) > 1 and drop > FORGETS * math.sqrt(variance / len(gaps))
            if certain and self._is_new(member, generation, "forgets"):
                most, score = (sum(values) / len(values) for values in zip(*judged, strict=True))
                text = (
                    f"{member} forgets: it solves {score:.0%} of the held-out tasks at step {step},"
                    f" {most:.0%} at its best (members/best keeps the run's best student)"
                )
                text = text if self._uses_replay else f"{text}; {REPLAY}"
                yield RunWarning(step, member, "forgets", text)

    def _is_new(self, member: str, generation: Any, kind: str) -> bool:
        before = len(self._given)
        self._given.add((member, generation, kind))
        return len(self._given) > before


def _runaway(member: str, rate: float) -> str | None:
    if LOW <= rate <= HIGH:
        return None
    hard = rate < LOW
    return (
        f"{member}'s valid tasks are too {'hard' if hard else 'easy'}: {rate:.0%} solved "
        f"({'below' if hard else 'above'} {LOW if hard else HIGH:.0%})"
    )


def _copies(member: str, unique: float) -> str | None:
    if unique >= UNIQUE:
        return None
    return (
        f"{member} repeats itself: {unique:.0%} of its valid proposals have no copy; raise "
        "population.duplicate_penalty"
    )


_OF_PROPOSALS = {"solve_rate": ("runaway", _runaway), "unique_frac": ("copies", _copies)}
