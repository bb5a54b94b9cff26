"""The population's state during a step of AZR's loop.

AZR computes one batch per problem type and role. `assign` gives each row its member and opponent,
the judge (`judging.py`) fills in proposals, replay attempts and rewards, `write_advantages`
overwrites AZR's, and `end` does what `method/step.py` does after the update.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from azr_population.engines.engine import Generated
from azr_population.method.callbacks import Callback, PhaseClock
from azr_population.method.evolution import MakeChild
from azr_population.method.population import Population
from azr_population.method.proposals import Attempt, PlayedStep, Proposal
from azr_population.method.record import StepRecords
from azr_population.method.step import finish_step
from azr_population.method.training import ScoredCompletion, set_advantages

if TYPE_CHECKING:
    from verl import DataProto

NOBODY = -1
"""The opponent of rows that are not proposals."""


class AzrStepState:
    """The records of the current step so far."""

    def __init__(self, population: Population, callbacks: Sequence[Callback] = ()) -> None:
        self.population = population
        self.callbacks = list(callbacks)
        self.proposals: list[Proposal] = []
        self.replayed: list[Attempt] = []
        self._learning: Counter[int] = Counter()
        self._opponents: dict[str, list[int]] = {}
        self._clock = PhaseClock()

    def begin(self, number: int) -> None:
        """Draws the matches of a new step."""
        self.population.begin_step(number)
        self.proposals, self.replayed = [], []
        self._learning.clear()
        self._opponents.clear()
        self._clock = PhaseClock()

    def assign(self, batch: DataProto, problem_type: str) -> list[int]:
        """Sets the `opponent` of every row; returns the slots of those who write them. A batch that
        is assigned again has the opponents it had."""
        slots = [int(slot) for slot in batch.non_tensor_batch["member"]]
        if problem_type not in self._opponents:
            opponents = [NOBODY] * len(slots)
            if problem_type.startswith("gen"):
                opponents = [match.student.slot for match in self.population.assign_matches(slots)]
            self._opponents[problem_type] = opponents
        batch.non_tensor_batch["opponent"] = np.array(self._opponents[problem_type], dtype=object)
        return slots

    def write_advantages(self, batch: DataProto, problem_type: str) -> None:
        """Overwrites `advantages` and `returns` [rows, R] by the population's.

        AZR has one baseline for each problem type and role (TRR++); here each member has its own.
        Rows that teach nothing get 0.
        """
        phase = problem_type.partition("_")[0]
        mask = batch.batch["response_mask"]
        rewards = batch.batch["token_level_rewards"].sum(dim=1)
        # The judge has seen this batch last.
        judged: Sequence[Proposal | Attempt] = self.proposals if phase == "gen" else self.replayed
        columns = zip(judged[-len(rewards) :], rewards.tolist(), strict=True)
        rows = [ScoredCompletion(owner, reward) for owner, reward in columns]
        values = set_advantages(rows, by_token=True)
        worth = torch.tensor([0.0 if value is None else value for value in values])
        batch.batch["advantages"] = worth.unsqueeze(1) * mask
        batch.batch["returns"] = rewards.unsqueeze(1) * mask
        self._learning.update(
            row.sample.completion.slot
            for row, value in zip(rows, values, strict=True)
            if value is not None
        )

    def end(
        self,
        updates: Mapping[int, Mapping[str, float]],
        generated: Mapping[int, Generated],
        make_child: MakeChild,
        timing: Mapping[str, float],
    ) -> StepRecords:
        """The end of the step; `generated` is what its routed calls generated, `timing` AZR's, in
        seconds."""
        learned = {
            slot: {**figures, "rows": self._learning[slot]} for slot, figures in updates.items()
        }
        self._clock.phases = {**timing, **self._clock.phases}
        played = PlayedStep(self.proposals, learned, generated, self.replayed)
        return finish_step(self.population, self.callbacks, self._clock, played, make_child)
