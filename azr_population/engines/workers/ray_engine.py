"""An engine over a group of processes: rows are split over them, members are the same on all."""

import os
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
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
from azr_population.engines.workers.placement import PlacedGroup, start_groups, watched
from azr_population.engines.workers.worker import WorkerSettings
from azr_population.errors import UserError, first_line
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
        self._shares_prompts: bool | None = None
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
        shares = self._split([len(prompt) for prompt in prompts], slots, prompts, self._together)
        parts = [
            {
                "prompts": [prompts[row] for row in share],
                "slots": [slots[row] for row in share],
                "sampling": sampling.of_rows(share, len(prompts)),
                "seed": seed,
                "rows": [numbers[row] for row in share],
            }
            for share in shares
            for _ in range(self._together)
        ]

        def finished() -> Iterator[list[Finished]]:
            for rank, written in self.group.stream(parts):
                if rank % self._together == 0:
                    share = shares[rank // self._together]
                    placed = [(share[row], group) for row, group in written]
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
        """See `Learner`; each member's rows are split in the pieces in which they go through
        the model, so that the number of ranks changes no piece."""
        shares: list[dict[int, list[TrainingSample]]] = [{} for _ in range(self._ranks)]
        if self._shares_prompts is None:
            self._shares_prompts = bool(self.call("shares_prompts")[0])
        for slot, rows in samples.items():
            limit = piece_tokens(sum(map(length, rows)), self._micro_batch_tokens)
            for share in shares:
                share[slot] = []
            for number, piece in enumerate(pieces(rows, limit, self._shares_prompts)):
                samples_of_piece = [sample for unit in piece for sample in unit.samples]
                shares[number % self._ranks][slot] += samples_of_piece
        parts = [{"samples": share, "hyperparameters": dict(hyperparameters)} for share in shares]
        updates: Updates = self.call("update_rows", parts)[0]
        return updates

    def log_probs(
        self, prompts: Sequence[Ids], responses: Sequence[Ids], slots: Sequence[int]
    ) -> tuple[list[Tensor], list[Tensor]]:
        lengths = [len(row[0]) + len(row[1]) for row in zip(prompts, responses, strict=True)]
        shares = self._split(lengths, slots, prompts, 1)
        parts = [
            {
                "prompts": [prompts[row] for row in share],
                "responses": [responses[row] for row in share],
                "slots": [slots[row] for row in share],
            }
            for share in shares
        ]
        both: tuple[dict[int, Tensor], dict[int, Tensor]] = ({}, {})
        for share, answer in zip(shares, self.call("log_prob_rows", parts), strict=True):
            for into, values in zip(both, answer, strict=True):
                into.update(zip(share, values, strict=True))
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

    def _split(
        self, lengths: Sequence[int], slots: Sequence[int], prompts: Sequence[Ids], together: int
    ) -> list[list[int]]:
        """The rows of each rank, or of each `together` ranks."""
        ranks = self._ranks // together
        return partition_rows(lengths, slots, ranks, [tuple(prompt) for prompt in prompts])

    def call(self, method: str, *arguments: Any) -> list[Any]:
        """What the worker's method returns on each rank."""

        def wait() -> list[Any]:
            results = getattr(self.group.workers, method)(*arguments)
            pending = bool(results) and isinstance(results[0], ray.ObjectRef)
            return ray.get(results) if pending else results

        return watched(self.group.name, self.group.workers, wait, self.way_on)


def check_reachable(address: str) -> None:
    """Raises `UserError` where `address` (`host:port`, as RAY_ADDRESS has it) does not answer.

    Ray itself goes on trying for minutes. `auto` and `local` name no place and are left to Ray.
    """
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=5.0).close()
    except (OSError, OverflowError) as error:
        raise UserError(
            f"RAY_ADDRESS={address}: no Ray answers there ({error}); start one with "
            "ray start --head, or unset it for a Ray of this run's own"
        ) from error


@contextmanager
def ray_engine(settings: WorkerSettings, workers: int, run_dir: str) -> Iterator[RayEngine]:
    """An engine of so many workers, which end with the block; so does a Ray that was started here.

    Raises:
        UserError: there is no such cluster, or it has no room.
    """
    address = os.environ.get("RAY_ADDRESS")
    check_reachable(address or "")
    try:
        ray.init(
            address=address,
            include_dashboard=None if address else False,
            num_cpus=None if address else os.cpu_count(),
            log_to_driver=False,
            configure_logging=False,
        )
    except Exception as error:  # Ray raises no narrower one when a node does not start in time.
        reason = first_line(error)
        if not address:
            raise UserError(f"Ray does not start here: {reason}") from error
        raise UserError(
            f"RAY_ADDRESS={address} cannot be joined: {reason}; if it asks for a token, which Ray "
            "does by itself where there is a ~/.ray/auth_token, set RAY_AUTH_MODE=token"
        ) from error
    try:
        (group,) = start_groups("colocated", settings, 0, 0, [workers])
        way_on = f"azr-population resume {run_dir} continues from the last checkpoint"
        yield RayEngine(group, settings.learner.most_tokens, way_on, settings.rollout.together)
    finally:
        ray.shutdown()
