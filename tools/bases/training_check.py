"""The training check of the nano base: can self-play teach it something?

Two arms, each on several seeds, start from the bare base and are scored greedily by stratum:

`supervised`: a student learns right answers to programs of the grammar, most of them from the tail
and none from the eval. This is the upper bound for a run's budget.
`rewards`: 1T+1S with the paper's reward and without replay, as when the targets were set.

If the first fails, the base has nothing to learn in a run's budget, and no comparison of arms can
show a difference. If only the second fails, self-play does not find what there is to learn.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from random import Random

import pandas as pd
import torch

from azr_population.analysis.statistics import interval, interval_text
from azr_population.config.load import load_config
from azr_population.domains.code.generator.eval_tasks import CORE, draw_task
from azr_population.domains.code.generator.tail import BANDS, TailGrammar
from azr_population.domains.code.task_types import TaskType
from azr_population.engines.engine import Hyperparameters
from azr_population.eval.right_answers import right_answers
from azr_population.hosts.local.plan import resolve
from azr_population.hosts.local.run_engine import open_engine
from azr_population.method.held_out_eval import HeldOutEval, held_out_eval
from azr_population.method.phases import StepContext
from azr_population.method.step import SelfPlay

WHOLE, TAIL = "whole", "tail"
TARGETS = {
    "supervised": {WHOLE: 0.03, TAIL: 0.15},
    "rewards": {WHOLE: 0.03, TAIL: 0.06},
}
"""Smallest mean gains, as fractions of the tasks."""

EVAL_SEED = 9292
"""The seed of an eval on which neither the base nor a setting was chosen."""
CORE_SHARE = 0.2
"""Fraction of right answers from the core, so that it is not forgotten."""


def training_check(
    path: str | Path,
    steps: int = 100,
    seeds: Sequence[int] = (2, 3, 4),
    tasks: int = 1200,
    jobs: int = 1,
) -> pd.DataFrame:
    """Runs both arms on code_o on the base at `path`, `jobs` runs at a time; `tasks` is the size of
    the eval. A row for each `arm`, `seed` and `part` of the tasks (`WHOLE`, `TAIL`, each stratum):
    the greedy scores `before` and `after` training, in [0, 1]."""
    jobs_of = [(arm, path, seed, steps, tasks) for arm in TARGETS for seed in seeds]
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        return pd.concat(pool.map(_before_and_after, *zip(*jobs_of, strict=True)))


def _before_and_after(
    arm: str, path: str | Path, seed: int, steps: int, tasks: int
) -> pd.DataFrame:
    config = load_config(
        [
            "population=1t1s",
            "base=nano",
            f"base.path={path}",
            "task=code_o",
            "population.teacher_reward=adversarial",
            "population.replay_fraction=0",
            f"eval.tasks_per_type={tasks}",
            f"eval.seed={EVAL_SEED}",
            f"run.steps={steps}",
            f"seed={seed}",
        ]
    )
    plan = resolve(config)
    held_out = held_out_eval(plan.domain, plan.config)
    torch.set_num_threads(plan.config.engine.threads)
    with StepContext.open(plan, open_engine(plan)) as context:
        game = SelfPlay(plan.config, context, held_out.tasks)
        before = _score(game, held_out)
        if arm == "supervised":
            _learn_right_answers(game, steps)
        else:
            for _ in range(steps):
                game.play_step()
        scores = pd.DataFrame({"before": before, "after": _score(game, held_out)})
        return scores.rename_axis("part").reset_index().assign(arm=arm, seed=seed)


def _learn_right_answers(game: SelfPlay, steps: int) -> None:
    rng = Random(f"gate {game.config.seed}")
    grammar = TailGrammar(rng)
    budget = game.config.population
    (student,) = game.population.roster.students
    shares = (CORE_SHARE, *[(1 - CORE_SHARE) / 3] * 3)
    for _ in range(steps):
        strata = rng.choices((CORE, *BANDS), shares, k=budget.batch_size)
        tasks = [
            draw_task(grammar, TaskType.CODE_O, stratum, rng.randrange(60), 60)
            for stratum in strata
        ]
        rows = right_answers(game.context.engine, game.context.format, tasks, student.slot)
        hyperparameters = {student.slot: Hyperparameters(budget.student_lr)}
        game.context.engine.update({student.slot: rows}, hyperparameters)


def _score(game: SelfPlay, held_out: HeldOutEval) -> dict[str, float]:
    (student,) = game.population.roster.students
    scores = held_out.greedy(game.context, student)
    frame = pd.DataFrame({"stratum": held_out.strata, "score": scores})
    tail = frame.loc[frame["stratum"].isin(BANDS), "score"].mean()
    by_stratum = frame.groupby("stratum", sort=False)["score"].mean().to_dict()
    return {WHOLE: frame["score"].mean(), TAIL: tail, **by_stratum}


def print_training_check(scores: pd.DataFrame) -> bool:
    """Prints the table; returns whether all targets were reached."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title="greedy eval, points of 100: base, and gains over seeds (95% intervals)")
    table.add_column("part")
    table.add_column("base", justify="right")
    for arm, rows in scores.groupby("arm", sort=False):
        table.add_column(f"{arm} (n={rows['seed'].nunique()})", justify="right")
    reached = True
    for part, rows in scores.groupby("part", sort=False):
        cells = []
        for arm, of_arm in rows.groupby("arm", sort=False):
            gain, least = interval(of_arm["after"] - of_arm["before"]), TARGETS[arm].get(part)
            text = interval_text(gain, percent=True, signed=True)
            if least is not None:
                text += f", target {100 * least:+.0f}"
                if gain.mean < least:
                    reached, text = False, f"[red]{text}[/red]"
            cells.append(text)
        table.add_row(part, f"{100 * rows['before'].iloc[0]:.1f}", *cells)
    Console().print(table)
    return reached
