"""An engine over a group of processes: rows are dealt out, members are the same on every rank."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import ray
from torch import Tensor

from azr_population.engines.engine import (
    Completion,
    Finished,
    Hyperparameters,
    Ids,
    Sampling,
    TrainingSample,
    Updates,
    in_order,
)
from azr_population.engines.micro_batches import length, partition_rows, pieces
from azr_population.engines.torch_learner import piece_tokens
from azr_population.engines.workers.placement import PlacedGroup, watched
from azr_population.weights.adapter import Adapter


class RayEngine:
    """An `Engine` whose rows are computed by the ranks of `group`.

    What a row draws depends on its number and not on its rank, and gradients are summed, so that
    the number of ranks changes nothing but the rounding. `way_on` is what the user can do after a
    worker's death; `together` ranks sample the same rows (tensor parallelism).
    """

    def __init__(
        self, group: PlacedGroup, micro_batch_tokens: int, way_on: str, together: int = 1
    ) -> None:
        self._together = together
        self.group = group
        self._micro_batch_tokens = micro_batch_tokens
        self.way_on = way_on
        self._share: bool | None = None
        """Whether workers' updates share prompts; asked before the first."""

    def generate(
        self,
        prompts: Sequence[Ids],
        slots: Sequence[int],
        sampling: Sampling,
        seed: int,
        rows: Sequence[int] | None = None,
        on_finished: Callable[[Sequence[Finished]], None] | None = None,
    ) -> list[list[Completion]]:
        """See `Sampler`; `on_finished` gets rows as they end."""
        if not prompts:
            return []
        numbers = list(rows) if rows is not None else list(range(len(prompts)))
        limits = sampling.limits(len(prompts))
        samplers = self._ranks // self._together
        hands = self._dealt([len(prompt) for prompt in prompts], slots, prompts, samplers)
        parts = [
            {
                "prompts": [prompts[row] for row in hand],
                "slots": [slots[row] for row in hand],
                "sampling": replace(
                    sampling,
                    max_new_tokens=tuple(limits[row] for row in hand),
                    temperature=tuple(sampling.temperature[row] for row in hand)
                    if isinstance(sampling.temperature, tuple)
                    else sampling.temperature,
                ),
                "seed": seed,
                "rows": [numbers[row] for row in hand],
            }
            for hand in hands
            for _ in range(self._together)
        ]

        def finished() -> Iterator[list[Finished]]:
            for rank, written in self.group.stream(parts):
                if rank % self._together == 0:
                    hand = hands[rank // self._together]
                    placed = [(hand[row], group) for row, group in written]
                    if on_finished:
                        on_finished(placed)
                    yield placed

        def wait() -> list[list[Completion]]:
            return in_order(finished(), len(prompts))

        return watched(self.group.name, self.group.workers, wait, self.way_on)

    def update(
        self,
        samples: Mapping[int, Sequence[TrainingSample]],
        hyperparameters: Mapping[int, Hyperparameters],
    ) -> Updates:
        """See `Learner`; each member's rows are dealt out in the pieces in which they go through
        the model, so that the number of ranks changes no piece."""
        hands: list[dict[int, list[TrainingSample]]] = [{} for _ in range(self._ranks)]
        if self._share is None:
            self._share = bool(self.call("shares_prompts")[0])
        for slot, rows in samples.items():
            limit = piece_tokens(sum(map(length, rows)), self._micro_batch_tokens)
            for hand in hands:
                hand[slot] = []
            for number, piece in enumerate(pieces(rows, limit, self._share)):
                dealt = [sample for unit in piece for sample in unit.samples]
                hands[number % self._ranks][slot] += dealt
        parts = [{"samples": hand, "hyperparameters": dict(hyperparameters)} for hand in hands]
        updates: Updates = self.call("update_rows", parts)[0]
        return updates

    def log_probs(
        self, prompts: Sequence[Ids], responses: Sequence[Ids], slots: Sequence[int]
    ) -> tuple[list[Tensor], list[Tensor]]:
        lengths = [len(row[0]) + len(row[1]) for row in zip(prompts, responses, strict=True)]
        hands = self._dealt(lengths, slots, prompts, self._ranks)
        parts = [
            {
                "prompts": [prompts[row] for row in hand],
                "responses": [responses[row] for row in hand],
                "slots": [slots[row] for row in hand],
            }
            for hand in hands
        ]
        both: tuple[dict[int, Tensor], dict[int, Tensor]] = ({}, {})
        for hand, answer in zip(hands, self.call("log_prob_rows", parts), strict=True):
            for into, values in zip(both, answer, strict=True):
                into.update(zip(hand, values, strict=True))
        chosen, entropies = ([into[row] for row in range(len(prompts))] for into in both)
        return chosen, entropies

    def read(self, slot: int) -> Adapter:
        """See `Learner`; on the CPU."""
        return self.call("read_member", slot)[0]

    def write(self, slot: int, adapter: Adapter) -> None:
        self.call("write_member", slot, adapter)

    def state_dict(self) -> dict[str, Any]:
        return self.call("state_dict")[0]

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.call("load_state_dict", state)

    @property
    def _ranks(self) -> int:
        return int(self.group.workers.world_size)

    def _dealt(
        self, lengths: Sequence[int], slots: Sequence[int], prompts: Sequence[Ids], hands: int
    ) -> list[list[int]]:
        return partition_rows(lengths, slots, hands, [tuple(prompt) for prompt in prompts])

    def call(self, method: str, *arguments: Any) -> list[Any]:
        """What the worker's method returns on each rank."""

        def wait() -> list[Any]:
            results = getattr(self.group.workers, method)(*arguments)
            pending = bool(results) and isinstance(results[0], ray.ObjectRef)
            return ray.get(results) if pending else results

        return watched(self.group.name, self.group.workers, wait, self.way_on)
