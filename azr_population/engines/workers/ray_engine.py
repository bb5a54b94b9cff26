"""An engine over a group of processes: rows are split over them, members are the same on all."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any

import ray
from torch import Tensor

from azr_population.engines.engine import (
    Engine,
    Finished,
    Hyperparameters,
    Ids,
    Sampling,
    TrainingSample,
    Updates,
)
from azr_population.engines.micro_batches import length, partition_rows, pieces
from azr_population.engines.torch_learner import piece_tokens
from azr_population.engines.workers.placement import start_workers, watched
from azr_population.engines.workers.worker import EngineWorker, WorkerSettings
from azr_population.errors import UserError, first_line
from azr_population.weights.adapter import Adapter


class RayEngine(Engine):
    """An `Engine` whose rows are computed by the ranks of veRL's worker group `workers`.

    What a row draws depends on its number and not on its rank, and gradients are summed, so that
    the number of ranks changes nothing but the rounding. `way_on` is what the user can do after a
    worker's death.
    """

    def __init__(self, workers: Any, settings: WorkerSettings, way_on: str = "") -> None:
        self.workers = workers
        self.way_on = way_on
        self._together = settings.rollout.together
        self._micro_batch_tokens = settings.learner.most_tokens
        self._shares_prompts: bool | None = None
        """Whether workers' updates share prompts; asked before the first."""

    @classmethod
    def start(
        cls,
        settings: WorkerSettings,
        on_nodes: Sequence[int],
        worker_class: type[EngineWorker] = EngineWorker,
        driver_cpus: int = 0,
    ) -> tuple[RayEngine, list[str]]:
        """An engine on new workers, for which see `start_workers`, and where each rank runs."""
        workers = start_workers(settings, on_nodes, worker_class, driver_cpus)
        way_on = "it was loading the base: see that node's memory, and what Ray says above"
        engine = cls(workers, settings, way_on)
        return engine, engine.call("init_model")

    def stream(
        self,
        prompts: Sequence[Ids],
        slots: Sequence[int],
        sampling: Sampling,
        seed: int,
        rows: Sequence[int] | None = None,
    ) -> Iterator[Sequence[Finished]]:
        """See `Sampler`. `together` ranks sample the same rows (tensor parallelism)."""
        if not prompts:
            return
        numbers = range(len(prompts)) if rows is None else rows
        shares = self._split([len(prompt) for prompt in prompts], slots, prompts, self._together)
        streams: dict[Any, list[int] | None] = {}
        for rank, worker in enumerate(self.workers.workers):
            share = shares[rank // self._together]
            stream = worker.stream.options(num_returns="streaming").remote(
                [prompts[row] for row in share],
                [slots[row] for row in share],
                sampling.of_rows(share, len(prompts)),
                seed,
                [numbers[row] for row in share],
            )
            streams[stream] = share if rank % self._together == 0 else None
        with watched(self.workers, self.way_on):
            while streams:
                (ready,), _ = ray.wait(list(streams), num_returns=1)
                try:
                    finished = ray.get(next(ready))
                except StopIteration:
                    del streams[ready]
                    continue
                if first := streams[ready]:
                    yield [(first[row], completions) for row, completions in finished]

    def update(
        self,
        samples: Mapping[int, Sequence[TrainingSample]],
        hyperparameters: Mapping[int, Hyperparameters],
    ) -> Updates:
        """See `Engine`; each member's rows are split in the pieces in which they go through
        the model, so that the number of ranks changes no piece."""
        shares: list[dict[int, list[TrainingSample]]] = [{} for _ in range(self._ranks)]
        if self._shares_prompts is None:
            self._shares_prompts = bool(self.call("shares_prompts")[0])
        for slot, rows in samples.items():
            limit = piece_tokens(sum(map(length, rows)), self._micro_batch_tokens)
            for share in shares:
                share[slot] = []
            for number, piece in enumerate(pieces(rows, limit, self._shares_prompts)):
                shares[number % self._ranks][slot] += chain.from_iterable(piece)
        parts = [{"samples": share, "hyperparameters": dict(hyperparameters)} for share in shares]
        updates: Updates = self.call("update_rows", parts)[0]
        return updates

    def log_probs(
        self, prompts: Sequence[Ids], responses: Sequence[Ids], slots: Sequence[int]
    ) -> tuple[list[Tensor], list[Tensor]]:
        lengths = [len(row[0]) + len(row[1]) for row in zip(prompts, responses, strict=True)]
        shares = self._split(lengths, slots, prompts, 1)
        columns = {"prompts": prompts, "responses": responses, "slots": slots}
        parts = [
            {name: [column[row] for row in share] for name, column in columns.items()}
            for share in shares
        ]
        both: tuple[dict[int, Tensor], dict[int, Tensor]] = ({}, {})
        for share, answer in zip(shares, self.call("log_prob_rows", parts), strict=True):
            for into, values in zip(both, answer, strict=True):
                into.update(zip(share, values, strict=True))
        chosen, entropies = ([into[row] for row in range(len(prompts))] for into in both)
        return chosen, entropies

    def read(self, slot: int) -> Adapter:
        """See `Engine`; on the CPU."""
        return self.call("read_member", slot)[0]

    def write(self, slot: int, adapter: Adapter) -> None:
        self.call("write_member", slot, adapter)

    def state_dict(self) -> dict[str, Any]:
        return self.call("state_dict")[0]

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.call("load_state_dict", state)

    @property
    def _ranks(self) -> int:
        return int(self.workers.world_size)

    def _split(
        self, lengths: Sequence[int], slots: Sequence[int], prompts: Sequence[Ids], together: int
    ) -> list[list[int]]:
        """The rows of each rank, or of each `together` ranks."""
        ranks = self._ranks // together
        return partition_rows(lengths, slots, ranks, [tuple(prompt) for prompt in prompts])

    def call(self, method: str, *arguments: Any) -> list[Any]:
        """What the worker's method returns on each rank."""
        with watched(self.workers, self.way_on):
            results = getattr(self.workers, method)(*arguments)
            pending = bool(results) and isinstance(results[0], ray.ObjectRef)
            return ray.get(results) if pending else results


@contextmanager
def ray_engine(settings: WorkerSettings, workers: int, run_dir: str) -> Iterator[RayEngine]:
    """An engine of so many workers, which end with the block; so does a Ray that was started here.
    Raises UserError: there is no such cluster, or it has no room."""
    address = os.environ.get("RAY_ADDRESS")
    try:
        ray.init(
            address=address,
            include_dashboard=None if address else False,
            num_cpus=None if address else os.cpu_count(),
            log_to_driver=False,
            configure_logging=False,
        )
    except Exception as error:  # Ray raises no narrower one when a node does not start in time.
        what = f"RAY_ADDRESS={address} cannot be joined" if address else "Ray does not start here"
        raise UserError(f"{what}: {first_line(error)}") from error
    try:
        engine, _ = RayEngine.start(settings, [workers])
        engine.way_on = f"azr-population resume {run_dir} continues from the last checkpoint"
        yield engine
    finally:
        ray.shutdown()
