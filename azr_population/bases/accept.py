"""Acceptance of a base: what it proposes and solves, measured by execution.

Programs and answers are executed by the referee and judged by the same rules as in a run. The base
proposes at temperature 1 and solves its own valid proposals; the figures are per task type.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan, nan
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from azr_population.analysis.statistics import Estimate, interval, interval_text
from azr_population.bases.programs import digest, read_digests
from azr_population.config.schema import TaskConfig
from azr_population.domains.code.complexity import MEASURES, measures
from azr_population.domains.code.domain import Code
from azr_population.domains.code.formats import FORMATS
from azr_population.domains.code.task_types import Task, TaskType, reference_answer
from azr_population.domains.format import Format, read_answer, read_proposal
from azr_population.engines.assembly import EngineSettings, text_engine
from azr_population.engines.engine import Completion, Sampling
from azr_population.engines.rollouts import RolloutSettings
from azr_population.pages.console.heartbeat import spinner
from azr_population.referee import Referee
from azr_population.runs.records import show
from azr_population.weights.adapter import LoraSpec

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
"""`valid` of the proposals; `unique` of the valid ones, by program and inputs; `copied` of them,
whose program the base was warmed up on; `solved` and `greedy`: attempts at valid tasks that solved
them, at temperature 1 and greedy; `guess`: valid tasks that share the most common answer."""

NOTHING = Estimate(nan, nan, nan, (0,))
"""A share where nothing was counted."""


@dataclass(frozen=True)
class BaseFigures:
    """What was counted for one task type."""

    proposals: int
    valid_tasks: int
    shares: dict[str, Estimate]
    """By name of `SHARES`, with 95% intervals: Wilson's; of `solved` Student's over tasks."""
    tokens: float
    """Of a proposal, mean."""
    measures: dict[str, float]
    """Means over the valid programs, by `MEASURES`."""
    refused: dict[str, int]

    def to_json(self) -> dict[str, Any]:
        """Shares with intervals, and the counts behind them."""
        shares = {
            name: {"mean": share.mean, "low": share.low, "high": share.high}
            for name, share in self.shares.items()
            if share is not NOTHING
        }
        counts = {"proposals": self.proposals, "valid_tasks": self.valid_tasks}
        return counts | shares | {"tokens": self.tokens, **self.measures, "refused": self.refused}


def share(count: int, total: int) -> Estimate:
    """With Wilson's interval."""
    from scipy.stats import binomtest

    if not total:
        return NOTHING
    bounds = binomtest(count, total).proportion_ci(method="wilson")
    return Estimate(count / total, float(bounds.low), float(bounds.high), (total,))


def missed(figures: Mapping[TaskType, BaseFigures], targets: Targets) -> list[str]:
    """The targets that the figures miss, one line each."""
    lines = []
    for name, bounds in targets.items():
        for type, (low, high) in bounds.items():
            mean = figures[type].shares[name].mean if type in figures else low
            if isnan(mean):
                lines.append(f"{type} {name}: nothing was counted")
            elif not low <= mean <= high:
                lines.append(f"{type} {name} {mean:.1%}, wanted {low:.0%}-{high:.0%}")
    return lines


def print_table(figures: Mapping[TaskType, BaseFigures], targets: Targets, title: str) -> None:
    """The table and what was refused, on the terminal."""
    from rich.console import Console
    from rich.table import Table

    sizes = [size for size in MEASURES if size.short]
    table = Table(title=title)
    for heading in ("task", *SHARES, "tokens", *(size.short for size in sizes)):
        table.add_column(heading, justify="left" if heading == "task" else "right")
    for type, row in figures.items():
        table.add_row(
            str(type),
            *(interval_text(row.shares[name], percent=True) for name in SHARES),
            f"{row.tokens:.1f}",
            *(show(row.measures.get(size.name), size.form) for size in sizes),
        )
    console = Console()
    console.print(table)
    for type, row in figures.items():
        console.print(f"{type} refused: {row.refused}")
    for line in missed(figures, targets):
        console.print(f"[red]missed: {line}[/red]")


_ROWS = 64
"""Rows decoded at once: the logits of a large vocabulary are the largest part of a step."""


class Writer:
    """Completions of the bare base; the same seed gives the same ones."""

    def __init__(self, folder: str | Path, format: str, seed: int) -> None:
        self.format = FORMATS.find(format).function()
        # The engine of a run with one adapter that adds nothing: its factor B is zero.
        settings = EngineSettings(
            str(folder),
            ("base",),
            LoraSpec(1, 1.0, ("all-linear",)),
            dtype="bfloat16" if self.format.chat else "float32",
            rollout=RolloutSettings(rows=_ROWS),
        )
        generators = [torch.Generator().manual_seed(0)]
        self._engine = text_engine(settings, generators, self.format.chat)
        self._seed = seed

    def propose(self, type: TaskType, n: int) -> list[Completion]:
        """`n` proposals at temperature 1."""
        sampling = Sampling(self.format.max_new_tokens(type, "propose"), n=1)
        return self._write([self.format.propose_prompt(type)] * n, sampling)

    def solve(self, tasks: Sequence[Task], attempts: int, greedy: bool) -> list[list[str | None]]:
        """Parsed answers to each task, at temperature 1 or greedy; None where the form is wrong."""
        if not tasks:
            return []
        type = tasks[0].type
        sampling = Sampling(
            self.format.max_new_tokens(type, "solve"), 0.0 if greedy else 1.0, n=attempts
        )
        written = self._write([self.format.solve_prompt(task) for task in tasks], sampling)
        answers = [read_answer(self.format, type, completion) for completion in written]
        return [answers[i : i + attempts] for i in range(0, len(answers), attempts)]

    def _write(self, prompts: Sequence[str], sampling: Sampling) -> list[Completion]:
        self._seed += 1
        groups = self._engine.generate(prompts, [0] * len(prompts), sampling, self._seed)
        return [completion for group in groups for completion in group]


def accept(
    folder: str | Path,
    format: str = "short",
    n: int = 500,
    seed: int = 1,
    attempts: int = 4,
    seen_programs: Sequence[str] = (),
    types: Sequence[TaskType] = tuple(TaskType),
) -> dict[TaskType, BaseFigures]:
    """BaseFigures by task type.

    Args:
        format: of the prompts, as `base.prompt_format` of a run.
        n: proposals per task type.
        attempts: answers per valid task at temperature 1, over which `solved` is the mean.
        known: programs that count as copies beside those of the base's warm-up.
    """
    copies = read_digests(folder) | {digest(program) for program in seen_programs}
    writer = Writer(folder, format, seed)
    figures = {}
    with Referee() as referee, spinner(Path(folder).name) as begin:
        for place, type in enumerate(types, start=1):
            begin(f"{type}, {place} of {len(types)}")
            figures[type] = _measure(writer, referee, type, n, attempts, copies)
    return figures


def _measure(
    writer: Writer, referee: Referee, type: TaskType, n: int, attempts: int, copies: set[str]
) -> BaseFigures:
    proposals = writer.propose(type, n)
    refused: Counter[str] = Counter()
    tasks = valid_tasks(referee, writer.format, type, proposals, TaskConfig(), refused)
    complexity = pd.DataFrame([measures(task.program) for task in tasks])
    answers = Counter(reference_answer(task) for task in tasks)
    unique = len({(task.program, task.inputs) for task in tasks})
    copied = sum(digest(task.program) in copies for task in tasks)
    solved = _solve_rates(writer, referee, tasks, attempts, greedy=False)
    greedy = _solve_rates(writer, referee, tasks, 1, greedy=True)
    return BaseFigures(
        proposals=n,
        valid_tasks=len(tasks),
        shares={
            "valid": share(len(tasks), n),
            "unique": share(unique, len(tasks)),
            "copied": share(copied, len(tasks)) if copies else NOTHING,
            "solved": interval(solved) if solved else NOTHING,
            "greedy": share(round(sum(greedy)), len(greedy)),
            "guess": share(max(answers.values(), default=0), len(tasks)),
        },
        tokens=sum(len(completion.token_ids) for completion in proposals) / n,
        measures=complexity.mean().to_dict(),
        refused=dict(refused.most_common()),
    )


def valid_tasks(
    referee: Referee,
    format: Format,
    type: TaskType,
    written: Sequence[Completion],
    rules: TaskConfig,
    refused: Counter[str],
) -> list[Task]:
    """What is finished, parses, executes and passes the rules; why not is counted in `refused`."""
    parsed = [read_proposal(format, type, completion) for completion in written]
    proposals = [proposal for proposal in parsed if proposal is not None]
    refused["form"] += len(parsed) - len(proposals)
    verdicts = Code().judge(proposals, referee, rules)
    refused.update(verdict for verdict in verdicts if isinstance(verdict, str))
    return [verdict for verdict in verdicts if isinstance(verdict, Task)]


def _solve_rates(
    writer: Writer, referee: Referee, tasks: Sequence[Task], attempts: int, greedy: bool
) -> list[float]:
    """The share of solved attempts at each task."""
    asked = [
        (task, [answer for answer in answers if answer is not None])
        for task, answers in zip(tasks, writer.solve(tasks, attempts, greedy), strict=True)
    ]
    judged = Code().grade(asked, referee)
    return [sum(verdict.solved for verdict in of_task) / attempts for of_task in judged]
