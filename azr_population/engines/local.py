"""The engine of one process: a learner, and a rollout that receives what the learner changes.

If the two have separate weights, the order of a step is: the rollout sleeps, the learner scores and
updates, the rollout wakes, changed members are pushed, the canary checks them, and only then is the
next token sampled. The learner never computes while the rollout is awake.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from torch import Tensor

from azr_population.engines.canary import Canary
from azr_population.engines.engine import (
    Finished,
    Hyperparameters,
    Ids,
    Learner,
    Rollout,
    Sampling,
    StreamingSampler,
    TrainingSample,
    Updates,
)
from azr_population.weights.adapter import Adapter


class LocalEngine(StreamingSampler):
    """An `Engine` of these two.

    With a canary every pushed member is checked before the next token is sampled.
    """

    def __init__(self, rollout: Rollout, learner: Learner, canary: Canary | None = None) -> None:
        self.rollout = rollout
        self.learner = learner
        self._canary = canary
        self._unchecked: set[int] = set()

    def stream(
        self,
        prompts: Sequence[Ids],
        slots: Sequence[int],
        sampling: Sampling,
        seed: int,
        rows: Sequence[int] | None = None,
    ) -> Iterator[Sequence[Finished]]:
        """See `Rollout`."""
        if self._canary and self._unchecked:
            self._canary.check(self.rollout, self.learner, sorted(self._unchecked))
            self._unchecked.clear()
        if not prompts:
            return
        if stream := getattr(self.rollout, "stream", None):
            yield from stream(prompts, slots, sampling, seed, rows)
        else:
            yield list(enumerate(self.rollout.generate(prompts, slots, sampling, seed, rows)))

    def update(
        self,
        samples: Mapping[int, Sequence[TrainingSample]],
        hyperparameters: Mapping[int, Hyperparameters],
    ) -> Updates:
        with self.rollout.asleep():
            updates = self.learner.update(samples, hyperparameters)
        self.push([slot for slot, figures in updates.items() if figures["updates"]])
        return updates

    def log_probs(
        self, prompts: Sequence[Ids], responses: Sequence[Ids], slots: Sequence[int]
    ) -> tuple[list[Tensor], list[Tensor]]:
        with self.rollout.asleep():
            return self.learner.log_probs(prompts, responses, slots)

    def read(self, slot: int) -> Adapter:
        return self.learner.read(slot)

    def write(self, slot: int, adapter: Adapter) -> None:
        self.learner.write(slot, adapter)
        self.push([slot])

    def state_dict(self) -> dict[str, Any]:
        return self.learner.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.learner.load_state_dict(state)
        self.push(list(state["adapters"]))

    def push(self, slots: Sequence[int]) -> None:
        """Pushes these members from the learner to the rollout."""
        for slot in slots:
            self.rollout.push(slot, self.learner.read(slot))
        self._unchecked.update(slots)
