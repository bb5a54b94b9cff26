"""An engine over a group of processes: rows are split over them, members are the same on all."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any
from urllib.parse import urlsplit

import ray
from torch import Tensor

from azr_population.engines.engine import (
    Engine,
    EngineSettings,
    Finished,
    Hyperparameters,
    Ids,
    PromptBatch,
    Samples,
    Sampling,
    TrainingSample,
    Updates,
)
from azr_population.engines.micro_batches import length, partition_rows, pieces
from azr_population.engines.torch_learner import piece_tokens
from azr_population.engines.workers.placement import ANSWER_SECONDS, start_workers, watched
from azr_population.engines.workers.worker import EngineWorker
from azr_population.errors import UserError, first_line
from azr_population.weights.adapter import Adapter


class RayEngine(Engine):
    """An `Engine` whose rows are computed by new workers (see `start_workers`) under veRL.

    What a row draws depends on its number and not on its rank, and gradients are summed, so that
    the number of ranks changes nothing but the rounding. `recovery_hint` is what the user can do
    after a worker's death, `places` is where each rank runs.
    """

    def __init__(
        self,
        settings: EngineSettings,
        on_nodes: Sequence[int],
        worker_class: type[EngineWorker] = EngineWorker,
        driver_cpus: int = 0,
    ) -> None:
        self.workers = start_workers(settings, on_nodes, worker_class, driver_cpus)
        self.recovery_hint = (
            "it was loading the base: see that node's memory, and what Ray says above"
        )
        self._tensor_parallel_size = settings.tensor_parallel_size
        self._micro_batch_tokens = settings.learner.most_tokens
        places, shares_prompts = zip(*self.call("init_model"), strict=True)
        self.places: Sequence[str] = places
        self._shares_prompts: bool = shares_prompts[0]

    def stream(
        self, batch: PromptBatch, sampling: Sampling, seed: int
    ) -> Iterator[Sequence[Finished]]:
        """See `Sampler`. `tensor_parallel_size` ranks sample the same rows (tensor parallelism)."""
        prompts = batch.prompts
        if not prompts:
            return
        lengths = [len(prompt) for prompt in prompts]
        shares = self._split(lengths, batch.slots, prompts, self._tensor_parallel_size)
        streams: dict[Any, list[int] | None] = {}
        for rank, worker in enumerate(self.workers.workers):
            share = shares[rank // self._tensor_parallel_size]
            stream = worker.stream.options(num_returns="streaming").remote(
                batch.select(share), sampling.select(share), seed
            )
            streams[stream] = share if rank % self._tensor_parallel_size == 0 else None
        with watched(self.workers, self.recovery_hint):
            while streams:
                (ready,), _ = ray.wait(list(streams), num_returns=1)
                try:
                    finished = ray.get(next(ready))
                except StopIteration:
                    del streams[ready]
                    continue
                if first := streams[ready]:
                    yield [(first[row], completions) for row, completions in finished]

    def update(self, samples: Samples, hyperparameters: Mapping[int, Hyperparameters]) -> Updates:
        """See `Engine`; each member's rows are split in the pieces in which they go through
        the model, so that the number of ranks changes no piece."""
        shares: list[dict[int, list[TrainingSample]]] = [{} for _ in range(self._ranks)]
        for slot, rows in samples.items():
            limit = piece_tokens(sum(map(length, rows)), self._micro_batch_tokens)
            for share in shares:
                share[slot] = []
            for number, piece in enumerate(pieces(rows, limit, self._shares_prompts)):
                shares[number % self._ranks][slot] += chain.from_iterable(piece)
        parts = [("update", share, dict(hyperparameters)) for share in shares]
        updates: Updates = self._call_ranks("call_engine", parts)[0]
        return updates

    def log_probs(
        self, prompts: Sequence[Ids], responses: Sequence[Ids], slots: Sequence[int]
    ) -> list[Tensor]:
        lengths = [len(row[0]) + len(row[1]) for row in zip(prompts, responses, strict=True)]
        shares = self._split(lengths, slots, prompts, 1)
        parts = [
            (
                "log_probs",
                *([column[row] for row in share] for column in (prompts, responses, slots)),
            )
            for share in shares
        ]
        by_row: dict[int, Tensor] = {}
        for share, values in zip(shares, self._call_ranks("call_engine", parts), strict=True):
            by_row |= zip(share, values, strict=True)
        return [by_row[row] for row in range(len(prompts))]

    def read(self, slot: int) -> Adapter:
        return self._call_ranks("call_engine", [("read", slot)])[0]

    def write(self, slot: int, adapter: Adapter) -> None:
        self.call("call_engine", "write", slot, adapter)

    def state_dict(self) -> dict[str, Any]:
        return self._call_ranks("call_engine", [("state_dict",)])[0]

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.call("call_engine", "load_state_dict", state)

    @property
    def _ranks(self) -> int:
        return int(self.workers.world_size)

    def _split(
        self,
        lengths: Sequence[int],
        slots: Sequence[int],
        prompts: Sequence[Ids],
        tensor_parallel_size: int,
    ) -> list[list[int]]:
        """The rows of each rank, or of each `tensor_parallel_size` ranks."""
        ranks = self._ranks // tensor_parallel_size
        return partition_rows(lengths, slots, ranks, [tuple(prompt) for prompt in prompts])

    def call(self, method: str, *arguments: Any) -> list[Any]:
        """Results of the worker's method, by rank."""
        return self._call_ranks(method, [arguments] * self._ranks)

    def _call_ranks(self, method: str, parts: Sequence[tuple[Any, ...]]) -> list[Any]:
        """The same on the first ranks, on each with its own arguments."""
        # Past veRL's group, which would split arguments that are lists.
        pairs = zip(self.workers.workers, parts, strict=False)
        with watched(self.workers, self.recovery_hint):
            results: list[Any] = ray.get(
                [getattr(worker, method).remote(*part) for worker, part in pairs]
            )
            return results


def _check_answers(address: str) -> None:
    """Raises OSError within seconds if nothing listens at `host:port`; Ray tries for minutes."""
    place = urlsplit(address if "://" in address else f"//{address}")
    if place.port:  # "auto" and "local" have none
        socket.create_connection((place.hostname or "", place.port), ANSWER_SECONDS).close()


@contextmanager
def ray_engine(settings: EngineSettings, workers: int, run_dir: str) -> Iterator[RayEngine]:
    """An engine of so many workers, which end with the block; so does a Ray that was started here.
    Raises UserError: there is no such cluster, or it has no room."""
    address = os.environ.get("RAY_ADDRESS")
    try:
        _check_answers(address or "")
        ray.init(
            address=address or "local",  # None would join a cluster that was left running here
            include_dashboard=None if address else False,
            num_cpus=None if address else os.cpu_count(),
            log_to_driver=False,
            configure_logging=False,
        )
    except Exception as error:  # Ray raises no narrower one when a node does not start in time.
        what = f"RAY_ADDRESS={address} cannot be joined" if address else "Ray does not start here"
        raise UserError(f"{what}: {first_line(error)}") from error
    try:
        engine = RayEngine(settings, [workers])
        engine.recovery_hint = f"azr-population resume {run_dir} continues from the last checkpoint"
        yield engine
    finally:
        ray.shutdown()
