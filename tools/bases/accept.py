"""What a base proposes and solves, judged by execution as in a run; exit code 1 if it misses its
targets.

    python tools/bases/accept.py [FOLDER] [--tasks 500] [--samples 4] [--out FILE.json]

The base (the one that ships where none is named) proposes at temperature 1 and solves its own valid
proposals; figures are per task type. A nano base is then trained for a few runs: see
`training_check.py`.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from rich.console import Console
from rich.table import Table
from scipy.stats import binomtest
from training_check import print_training_check, training_check

from azr_population.analysis.statistics import Estimate, interval, interval_text
from azr_population.bases.nano import nano_base_path
from azr_population.config.schema import TaskConfig
from azr_population.console.heartbeat import say
from azr_population.domains.code.complexity import MEASURES
from azr_population.domains.code.domain import Code
from azr_population.domains.code.formats import FORMATS, base_format
from azr_population.domains.code.task_types import TaskType, reference_answer
from azr_population.engines.assembly import EngineSettings, text_engine
from azr_population.engines.base_folder import base_folder
from azr_population.engines.base_model import load_tokenizer
from azr_population.errors import UserError
from azr_population.method.held_out_eval import solved_shares
from azr_population.method.matchmaking import Match
from azr_population.method.members import Roster
from azr_population.method.phases import StepContext, propose_and_judge
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
        "valid": dict.fromkeys(TaskType, (0.80, 1.0)),
        "unique": dict.fromkeys(TaskType, (0.90, 1.0)),
        # The long tail is there to be solved seldom.
        "solved": {O: (0.30, 0.50), I: (0.20, 1.0), F: (0.10, 1.0)},
        "guess": {O: (0.0, 0.15)},
    },
    "short": {"valid": dict.fromkeys((O, I), (0.50, 1.0)), "greedy": {O: (0.15, 1.0)}},
}
"""Lowest and highest figure of an acceptable base, by its prompt format."""

SHARES = ("valid", "unique", "solved", "greedy", "guess")
"""`valid` of the proposals; `unique` of the valid ones, by program and inputs; `solved` and
`greedy` of the attempts at valid tasks, at temperature 1 and greedy; `guess`: valid tasks that
share the most common answer."""


def validate(
    path: str | None,
    format: str | None = None,
    tasks: int = 500,
    samples: int = 4,
    seed: int = 1,
    out: Path | None = None,
    skip_training_check: bool = False,
    check_seeds: int = 3,
    check_steps: int = 100,
    jobs: int = 1,
) -> int:
    """Measures the base in `path` (the nano base that ships where None is given), and trains a few
    runs on a nano base. Returns the exit code: 0, or 1 where it misses its targets. Raises
    UserError: no base is there, or `out` cannot be written."""
    folder = base_folder(path or nano_base_path(), key="DIR")
    try:
        format = format or base_format(folder, load_tokenizer(folder))
    except (OSError, ValueError, KeyError) as error:
        raise UserError(
            f"{folder} does not load as a causal LM: its tokenizer (tokenizer.json) cannot be read"
        ) from error
    if out and not out.parent.is_dir():
        raise UserError(
            f"--out {out}: its folder is not there; make it, or name another", key="--out"
        )
    figures = accept(folder, format, tasks, seed, samples)
    targets = TARGETS.get(format, {})
    print_table(figures, targets, f"{folder.name}, {tasks} proposals per type, 95% intervals")
    if out:
        estimates = lambda e: {"mean": e.mean, "low": e.low, "high": e.high}  # noqa: E731
        out.write_text(json.dumps(figures, indent=1, default=estimates) + "\n", encoding="utf-8")
    code = 1 if missed(figures, targets) else 0
    if format != "nano" or skip_training_check:
        return code
    # The settings were chosen on other seeds, which the card names.
    seeds = range(seed + 1, seed + 1 + check_seeds)
    return code | (not print_training_check(training_check(folder, check_steps, seeds, jobs=jobs)))


def accept(
    folder: Path,
    format: str = "short",
    n: int = 500,
    seed: int = 1,
    attempts: int = 4,
    types: Sequence[TaskType] = tuple(TaskType),
) -> dict[TaskType, BaseFigures]:
    """Figures by task type; the same seed gives the same ones.

    Args:
        format: of the prompts, as `base.prompt_format` of a run.
        n: proposals per task type.
        attempts: answers per valid task at temperature 1, over which `solved` is the mean.
    """
    prompts = FORMATS.find(format)()
    # The engine of a run with one adapter that adds nothing: its factor B is zero.
    settings = EngineSettings(
        str(folder),
        ("base",),
        LoraSpec(1, 1.0, ("all-linear",)),
        dtype="bfloat16" if prompts.chat else "float32",
        generate_rows=64,  # the logits take most of a step's memory
    )
    engine = text_engine(settings, [torch.Generator().manual_seed(0)], prompts.chat)
    seeds = count(seed + 1)
    figures: dict[TaskType, BaseFigures] = {}
    with Referee() as referee:
        context = StepContext(engine, referee, Code(), prompts)
        for place, type in enumerate(types, start=1):
            say(f"{folder.name}: {type}, {place} of {len(types)}")
            figures[type] = _measure(context, type, n, attempts, seeds)
    return figures


def _measure(
    context: StepContext,
    type: TaskType,
    n: int,
    attempts: int,
    seeds: Iterator[int],
) -> BaseFigures:
    match = Match(*Roster.make(1, 1))  # the teacher is in the only slot
    rows = propose_and_judge(context, [(match, type)] * n, TaskConfig(), next(seeds))
    valid = [row for row in rows if row.task is not None]
    tasks = [row.task for row in valid if row.task is not None]
    solved, greedy = (
        [
            share
            for share in solved_shares(context, tasks, 0, *how, next(seeds))
            if share is not None
        ]
        for how in ((1.0, attempts), (0.0, 1))
    )
    answers = Counter(map(reference_answer, tasks))
    shares = {
        "valid": share(len(tasks), n),
        "unique": share(len({(task.program, task.inputs) for task in tasks}), len(tasks)),
        "solved": interval(solved) if tasks else None,
        "greedy": share(round(sum(greedy)), len(greedy)),
        "guess": share(max(answers.values(), default=0), len(tasks)),
    }
    return {
        "proposals": n,
        "valid_tasks": len(tasks),
        **{name: estimate for name, estimate in shares.items() if estimate},
        "tokens": sum(len(row.completion.token_ids) for row in rows) / n,
        **pd.DataFrame([row.measures for row in valid]).mean().to_dict(),
        "refused": dict(Counter(row.reason for row in rows if row.task is None).most_common()),
    }


def share(successes: int, total: int) -> Estimate | None:
    """With Wilson's interval; None of nothing."""
    if not total:
        return None
    bounds = binomtest(successes, total).proportion_ci(method="wilson")
    return Estimate(successes / total, float(bounds.low), float(bounds.high), (total,))


def missed(figures: Mapping[TaskType, BaseFigures], targets: Targets) -> list[str]:
    """The targets that the figures miss, one line each."""
    lines = []
    for name, bounds in targets.items():
        for type in filter(figures.__contains__, bounds):
            (low, high), figure = bounds[type], figures[type].get(name)
            if figure is None or not low <= figure.mean <= high:
                value = f"{figure.mean:.1%}" if figure else "not counted"
                lines.append(f"{type} {name} {value}, target {low:.0%}-{high:.0%}")
    return lines


def print_table(figures: Mapping[TaskType, BaseFigures], targets: Targets, title: str) -> None:
    """Prints figures, refused proposals and missed targets."""
    sizes = [size for size in MEASURES if size.short]
    table = Table("task", *SHARES, "tokens", *(size.short for size in sizes), title=title)
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


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", nargs="?", help="default: the nano base that ships")
    parser.add_argument("--prompt-format", dest="format", help="default: the base's own")
    parser.add_argument("--tasks", type=int, default=500, help="proposals per task type")
    parser.add_argument("--samples", type=int, default=4, help="attempts at each valid task")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="also write the figures to this file")
    parser.add_argument("--skip-training-check", action="store_true")
    parser.add_argument("--check-seeds", type=int, default=3, help="from --seed + 1 on")
    parser.add_argument("--check-steps", type=int, default=100, help="of each of its runs")
    parser.add_argument("--jobs", type=int, default=1, help="its runs at a time")
    return validate(**vars(parser.parse_args()))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except UserError as error:
        sys.exit(str(error))
