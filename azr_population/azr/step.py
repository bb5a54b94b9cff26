"""The step that AZR's loop is playing, as its population sees it.

AZR computes one batch per problem type and role. `assign` says whom its rows belong to, the judge
(`judging.py`) fills in rows and practice, `credit` writes the advantages, and `finish` ends the
step when the members have been updated.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from azr_population.azr.tokens import response_rows
from azr_population.engines.engine import Completion
from azr_population.population.population import Population, StepRecords
from azr_population.population.rows import Practice, Row
from azr_population.population.training import TrainingRow, advantages
from azr_population.population.turnover import MakeChild
from azr_population.tasks.task import TaskType

if TYPE_CHECKING:
    from verl import DataProto

PHASES = {"gen": "propose", "pred": "solve"}
"""What AZR's problem types (`gen_code_o`) begin with."""
NOBODY = -1
"""The opponent of rows that are no proposals."""


class Step:
    """What has come of the step so far."""

    def __init__(self, population: Population) -> None:
        self.population = population
        self.rows: list[Row] = []
        self.practice: list[Practice] = []
        self._learning: Counter[int] = Counter()
        self._started = 0.0

    def begin(self, number: int) -> None:
        """Draws the matches of a new step."""
        self.population.begin_step(number)
        self.rows, self.practice = [], []
        self._learning.clear()
        self._started = time.perf_counter()

    def assign(self, batch: DataProto, problem_type: str) -> list[int]:
        """Sets the `opponent` of every row; returns the slots of those who write them."""
        slots = [int(slot) for slot in batch.non_tensor_batch["member"]]
        opponents = [NOBODY] * len(slots)
        if problem_type.startswith("gen"):
            opponents = [match.student.slot for match in self.population.deal(slots)]
        batch.non_tensor_batch["opponent"] = np.array(opponents, dtype=object)
        return slots

    def credit(self, batch: DataProto, problem_type: str) -> None:
        """Overwrites `advantages` and `returns` [rows, R] by the population's.

        AZR has one baseline for each problem type and role (TRR++); here each member has its own.
        Rows that teach nothing get 0.
        """
        phase, _, kind = problem_type.partition("_")
        mask = batch.batch["response_mask"]
        rewards = batch.batch["token_level_rewards"].sum(dim=1)
        rows = [
            TrainingRow(completion.slot, PHASES[phase], TaskType(kind), completion, reward)
            for completion, reward in zip(completions(batch), rewards.tolist(), strict=True)
        ]
        values = advantages(rows, by_token=True)
        told = torch.tensor([0.0 if value is None else value for value in values])
        batch.batch["advantages"] = told.unsqueeze(1) * mask
        batch.batch["returns"] = rewards.unsqueeze(1) * mask
        self._learning.update(
            row.slot for row, value in zip(rows, values, strict=True) if value is not None
        )

    def finish(
        self,
        updates: Mapping[int, Mapping[str, float]],
        make_child: MakeChild,
        timing: Mapping[str, float],
    ) -> StepRecords:
        """Ratings, births and records; `timing` is AZR's, in seconds."""
        updates = {
            slot: {**figures, "rows": self._learning[slot]} for slot, figures in updates.items()
        }
        records = self.population.finish_step(self.rows, updates, make_child, self.practice)
        records.metrics["seconds"] = time.perf_counter() - self._started
        timed = {name.replace("/", " "): seconds for name, seconds in timing.items()}
        records.metrics["phases"] = {**timed, **records.metrics["phases"]}
        records.metrics["exam"] = None
        return records


def completions(batch: DataProto, tokenizer: Any = None) -> list[Completion]:
    """The rows' responses, as far as records and advantages need them; text with a `tokenizer`."""
    written = response_rows(batch.batch["responses"], batch.batch["attention_mask"])
    return [
        Completion(
            int(slot),
            (),
            tuple(ids),
            (),
            True,
            tokenizer.decode(ids, skip_special_tokens=True) if tokenizer else "",
        )
        for slot, ids in zip(batch.non_tensor_batch["member"], written, strict=True)
    ]
