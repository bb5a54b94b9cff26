"""The numbers of a step for loggers, named like those that AZR's own logger gets."""

from collections import ChainMap
from collections.abc import Mapping
from typing import Any

from azr_population.runs.records import number

NAMESPACE = "population"


def step_figures(step: Mapping[str, Any], births: int = 0) -> dict[str, float]:
    """All finite numbers of a line of `metrics.jsonl`, as a flat mapping.

    Their names are `population/<role or member>/<name>`, `population/<task type>/<name>`,
    `population/exam/<mean, best, worst, member or type>`, `population/phases/<phase>` in
    seconds, `population/reasons/<reason>`, `population/seconds` and `population/replaced`
    (`births`: how many members were replaced).
    """
    sections: dict[str, Any] = {}
    for group in ("roles", "members", "types"):
        sections |= step.get(group) or {}
    exam = dict(step.get("exam") or {})
    temperatures = {f"temperature_{name}": at for name, at in exam.pop("temperatures", {}).items()}
    groups = (exam.pop(group, {}) for group in ("members", "types", "strata"))
    sections["exam"] = dict(ChainMap(exam, temperatures, *groups))
    sections["phases"] = step.get("phases") or {}
    sections["reasons"] = step.get("reasons") or {}
    figures = section_figures(sections, births)
    if (seconds := number(step.get("seconds"))) is not None:
        figures[f"{NAMESPACE}/seconds"] = seconds
    return figures


def section_figures(sections: Mapping[str, Mapping[str, Any]], births: int) -> dict[str, float]:
    """The finite numbers of `sections` as `population/<section>/<name>`, and `births` as
    `population/replaced`."""
    figures = {f"{NAMESPACE}/replaced": float(births)}
    for section, values in sections.items():
        for name, value in values.items():
            if (known := number(value)) is not None:
                figures[f"{NAMESPACE}/{section}/{name}"] = known
    return figures
