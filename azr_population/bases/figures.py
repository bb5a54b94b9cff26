"""The figures of an acceptance, their intervals, what is wanted of a base, and the table."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from azr_population.analysis.statistics import Estimate, interval
from azr_population.domains.code.complexity import MEASURES
from azr_population.domains.code.task import TaskType
from azr_population.runs.records import show

O, I, F = TaskType.CODE_O, TaskType.CODE_I, TaskType.CODE_F  # noqa: E741

Targets = Mapping[str, Mapping[TaskType, tuple[float, float]]]

TARGETS: dict[str, Targets] = {
    "nano": {
        "valid": {type: (0.80, 1.0) for type in TaskType},
        "unique": {type: (0.90, 1.0) for type in TaskType},
        # The long tail is there to be solved seldom.
        "solved": {O: (0.30, 0.50), I: (0.20, 1.0), F: (0.10, 1.0)},
        "guess": {O: (0.0, 0.15)},
    },
    "short": {
        "valid": {O: (0.50, 1.0), I: (0.50, 1.0)},
        "copied": {O: (0.0, 0.05), I: (0.0, 0.05)},
        "greedy": {O: (0.15, 1.0)},
    },
}
"""What a base is accepted for by the format of its prompts: lowest and highest figure."""

SHARES = ("valid", "unique", "copied", "solved", "greedy", "guess")


@dataclass(frozen=True)
class Figures:
    """What was counted for one task type."""

    proposals: int
    valid: int
    unique: int
    """Of the valid ones, by program and inputs."""
    copied: int | None
    """Valid ones whose program the base was warmed up on; None where that is not known."""
    solved: list[float]
    """For each valid task the share of attempts at temperature 1 that solved it."""
    greedy: list[float]
    """The same for the one greedy attempt."""
    most_common_answer: int
    """Valid tasks that share the most common answer."""
    tokens: float
    """Of a proposal, mean."""
    measures: dict[str, float]
    """Means over the valid programs, by `MEASURES`."""
    held_out: int
    """Valid programs of the nano exam's bucket."""
    refused: dict[str, int]

    def share(self, name: str) -> Estimate | None:
        """One of `SHARES` with its 95% interval (Wilson's; over tasks for `solved`); None where
        nothing was counted."""
        if name == "solved":
            return interval(self.solved) if self.solved else None
        counts = {
            "valid": (self.valid, self.proposals),
            "unique": (self.unique, self.valid),
            "copied": (self.copied, self.valid),
            "greedy": (round(sum(self.greedy)), len(self.greedy)),
            "guess": (self.most_common_answer, self.valid),
        }
        return _share(*counts[name])

    def to_json(self) -> dict[str, Any]:
        """Shares with intervals, and the counts behind them."""
        shares = {name: self.share(name) for name in SHARES}
        return {
            "proposals": self.proposals,
            "valid_tasks": self.valid,
            **{
                name: {"mean": interval.mean, "low": interval.low, "high": interval.high}
                for name, interval in shares.items()
                if interval is not None
            },
            "tokens": self.tokens,
            **self.measures,
            "refused": self.refused,
        }


def missed(figures: Mapping[TaskType, Figures], targets: Targets) -> list[str]:
    """The targets that the figures miss, one line each."""
    lines = []
    for name, bounds in targets.items():
        for type, (low, high) in bounds.items():
            if type not in figures:
                continue
            share = figures[type].share(name)
            if share is None:
                lines.append(
                    f"{type} {name} cannot be told: nothing was valid, or nothing is known"
                )
            elif not low <= share.mean <= high:
                lines.append(f"{type} {name} {share.mean:.1%}, wanted {low:.0%}-{high:.0%}")
    return lines


def print_table(figures: Mapping[TaskType, Figures], targets: Targets, title: str) -> None:
    """The table and what was refused, on the terminal."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title)
    for heading in (
        "task",
        *SHARES,
        "tokens",
        *(measure.short for measure in MEASURES if measure.short),
    ):
        table.add_column(heading, justify="left" if heading == "task" else "right")
    for type, row in figures.items():
        cells = []
        for name in SHARES:
            share = row.share(name)
            low, high = targets.get(name, {}).get(type, (0.0, 1.0))
            text = _told(share)
            good = share is not None and low <= share.mean <= high
            cells.append(text if good or text == "-" else f"[red]{text}[/red]")
        sizes = [
            show(row.measures.get(measure.name), measure.form)
            for measure in MEASURES
            if measure.short
        ]
        table.add_row(str(type), *cells, f"{row.tokens:.1f}", *sizes)
    console = Console()
    console.print(table)
    for type, row in figures.items():
        console.print(f"{type} refused: {row.refused}")
    for line in missed(figures, targets):
        console.print(f"[red]missed: {line}[/red]")


def _told(share: Estimate | None) -> str:
    if share is None:
        return "-"
    if share.low != share.low:  # one task has no interval
        return f"{share.mean:.1%}"
    return f"{share.mean:.1%} ({100 * share.low:.0f}-{100 * share.high:.0f})"


def _share(count: int | None, of: int) -> Estimate | None:
    if count is None or not of:
        return None
    from scipy.stats import binomtest

    bounds = binomtest(count, of).proportion_ci(method="wilson")
    return Estimate(count / of, float(bounds.low), float(bounds.high), (of,))
