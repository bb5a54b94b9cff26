"""What is wrong with a run that has no valid proposal, in a sentence."""

from collections import Counter
from collections.abc import Sequence

from azr_population.runs.reasons import meaning
from azr_population.runs.records import Record, number

MOST = 3
"""Reasons that are told."""


def nothing_valid(metrics: Sequence[Record]) -> str:
    """Empty where there is a valid proposal, or none was made."""
    reasons: Counter[str] = Counter()
    for step in metrics:
        noted = step.get("reasons")
        for name, count in (noted if isinstance(noted, dict) else {}).items():
            reasons[str(name)] += int(number(count) or 0)
    proposed = reasons.total()
    if not proposed or reasons["ok"]:
        return ""
    told = [
        f"{count} {name.replace('_', ' ')}" + (f" ({said})" if (said := meaning(name)) else "")
        for name, count in reasons.most_common(MOST)
    ]
    more = f" and {len(reasons) - MOST} more reasons" if len(reasons) > MOST else ""
    return (
        f"None of {proposed:,} proposals is a valid task, so nobody learned to solve: "
        f"{', '.join(told)}{more}."
    )
