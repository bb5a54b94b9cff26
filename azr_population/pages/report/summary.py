"""The opening of a run's page: what was played, what changed, who leads."""

import math
from collections.abc import Mapping, Sequence

from azr_population.pages.report.changed import changed, listed
from azr_population.pages.report.charts import born_at
from azr_population.runs.formatting import duration, figure
from azr_population.runs.records import Record, by_number, conservative, number, section

_NOTHING = "No solve rate, validity or size of program is recorded."


def summary(
    name: str,
    steps: int | None,
    metrics: Sequence[Record],
    matches: Sequence[Record],
    lineage: Sequence[Record],
    tiles: Sequence[Record],
    wrong: str = "",
) -> list[str]:
    """What was played, what changed, who came out on top: a paragraph each.

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
    last = metrics[-1]["step"]
    roles = [str(member.get("role", "")) for member in members.values()]
    return [
        _played(name, steps, metrics, matches, lineage),
        *([wrong] if wrong else changed(roles, last, tiles) or [_NOTHING]),
        _leading(members, born_at(lineage, last)),
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


def _leading(members: Mapping[str, Record], newborn: set[str]) -> str:
    """Who leads each role; a role with one member has only a rating to report. Those born at the
    last step have not played yet, and lead nobody."""
    leaders, alone = [], []
    for role in ("teacher", "student"):
        rated = [
            (value, name, member)
            for name, member in members.items()
            if member.get("role") == role
            and name not in newborn
            and (value := conservative(member)) is not None
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
    text = f"{'by mu - 3 sigma, ' if leaders else ''}{listed([*leaders, *alone])}"
    unplayed = sorted(newborn & set(members), key=by_number)
    if unplayed:
        many = len(unplayed) > 1
        text += (
            f"; {listed(unplayed)} {'were' if many else 'was'} born at the end of the last step "
            f"and {'have' if many else 'has'} not played yet"
        )
    return f"{text[0].upper()}{text[1:]}."


def _count(count: int, noun: str) -> str:
    plural = {"match": "matches"}.get(noun, f"{noun}s")
    return f"{count} {noun if count == 1 else plural}"
