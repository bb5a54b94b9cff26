"""The step: each line of `play_step` is one verb of the method, in the order in which it happens.

Each verb is in the module it is imported from; the host's callbacks (`callbacks.py`) measure in
between.

Inside AZR the loop is AZR's: `hosts/azr/` calls the same functions in the same order
(docs/azr_inside.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from azr_population.config.schema import Config
from azr_population.domains.task import Task
from azr_population.method.callbacks import Callback, PhaseClock, call
from azr_population.method.evolution import make_child
from azr_population.method.phases import (
    StepContext,
    draw_replay,
    grade,
    propose,
    solve,
    verify,
)
from azr_population.method.population import Population
from azr_population.method.proposals import by_match
from azr_population.method.record import StepRecords, check_budget
from azr_population.method.training import advantage, update


class SelfPlay:
    """A population with all that a step needs. Programs of `held_out` tasks are refused."""

    def __init__(self, config: Config, context: StepContext, held_out: Sequence[Task] = ()) -> None:
        self.config = config
        self.context = context
        self.held_out = context.domain.held_out(task.program for task in held_out)
        self.callbacks: list[Callback] = []
        self.population = Population(
            config.population,
            config.matchmaking,
            config.evolution,
            config.seed,
            config.task.buffer_size,
            context.domain,
        )

    @property
    def step(self) -> int:
        """The number of the last step done."""
        return self.population.step

    def play_step(self) -> StepRecords:
        """Plays the next step."""
        context, population, clock = self.context, self.population, PhaseClock()
        context.engine.take_generated()  # evals are not in the budget
        with clock("match"):
            population.begin_step(population.step + 1)
        with clock("propose"):
            rows = propose(context, population, self.config.task, self.config.engine)
        with clock("verify"):
            verify(rows, context, self.config.task, self.held_out)
        with clock("solve"):
            replays = draw_replay(population)
            solve([*rows, *replays], context, population, self.config.engine)
        with clock("grade"):
            grade([*rows, *replays], context)
        with clock("reward"):
            population.reward(rows, replays)
        with clock("advantage"):
            samples = advantage(rows, population, replays)
        with clock("update"):
            updates = update(context.engine, samples, population.hyperparameters())
        generated = context.engine.take_generated()
        replayed = (completion for replay in replays for completion in replay.completions)
        check_budget(generated, [*(c for row in rows for c in row.completions), *replayed])
        rows = by_match(rows)
        practice = [attempt for replay in replays for attempt in replay.attempts]
        call(self.callbacks, "updated", clock, population, rows, practice)
        with clock("rate"):
            matches = population.rate(rows)
        with clock("evolve"):
            births = population.evolve(rows, partial(make_child, context.engine))
        records = population.record(rows, updates, generated, matches, births, practice)
        call(self.callbacks, "recorded", clock, population, rows, records)
        records.metrics |= clock.metrics()
        return records
