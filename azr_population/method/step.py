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
from azr_population.method.evolution import MakeChild, make_child
from azr_population.method.phases import (
    StepContext,
    draw_replay,
    grade,
    propose,
    score_gold,
    solve,
    verify,
)
from azr_population.method.population import Population
from azr_population.method.proposals import PlayedStep, by_match
from azr_population.method.record import StepRecords, check_budget
from azr_population.method.rewards import takes_gold
from azr_population.method.training import advantage, update


class SelfPlay:
    """A population with all that a step needs. Programs of `held_out` tasks are refused."""

    def __init__(self, config: Config, context: StepContext, held_out: Sequence[Task] = ()) -> None:
        self.config = config
        self.context = context
        self.held_out = context.domain.copies_of(task.program for task in held_out)
        self.callbacks: list[Callback] = []
        self.population = Population(config, context.domain)

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
            proposals = propose(context, population, self.config.task, self.config.engine)
        with clock("verify"):
            verify(proposals, context, self.config.task, self.held_out)
        with clock("solve"):
            replays = draw_replay(population)
            engine, seed = self.config.engine, population.streams.integer("solve", population.step)
            solve(
                [*proposals, *replays],
                context,
                seed,
                population.config.samples_per_task,
                max_tokens=engine.max_answer_tokens,
            )
        with clock("grade"):
            grade([*proposals, *replays], context)
        with clock("reward"):
            if takes_gold(population.config):
                score_gold(proposals, context)
            population.reward(proposals, replays)
        with clock("advantage"):
            samples = advantage(proposals, population, replays)
        with clock("update"):
            updates = update(context.engine, samples, population.hyperparameters())
        played = PlayedStep(
            proposals,
            updates,
            context.engine.take_generated(),
            [attempt for replay in replays for attempt in replay.attempts],
            [completion for replay in replays for completion in replay.discarded],
        )
        make = partial(make_child, context.engine)
        return finish_step(population, self.callbacks, clock, played, make)


def finish_step(
    population: Population,
    callbacks: Sequence[Callback],
    clock: PhaseClock,
    played: PlayedStep,
    make_child: MakeChild,
) -> StepRecords:
    """Ends a step after the update, in both hosts: ratings, births, records. `make_child` puts a
    child into its slot."""
    check_budget(played.generated, played.completions)
    played.proposals = by_match(played.proposals)
    call(callbacks, "updated", clock, population, played.proposals, played.replayed)
    with clock("rate"):
        matches = population.rate(played.proposals)
    with clock("evolve"):
        births = population.evolve(make_child)
    records = population.record(played, matches, births)
    call(callbacks, "recorded", clock, population, played.proposals, records)
    records.metrics |= clock.metrics()
    return records
