"""Arms compared: the verdicts that the page, the terminal and scripts show."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from azr_population.pages.comparison.differences import Differences, differences
from azr_population.pages.comparison.inputs import Arm, arms_of
from azr_population.pages.comparison.verdict_html import number
from azr_population.pages.comparison.verdict_table import Verdict, horizon, verdicts
from azr_population.runs.diagnostics import Estimate
from azr_population.runs.formatting import plain


@dataclass(frozen=True)
class Compared:
    """Arms, the step at which they are compared, a verdict per measure, and what differs."""

    arms: Sequence[Arm]
    step: int
    rows: Sequence[Verdict]
    differing: Differences

    def lines(self) -> list[str]:
        """For the terminal: a table for each arm against the first one, then what to bear in
        mind."""
        first = self.arms[0].name
        lines = []
        for i, arm in enumerate(self.arms[1:], start=1):
            lines += [f"{plain(arm.name)} against {plain(first)} at step {self.step}"]
            table = [
                (
                    row.taken.title,
                    _value(row, row.values[0]),
                    _value(row, row.values[i]),
                    _difference(row, i),
                    row.words[i],
                )
                for row in self.rows
            ]
            heads = ("", plain(first), plain(arm.name), "difference", "verdict")
            lines += [f"  {line}" for line in _aligned([heads, *table])]
        if not self.rows:
            lines += ["nothing to compare is recorded yet"]
        return [*lines, *(f"note: {plain(warning)}" for warning in self.differing.warnings)]

    def to_json(self) -> dict[str, Any]:
        """The verdicts for scripts. Shares lie within 0..1; null where there is no value."""
        return {
            "step": self.step,
            "arms": [
                {
                    "name": arm.name,
                    "runs": [{"path": str(run.path), "kind": run.kind} for run in arm.runs],
                }
                for arm in self.arms
            ],
            "measures": [
                {
                    "measure": row.taken.measure.name,
                    "take": row.taken.take,
                    "title": row.taken.title,
                    "better": row.taken.measure.better,
                    "arms": {
                        arm.name: {
                            **_estimate(row.values[i]),
                            "difference": _estimate(row.differences[i]),
                            "verdict": row.words[i],
                        }
                        for i, arm in enumerate(self.arms)
                    },
                }
                for row in self.rows
            ],
            "warnings": self.differing.warnings,
        }


def compare(arguments: Sequence[str]) -> Compared:
    """Compares the runs that the arguments name (see `arms_of`). Raises UserError: the arguments do
    not name two arms."""
    arms = arms_of(arguments)
    step = horizon(arms)
    return Compared(arms, step, verdicts(arms, step), differences(arms))


def _value(row: Verdict, estimate: Estimate | None, signed: bool = False) -> str:
    if estimate is None or math.isnan(estimate.mean):
        return "-"
    scale = 100.0 if row.unit else 1.0
    unit = "points" if row.unit and signed else row.unit
    signed |= unit == "points"
    mean, low, high = (
        number(scale * value, signed) for value in (estimate.mean, estimate.low, estimate.high)
    )
    told = f"{mean}{'' if unit == '%' else ' ' * bool(unit)}{unit}"
    return told if math.isnan(estimate.low) else f"{told} [{low}, {high}]"


def _difference(row: Verdict, arm: int) -> str:
    return _value(row, row.differences[arm], signed=True)


def _estimate(estimate: Estimate | None) -> dict[str, Any]:
    if estimate is None:
        return {"mean": None, "low": None, "high": None, "n": 0}
    known = {name: getattr(estimate, name) for name in ("mean", "low", "high")}
    told = {name: None if math.isnan(value) else value for name, value in known.items()}
    return {**told, "n": estimate.n}


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns of equal width; numbers, all but the first and last, to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    last = len(widths) - 1
    return [
        "  ".join(
            cell.rjust(width) if 0 < i < last else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
