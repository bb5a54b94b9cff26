"""Is there a nano base on which a curriculum over longer programs could show?

    python perf/levels.py build FOLDER --tokens 7000000
    python perf/levels.py gate FOLDER --seed 71

`build` pre-trains a base for code_o that knows every construct in programs of 0 and 1 statements
and has seen few of 2 and 3. `gate` teaches a student right answers to programs of 2 to 4
statements, and prints its greedy score by number of statements before and after. The gate is
passed if level 3 rises by 10 points in 200 steps.
"""

import argparse
import json
import time
from functools import partial
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import torch

from azr_population.bases.demonstrations import encode
from azr_population.bases.nano.corpus import Mix, O, draw_groups
from azr_population.bases.nano.eval_tasks import CORE, LEVELS, draw_task
from azr_population.bases.nano.pretrain import SAMPLE, BuildRecipe, new_model
from azr_population.bases.nano.tail import TailGrammar
from azr_population.bases.nano.tokenizer import build_tokenizer, save_tokenizer
from azr_population.bases.sft_trainer import (
    Document,
    TrainingSchedule,
    made_ahead,
    save_base,
    train,
)
from azr_population.config.load import load_config
from azr_population.domains.code.formats import NanoFormat
from azr_population.domains.code.task_types import Task
from azr_population.engines.engine import Hyperparameters
from azr_population.eval.training_check import right_answers
from azr_population.hosts.local.run_engine import open_engine
from azr_population.method.held_out_eval import solved_shares
from azr_population.method.phases import StepContext
from azr_population.method.step import SelfPlay

MIX: Mix = {
    ("propose", O): (1, (50, 40, 8, 2)),
    ("solve", O): (3, (495, 485, 15, 5)),
}
"""As `corpus.NANO_MIX`: 2% of the answered programs have more than one statement."""


def documents(tokenizer: Any, seed: int, chunk: int) -> list[Document]:
    """A chunk of the corpus; the same for the same numbers."""
    groups = draw_groups(Random(f"levels {seed} {chunk}"), 4000, MIX, strict=True)
    return [encode(group, NanoFormat(), tokenizer) for group in groups]


def build(out: Path, tokens: int, seed: int) -> None:
    """Pre-trains a base of the nano base's size into the folder `out`."""
    out.mkdir(parents=True)
    recipe = BuildRecipe()
    tokenizer, model = build_tokenizer(), new_model(recipe, seed)
    model.base_model.compile(dynamic=False)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=0.0, betas=recipe.betas, weight_decay=recipe.weight_decay, fused=True
    )
    schedule = TrainingSchedule(
        minutes=300, learning_rate=3e-3, warmup_steps=200, rows=32, length=192, tokens=tokens
    )
    ahead = made_ahead(partial(documents, tokenizer, seed), count())
    progress = train(model, ahead, optimizer, schedule)
    save_base(model, tokenizer, out, SAMPLE)
    save_tokenizer(out)
    print(f"{progress.tokens:,} tokens, {progress.cpu_seconds / 60:.1f} core-minutes")


def programs(seed: int, levels: tuple[int, ...], n: int, held_out: bool) -> list[list[Task]]:
    """`n` tasks of each level, drawn from the grammar's core."""
    grammar = TailGrammar(Random(f"levels {seed} {held_out}"))
    return [
        # The place of a task among 5 is its level.
        [draw_task(grammar, O, CORE, level, len(LEVELS), held_out) for _ in range(n)]
        for level in levels
    ]


def gate(folder: Path, seed: int, steps: int, n: int) -> None:
    """Prints the greedy score at each level before and after, on `n` held-out tasks of each."""
    config = load_config(
        ["population=1t1s", "base=nano", f"base.path={folder}", "task=code_o", f"seed={seed}"]
    )
    torch.set_num_threads(config.engine.threads)
    began = time.process_time()
    held_out = programs(8888, LEVELS, n, held_out=True)
    with StepContext.open(config, open_engine(config)) as context:
        (student,) = SelfPlay(config, context, []).population.roster.students
        budget = config.population
        for step in range(steps + 1):
            if step in (0, steps):
                scores = [
                    sum(solved_shares(context, tasks, student.slot, 0.0, 1, 1)) / n
                    for tasks in held_out
                ]
                print(json.dumps({"seed": seed, "step": step, "levels": scores}))
            if step == steps:
                break
            drawn = programs(seed * 1000 + step, (2, 3, 4), budget.batch_size // 3, held_out=False)
            tasks = [task for of_level in drawn for task in of_level]
            rows = right_answers(context.engine, context.format, tasks, student.slot)
            hyperparameters = {student.slot: Hyperparameters(budget.student_lr)}
            context.engine.update({student.slot: rows}, hyperparameters)
    print(f"{(time.process_time() - began) / 60:.1f} core-minutes")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("build")
    one.add_argument("folder", type=Path)
    one.add_argument("--tokens", type=int, default=7_000_000)
    one.add_argument("--seed", type=int, default=1)
    two = commands.add_parser("gate")
    two.add_argument("folder", type=Path)
    two.add_argument("--seed", type=int, default=71)
    two.add_argument("--steps", type=int, default=200)
    two.add_argument("--tasks", type=int, default=400, help="of each level")
    args = parser.parse_args()
    if args.command == "build":
        torch.set_num_threads(1)
        build(args.folder, args.tokens, args.seed)
    else:
        gate(args.folder, args.seed, args.steps, args.tasks)
