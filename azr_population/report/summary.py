"""The opening of a run's page: what happened, in three sentences with numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from azr_population.diagnostics.takes import tenth
from azr_population.runs.formatting import duration, figure
from azr_population.runs.records import conservative, number, section

Record = Mapping[str, Any]

_NOTHING = "No solve rate, validity or size of program is recorded."


def summary(
    name: str,
    steps: int | None,
    metrics: Sequence[Record],
    matches: Sequence[Record],
    lineage: Sequence[Record],
    tiles: Sequence[Record],
) -> list[str]:
    """Up to three sentences: what was played, what changed, who came out on top.

    What changed is taken from `tiles`, so that sentences and tiles show the same numbers.
    """
    if not metrics:
        known = f"{_count(len(matches), 'match')} and {_count(len(lineage), 'replacement')} are"
        if matches or lineage:
            return [
                f"No step of the run {name} is in its metrics.jsonl: most curves and "
                "the members are missing.",
                f"{known} recorded elsewhere, and shown.",
            ]
        return [
            f"The run {name} has not finished a step yet.",
            "The page fills as steps are recorded: write it again later.",
        ]
    members = section(metrics[-1], "members")
    return [
        _played(name, steps, metrics, matches, lineage),
        _changed(metrics, tiles),
        _leading(members),
    ]


def _played(
    name: str,
    steps: int | None,
    metrics: Sequence[Record],
    matches: Sequence[Record],
    lineage: Sequence[Record],
) -> str:
    roles = [str(m.get("role", "")) for m in section(metrics[-1], "members").values()]
    who = " and ".join(_count(roles.count(role), role) for role in dict.fromkeys(roles))
    took = duration(math.fsum(number(step.get("seconds")) or 0.0 for step in metrics))
    of = f" of {steps}" if steps else ""
    proposed = sum(int(number(match.get("proposed")) or 0) for match in matches)
    valid = sum(int(number(match.get("valid")) or 0) for match in matches)
    replaced = _count(len(lineage), "member") if lineage else "nobody"
    replaced += " were" if len(lineage) > 1 else " was"
    exams = any(isinstance(step.get("exam"), Mapping) for step in metrics)
    took += " with the exams" if exams else ""
    tasks = ""
    if proposed:
        share = figure(valid / proposed, "percent")
        tasks = f", {proposed:,} tasks were proposed and {share} of them valid"
    return (
        f"In {name}, {who or 'nobody'} played {metrics[-1]['step']}{of} steps in {took}{tasks}, "
        f"and {replaced} replaced."
    )


def _changed(metrics: Sequence[Record], tiles: Sequence[Record]) -> str:
    """From the first tenth of the steps to the last, and from the first exam to the last."""
    roles = [str(m.get("role", "")) for m in section(metrics[-1], "members").values()]
    words = {
        "Solve rate": lambda role: f"the {_whose(roles, role)} solve rate",
        "Valid proposals": lambda role: "the share of valid proposals",
        "AST nodes": lambda role: "a program's size",
    }
    parts = [
        f"{words[tile['title']](tile['line'])} {_moved(tile)}"
        f"{' AST nodes' if tile['title'] == 'AST nodes' else ''}"
        for tile in tiles
        if tile["title"] in words
    ]
    exam = next((tile for tile in tiles if tile["title"] == "Exam"), None)
    of = "mean" if exam and exam["line"] == "mean" else "score"
    examined = f"from the first exam to the last, the {of} {_moved(exam)}" if exam else ""
    if not parts:
        return f"{examined[:1].upper()}{examined[1:]}." if exam else _NOTHING
    width = tenth(metrics[-1]["step"])
    spans = ("step", "") if width == 1 else (f"{width} steps", f" {width}")
    return (
        f"From the first {spans[0]} to the last{spans[1]}, {_listed(parts)}"
        f"{'; ' if exam else ''}{examined}."
    )


def _leading(members: Mapping[str, Record]) -> str:
    """Who leads each role; a role with one member has only a rating to report."""
    leaders, alone = [], []
    for role in ("teacher", "student"):
        rated = [
            (value, name, member)
            for name, member in members.items()
            if member.get("role") == role and (value := conservative(member)) is not None
        ]
        if len(rated) > 1:
            _, name, member = max(rated, key=lambda row: (row[0], row[1]))
            leaders.append(
                f"{name} leads the {role}s (mu {member['mu']:.1f}, sigma {member['sigma']:.1f}, "
                f"generation {member.get('generation', 0)})"
            )
        elif rated:
            _, _, member = rated[0]
            alone.append(f"the {role} is rated mu {member['mu']:.1f}, sigma {member['sigma']:.1f}")
    if not leaders and not alone:
        return "There are no ratings, since a single agent meets nobody but itself."
    text = f"{'by mu - 3 sigma, ' if leaders else ''}{_listed([*leaders, *alone])}"
    return f"{text[0].upper()}{text[1:]}."


def _whose(roles: Sequence[str], role: str) -> str:
    return f"{role}s'" if roles.count(role) > 1 else f"{role}'s"


def _moved(tile: Record) -> str:
    """`rose from 30% to 42%`, or `stayed at` where both look the same."""
    first, last = (figure(tile[key], tile["format"]) for key in ("first", "last"))
    if first == last:
        return f"stayed at {last}"
    return f"{'rose' if tile['last'] > tile['first'] else 'fell'} from {first} to {last}"


def _count(count: int, noun: str) -> str:
    plural = {"match": "matches"}.get(noun, f"{noun}s")
    return f"{count} {noun if count == 1 else plural}"


def _listed(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
