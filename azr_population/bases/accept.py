"""Acceptance of a base: what it proposes and solves, measured by execution.

Programs and answers are executed by the referee and judged by the same rules as in a run. The base
proposes at temperature 1 and solves its own valid proposals; the figures are per task type.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from azr_population.analysis.statistics import Estimate, interval
from azr_population.bases.nano.corpus import is_held_out
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
from azr_population.pages.console.pulse import sign_of_life
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
        *(one.short for one in MEASURES if one.short),
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
        drawn = [torch.Generator().manual_seed(0)]
        self._engine = text_engine(settings, drawn, self.format.chat)
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
    known: Sequence[str] = (),
    types: Sequence[TaskType] = tuple(TaskType),
) -> dict[TaskType, Figures]:
    """Figures by task type.

    Args:
        format: of the prompts, as `base.prompt_format` of a run.
        n: proposals per task type.
        attempts: answers per valid task at temperature 1, over which `solved` is the mean.
        known: programs that count as copies beside those of the base's warm-up.
    """
    copies = read_digests(folder) | {digest(program) for program in known}
    writer = Writer(folder, format, seed)
    rules, found = TaskConfig(), {}
    with Referee() as referee, sign_of_life(Path(folder).name) as begin:
        for place, type in enumerate(types, start=1):
            begin(f"{type}, {place} of {len(types)}")
            found[type] = _measure(writer, referee, type, n, attempts, copies, rules)
    return found


def _measure(
    writer: Writer,
    referee: Referee,
    type: TaskType,
    n: int,
    attempts: int,
    copies: set[str],
    rules: TaskConfig,
) -> Figures:
    written = writer.propose(type, n)
    refused: Counter[str] = Counter()
    tasks = valid_tasks(referee, writer.format, type, written, rules, refused)
    complexity = [sizes for task in tasks if (sizes := measures(task.program))]
    answers = Counter(reference_answer(task) for task in tasks)
    return Figures(
        proposals=n,
        valid=len(tasks),
        unique=len({(task.program, task.inputs) for task in tasks}),
        copied=sum(digest(task.program) in copies for task in tasks) if copies else None,
        solved=_solve_rates(writer, referee, tasks, attempts, greedy=False),
        greedy=_solve_rates(writer, referee, tasks, 1, greedy=True),
        most_common_answer=max(answers.values(), default=0),
        tokens=sum(len(completion.token_ids) for completion in written) / n,
        measures={
            measure.name: sum(s.get(measure.name, 0.0) for s in complexity) / len(complexity)
            for measure in MEASURES
            if complexity
        },
        held_out=sum(is_held_out(task.program) for task in tasks),
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
