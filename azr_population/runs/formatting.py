"""Numbers as people read them: in the terminal, on pages and in tables."""

import math
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Protocol

from azr_population.runs.records import Record, number


class Interval(Protocol):
    """What has a mean, and NaN for bounds where there is no interval."""

    @property
    def mean(self) -> float: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...


def show(value: Any, form: str, missing: str = "-") -> str:
    """`value` in a format such as `{:.0%}`; `missing` where there is no finite number."""
    known = number(value)
    return missing if known is None else form.format(known)


def figure(value: float, kind: str) -> str:
    """A `percent` or another `number` as the pages' scripts write it (`format` in drawing.js), so
    that a number is the same in a sentence and in a drawing: halves are rounded up."""
    value, unit = (100.0 * value, "%") if kind == "percent" else (value, "")
    size = abs(value)
    if size >= 1e15:  # no figure of ours; Decimal has 28 digits
        return f"{value:.1e}{unit}"
    if unit:
        places = 1 if size < 10 else 0
    else:
        places = 0 if size >= 100 else 1 if size >= 10 else 2 if size >= 1 else 3
    rounded = Decimal(value).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
    return f"{rounded:,f}" if size >= 10000 and not unit else f"{rounded:f}{unit}"


def duration(seconds: float) -> str:
    """Minutes and seconds, with hours where there are some: `4:05`, `1:02:09`."""
    whole = max(0, round(seconds))
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def rating(member: Record) -> str:
    """`25.1 ± 0.4`, mu and sigma of a member's metrics; `-` for a member without a rating."""
    mu, sigma = number(member.get("mu")), number(member.get("sigma"))
    return "-" if mu is None or sigma is None else f"{mu:.1f} ± {sigma:.1f}"


def interval_text(estimate: Interval, form: str, scale: float = 1.0, unit: str = "") -> str:
    """`23.4% [21.0, 25.8]`, or the mean alone where there is no interval; `form` is that of one
    number, and all are multiplied by `scale`."""
    mean, low, high = (
        form.format(scale * value) for value in (estimate.mean, estimate.low, estimate.high)
    )
    return f"{mean}{unit}" if math.isnan(estimate.low) else f"{mean}{unit} [{low}, {high}]"
