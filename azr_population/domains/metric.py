"""Metrics, declared once for terminal, pages, recipes and comparisons."""

import math
from dataclasses import dataclass
from typing import Literal

PROPOSERS, SOLVERS = ("teacher", "agent"), ("student", "agent")
Reduce = Literal["first_10pct", "last_10pct", "change", "last", "delta", "lowest_10pct",
                 "highest_10pct", "autocorrelation", "median"]  # fmt: skip
Section = Literal["skill", "proposing", "complexity", "space", "standing", "training", ""]


@dataclass(frozen=True)
class Metric:
    """A number that a run has at each step, under this name in `metrics.jsonl`."""

    name: str
    """The key in `metrics.jsonl`; without its prefix if roles or members have it (`solve_rate`)."""
    title: str
    about: str = ""
    """Follows the title: what it is a mean or a share of."""
    unit: str = ""
    percent: bool = False
    """A fraction that is shown in percent."""
    roles: tuple[str, ...] = PROPOSERS
    """Roles; the metric belongs to the first that a run has; () for a metric of the run."""
    better: Literal["higher", "lower", ""] = ""
    reduce: Reduce = "change"
    """The reduction of the curve in comparisons: a name in `analysis.statistics.REDUCERS`."""
    section: Section = ""
    """The section of the pages that draws it; empty: not drawn."""
    least: float = 0.0
    """No value lies below it; -inf where there is no bound."""
    short: str = ""
    """Its heading in the terminal; not shown there if empty."""

    @property
    def most(self) -> float:
        """No value lies above it."""
        return 1.0 if self.percent else math.inf

    def bounds(self, reduce: str) -> tuple[float, float]:
        """Bounds of a mean of its curves' reductions by `reduce`, and of its interval."""
        if reduce == "autocorrelation":
            return -1.0, 1.0
        width = self.most - self.least
        return (-width, width) if reduce in ("change", "delta") else (self.least, self.most)

    @property
    def is_eval(self) -> bool:
        """Measured at evals: rarely, and precisely."""
        return self.name.startswith(("eval/", "validation", "benchmark"))

    @property
    def form(self) -> str:
        """The `str.format` field of the terminal."""
        return "{:.0%}" if self.percent else "{:+.2f}" if self.least < 0.0 else "{:.1f}"

    def in_words(self, value: float) -> str:
        """`31 AST nodes`, `4.8 bits`, `cyclomatic complexity 3`."""
        shown = f"{round(value, 1):g}"
        return f"{shown} {self.unit}" if self.unit else f"{self.title.lower()} {shown}"
