"""Why proposals were refused: over the steps of a run, and in a sentence where all of them were."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from azr_population.runs.reasons import meaning
from azr_population.runs.records import Record, number

MAX_BUCKETS = 50
MAX_REASONS = 7
"""Reasons with a colour of their own; the rarer ones are counted as `other`."""
MOST = 3
"""Reasons that the sentence tells."""


def invalid_reasons(metrics: Sequence[Record]) -> dict[str, Any]:
    """`{"names", "buckets"}`, the most frequent reason first.

    A bucket holds one or more steps: `{"first", "last", "proposed", "counts"}`, a count per name.
    """
    steps: list[tuple[int, Counter[str]]] = []
    for step in metrics:
        reasons = step.get("reasons")
        if isinstance(reasons, Mapping):
            counts = {str(key): int(number(value) or 0) for key, value in reasons.items()}
            steps.append((int(step["step"]), Counter(counts)))
    whole: Counter[str] = Counter()
    for _, counts_now in steps:
        whole.update(counts_now)
    del whole["ok"]
    names = [name for name, count in whole.most_common() if count]
    if len(names) > MAX_REASONS:
        names = [*names[: MAX_REASONS - 1], "other"]
    stride = math.ceil(len(steps) / MAX_BUCKETS) or 1
    buckets = []
    for i in range(0, len(steps), stride):
        together: Counter[str] = Counter()
        for _, counts_now in steps[i : i + stride]:
            together.update(counts_now)
        proposed = sum(together.values())
        invalid = proposed - together["ok"]
        named = [together[name] for name in names if name != "other"]
        if "other" in names:
            named.append(invalid - sum(named))
        last = steps[min(i + stride, len(steps)) - 1][0]
        buckets.append({"first": steps[i][0], "last": last, "proposed": proposed, "counts": named})
    return {"names": names, "buckets": buckets}


def nothing_valid(metrics: Sequence[Record]) -> str:
    """What is wrong with a run that has no valid proposal; empty for one that has, or made none."""
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
