"""The report's opening: what happened, in three sentences with numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from azr_population.reports.diagnostics.records import section
from azr_population.reports.lines import conservative, duration, mean, number

Record = Mapping[str, Any]


def summary(
    name: str,
    steps: int | None,
    metrics: Sequence[Record],
    matches: Sequence[Record],
    lineage: Sequence[Record],
) -> list[str]:
    """Three sentences: what was played, what changed, who came out on top."""
    if not metrics:
        return [
            f"The run {name} has not finished a step yet.",
            f"{_count(len(matches), 'match')} and {_count(len(lineage), 'replacement')} are "
            "recorded.",
            "The page fills as steps are recorded: write it again later.",
        ]
    return [_played(name, steps, metrics, matches, lineage), _changed(metrics), _leading(metrics)]


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
    tasks = ""
    if proposed:
        tasks = f", {proposed:,} tasks were proposed and {valid / proposed:.0%} of them valid"
    return (
        f"In {name}, {who or 'nobody'} played {metrics[-1]['step']}{of} steps in {took}{tasks}, "
        f"and {_count(len(lineage), 'member')} {'was' if len(lineage) == 1 else 'were'} replaced."
    )


def _changed(metrics: Sequence[Record]) -> str:
    """From the mean of the first tenth of the steps to that of the last, at least one step each."""
    tenth = math.ceil(len(metrics) / 10)
    parts = []
    for role, key, words, form in (
        ("student", "solve_rate", "the students' solve rate", "{:.0%}"),
        ("agent", "solve_rate", "the agent's solve rate", "{:.0%}"),
        ("teacher", "validity", "the share of valid proposals", "{:.0%}"),
        ("agent", "validity", "the share of valid proposals", "{:.0%}"),
        ("teacher", "ast_nodes", "a program's size", "{:.1f}"),
        ("agent", "ast_nodes", "a program's size", "{:.1f}"),
    ):
        first, last = (
            mean(number(section(step, "roles").get(role, {}).get(key)) for step in some)
            for some in (metrics[:tenth], metrics[-tenth:])
        )
        if first is not None and last is not None:
            unit = " AST nodes" if key == "ast_nodes" else ""
            parts.append(
                f"{words} {_moved(form.format(first), form.format(last), last - first)}{unit}"
            )
    exams = [step["exam"] for step in metrics if isinstance(step.get("exam"), Mapping)]
    if len(exams) > 1:
        first, last = (number(exam.get("mean")) for exam in (exams[0], exams[-1]))
        if first is not None and last is not None:
            moved = _moved(f"{first:.0%}", f"{last:.0%}", last - first)
            parts.append(f"the exam's mean {moved}")
    if not parts:
        return "No solve rate, validity or size of program is recorded."
    spans = ("step", "") if tenth == 1 else (f"{tenth} steps", f" {tenth}")
    return f"From the first {spans[0]} to the last{spans[1]}, {_listed(parts)}."


def _leading(metrics: Sequence[Record]) -> str:
    members = section(metrics[-1], "members")
    parts = []
    for role in ("teacher", "student"):
        rated = [
            (value, name, member)
            for name, member in members.items()
            if member.get("role") == role and (value := conservative(member)) is not None
        ]
        if rated:
            _, name, member = max(rated, key=lambda row: (row[0], row[1]))
            parts.append(
                f"the {role} most surely strong is {name} (mu {member['mu']:.1f}, sigma "
                f"{member['sigma']:.1f}, generation {member.get('generation', 0)})"
            )
    if not parts:
        return "There are no ratings, since a single agent meets nobody but itself."
    text = _listed(parts)
    return f"{text[0].upper()}{text[1:]}."


def _moved(first: str, last: str, change: float) -> str:
    """`rose from 30% to 42%`; what shows as the same has stayed."""
    if first == last:
        return f"stayed at {last}"
    return f"{'rose' if change > 0 else 'fell'} from {first} to {last}"


def _count(count: int, noun: str) -> str:
    plural = {"match": "matches"}.get(noun, f"{noun}s")
    return f"{count} {noun if count == 1 else plural}"


def _listed(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
