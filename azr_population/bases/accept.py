"""Acceptance of a base: what it proposes and solves, judged by execution as in a run.

The base proposes at temperature 1 and solves its own valid proposals; figures are per task type.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from azr_population.analysis.statistics import Estimate, interval, interval_text
from azr_population.bases.programs import digest, read_digests
from azr_population.config.schema import TaskConfig
from azr_population.domains.code.complexity import MEASURES
from azr_population.domains.code.domain import Code
from azr_population.domains.code.formats import FORMATS
from azr_population.domains.code.task_types import TaskType, reference_answer
from azr_population.domains.format import read_answer, read_proposal
from azr_population.engines.assembly import EngineSettings, text_engine
from azr_population.engines.engine import Sampling
from azr_population.engines.rollouts import RolloutSettings
from azr_population.method.matchmaking import Match
from azr_population.method.members import Roster
from azr_population.method.phases import grade, verify
from azr_population.method.proposals import Attempt, Proposal
from azr_population.method.step_context import StepContext
from azr_population.pages.console.heartbeat import spinner
from azr_population.referee import Referee
from azr_population.runs.records import show
from azr_population.weights.adapter import LoraSpec

O, I, F = TaskType.CODE_O, TaskType.CODE_I, TaskType.CODE_F  # noqa: E741

Targets = Mapping[str, Mapping[TaskType, tuple[float, float]]]
BaseFigures = dict[str, Any]
"""Of one task type: the `SHARES` that could be counted, as estimates with 95% intervals (Wilson's;
of `solved` Student's over tasks); means of `tokens` per proposal and of `MEASURES`; the counts
`proposals`, `valid_tasks` and `refused` by reason."""

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
"""Lowest and highest figure of an acceptable base, by its prompt format."""

SHARES = ("valid", "unique", "copied", "solved", "greedy", "guess")
"""`valid` of the proposals; `unique` of the valid ones, by program and inputs; `copied` of the
valid ones, if the program was in the base's warm-up; `solved` and `greedy` of the attempts at valid
tasks, at temperature 1 and greedy; `guess`: valid tasks that share the most common answer."""

_ROWS = 64
"""Rows decoded at once: the logits of a large vocabulary take most of a step's memory."""


def share(successes: int, total: int) -> Estimate | None:
    """With Wilson's interval; None of nothing."""
    from scipy.stats import binomtest

    if not total:
        return None
    bounds = binomtest(successes, total).proportion_ci(method="wilson")
    return Estimate(successes / total, float(bounds.low), float(bounds.high), (total,))


def missed(figures: Mapping[TaskType, BaseFigures], targets: Targets) -> list[str]:
    """The targets that the figures miss, one line each."""
    lines = []
    for name, bounds in targets.items():
        for type, (low, high) in bounds.items():
            if type not in figures:
                continue
            if name not in figures[type]:
                lines.append(f"{type} {name}: nothing was counted")
            elif not low <= (mean := figures[type][name].mean) <= high:
                lines.append(f"{type} {name} {mean:.1%}, target {low:.0%}-{high:.0%}")
    return lines


def print_table(figures: Mapping[TaskType, BaseFigures], targets: Targets, title: str) -> None:
    """Prints figures, refused proposals and missed targets."""
    from rich.console import Console
    from rich.table import Table

    sizes = [size for size in MEASURES if size.short]
    table = Table(title=title)
    for heading in ("task", *SHARES, "tokens", *(size.short for size in sizes)):
        table.add_column(heading, justify="left" if heading == "task" else "right")
    for type, row in figures.items():
        table.add_row(
            str(type),
            *(interval_text(row[name], percent=True) if name in row else "-" for name in SHARES),
            f"{row['tokens']:.1f}",
            *(show(row.get(size.name), size.form) for size in sizes),
        )
    console = Console()
    console.print(table)
    for type, row in figures.items():
        console.print(f"{type} refused: {row['refused']}")
    for line in missed(figures, targets):
        console.print(f"[red]missed: {line}[/red]")


def accept(
    folder: str | Path,
    format: str = "short",
    n: int = 500,
    seed: int = 1,
    attempts: int = 4,
    seen_programs: Sequence[str] = (),
    types: Sequence[TaskType] = tuple(TaskType),
) -> dict[TaskType, BaseFigures]:
    """Figures by task type; the same seed gives the same ones.

    Args:
        format: of the prompts, as `base.prompt_format` of a run.
        n: proposals per task type.
        attempts: answers per valid task at temperature 1, over which `solved` is the mean.
        seen_programs: programs that count as copies, beside those of the base's warm-up.
    """
    copies = read_digests(folder) | {digest(program) for program in seen_programs}
    prompts = FORMATS.find(format).function()
    # The engine of a run with one adapter that adds nothing: its factor B is zero.
    settings = EngineSettings(
        str(folder),
        ("base",),
        LoraSpec(1, 1.0, ("all-linear",)),
        dtype="bfloat16" if prompts.chat else "float32",
        rollout=RolloutSettings(rows=_ROWS),
    )
    engine = text_engine(settings, [torch.Generator().manual_seed(0)], prompts.chat)
    seeds = count(seed + 1)
    figures: dict[TaskType, BaseFigures] = {}
    with Referee() as referee, spinner(Path(folder).name) as begin:
        context = StepContext(engine, referee, Code(), prompts)
        for place, type in enumerate(types, start=1):
            begin(f"{type}, {place} of {len(types)}")
            figures[type] = _measure(context, type, n, attempts, copies, seeds)
    return figures


def _measure(
    context: StepContext,
    type: TaskType,
    n: int,
    attempts: int,
    copies: set[str],
    seeds: Iterator[int],
) -> BaseFigures:
    format, match = context.format, Match(*Roster.make(1, 1))
    sampling = Sampling(format.max_new_tokens(type, "propose"), n=1)
    prompts = [format.propose_prompt(type)] * n
    completions = [c for (c,) in context.engine.generate(prompts, [0] * n, sampling, next(seeds))]
    rows = [Proposal(match, type, c, read_proposal(format, type, c)) for c in completions]
    verify(rows, context, TaskConfig())
    tasks = [row.task for row in rows if row.task is not None]
    refused = Counter(row.reason for row in rows if row.task is None)
    complexity = pd.DataFrame([row.measures for row in rows if row.task is not None])
    answers = Counter(map(reference_answer, tasks))
    solved = _solve_rates(rows, context, attempts, 1.0, next(seeds))
    greedy = _solve_rates(rows, context, 1, 0.0, next(seeds))
    shares = {
        "valid": share(len(tasks), n),
        "unique": share(len({(task.program, task.inputs) for task in tasks}), len(tasks)),
        "copied": share(sum(digest(t.program) in copies for t in tasks), len(tasks))
        if copies
        else None,
        "solved": interval(solved) if solved else None,
        "greedy": share(round(sum(greedy)), len(greedy)),
        "guess": share(max(answers.values(), default=0), len(tasks)),
    }
    return {
        "proposals": n,
        "valid_tasks": len(tasks),
        **{name: estimate for name, estimate in shares.items() if estimate},
        "tokens": sum(len(completion.token_ids) for completion in completions) / n,
        **complexity.mean().to_dict(),
        "refused": dict(refused.most_common()),
    }


def _solve_rates(
    rows: Sequence[Proposal], context: StepContext, attempts: int, temperature: float, seed: int
) -> list[float]:
    """The share of right answers to each valid task."""
    valid = [row for row in rows if row.task is not None]
    if not valid:
        return []
    format, type = context.format, valid[0].type
    prompts = [format.solve_prompt(row.task) for row in valid if row.task is not None]
    sampling = Sampling(format.max_new_tokens(type, "solve"), temperature, n=attempts)
    groups = context.engine.generate(prompts, [0] * len(valid), sampling, seed)
    for row, group in zip(valid, groups, strict=True):
        row.attempts = [Attempt(answer, read_answer(format, type, answer)) for answer in group]
    grade(valid, context)
    return [row.solve_rate or 0.0 for row in valid]
