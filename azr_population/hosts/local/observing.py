"""What is measured in a local run: its callbacks, by its configuration."""

from __future__ import annotations

from azr_population.hosts.local.run_engine import slot_names
from azr_population.method.callbacks import (
    Callback,
    EvalCallback,
    HeldOutCounts,
    MeasureSkill,
    Warn,
    WeightSimilarity,
)
from azr_population.method.completion_log import CompletionLog
from azr_population.method.evolution.replacement import MEASURED
from azr_population.method.held_out_eval import HeldOutEval
from azr_population.method.past import PastStudents
from azr_population.method.step import SelfPlay
from azr_population.runs import RunDirectory


def callbacks(
    play: SelfPlay,
    held_out: HeldOutEval | None,
    validation: HeldOutEval | None,
    own: HeldOutEval | None = None,
) -> list[Callback]:
    """All that this run wants; `validation` is the eval that fitness goes by, `own` that of
    the untrained teacher's tasks, if it has them."""
    config, tools = play.config, play.tools
    found: list[Callback] = [CompletionLog(config.run.log_completions, tools.engine.tokenizer)]
    if config.matchmaking.past_opponent_fraction:
        snapshots, last = RunDirectory(config.run.dir).snapshots, len(slot_names(config)) - 1
        found.append(
            PastStudents(snapshots, last, config.matchmaking.past_opponent_fraction, tools.engine)
        )
    if config.evolution.fitness in MEASURED:
        found.append(MeasureSkill(tools, validation, config.seed))
    if held_out:
        found.append(EvalCallback(tools, held_out, config.eval, config.run.steps, config.seed, own))
        found.append(WeightSimilarity(tools))
        found.append(HeldOutCounts())
    found.append(
        Warn(RunDirectory(config.run.dir))
    )  # the last, so that it sees the others' records
    return found
