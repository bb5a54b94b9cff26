"""What a measure is: declared once, and used by terminal, pages, recipes and diagnostics."""

import math
from dataclasses import dataclass
from typing import Literal

PROPOSERS, SOLVERS = ("teacher", "agent"), ("student", "agent")


@dataclass(frozen=True)
class Measure:
    """A number of a domain's problems that a run has at each step, under this name in
    `metrics.jsonl`."""

    name: str
    """In records, in recipes and in `series`."""
    title: str
    about: str
    """What follows the title: of what it is a mean or a share."""
    unit: str = ""
    format: Literal["number", "percent"] = "number"
    whose: tuple[str, ...] = PROPOSERS
    """Roles: it is that of the first which has it, if nobody is named; without any, the mean over
    all members."""
    better: Literal["higher", "lower", ""] = ""
    least: float = 0.0
    """No value lies below it; -inf where there is no such bound."""
    section: str = ""
    """Of the pages: skill, proposing, complexity, space, standing or training; not drawn if empty.
    """
    short: str = ""
    """Its heading in the terminal; not shown there if empty."""
    rare: bool = False
    """Measured at exams, and precisely: nothing to be smoothed."""
    grows: bool = False
    """It can only grow, so its last value says more than a mean over steps."""

    @property
    def most(self) -> float:
        """No value lies above it."""
        return 1.0 if self.format == "percent" else math.inf

    @property
    def form(self) -> str:
        """For the terminal, as `str.format` has it."""
        if self.format == "percent":
            return "{:.0%}"
        return "{:+.2f}" if self.least < 0.0 else "{:.1f}"

    @property
    def axis(self) -> str:
        """The label of an axis."""
        return self.unit or ("share" if self.format == "percent" else self.about)

    def told(self, value: float) -> str:
        """In words: `31 AST nodes`, `cyclomatic complexity 3`."""
        return f"{value:g} {self.unit}" if self.unit else f"{self.title.lower()} {value:g}"
