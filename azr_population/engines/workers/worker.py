"""One worker process: the frozen base, all members, their methods under veRL.

Written against `verl.single_controller` (Worker, register, Dispatch) alone, so that it does not
depend on veRL's own trainers and workers.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ray
import torch
import torch.distributed
from torch import Tensor
from verl.single_controller.base import Worker
from verl.single_controller.base.decorator import Dispatch, register

from azr_population.engines.assembly import EngineSettings, LocalEngine, make_engine
from azr_population.engines.engine import Finished, Ids, Sampling, Updates
from azr_population.engines.torch_learner import TorchLearner
from azr_population.registry import trust
from azr_population.runs.streams import Streams
from azr_population.weights.adapter import Adapter, Factors
from azr_population.weights.breeding import Breeding, breed


@dataclass(frozen=True, kw_only=True)
class WorkerSettings(EngineSettings):
    """What a worker is made from."""

    seed: int
    threads: int = 0


class EngineWorker(Worker):
    """All members on one rank.

    Methods that take rows (`ALL_TO_ALL`) are called with a list that has each rank's part.
    """

    engine: LocalEngine
    tokenizer: Any

    def __init__(self, settings: WorkerSettings) -> None:
        super().__init__()
        learner = settings.learner
        # A process of a run: its driver has checked the names.
        trust([settings.rollout.name, learner.optimizer, learner.policy_loss])
        self.settings = settings

    @register(dispatch_mode=Dispatch.ONE_TO_ALL)
    def init_model(self) -> str:
        """Joins the group, loads the base and draws the members, the same on every rank.

        Returns where the rank runs: its node, and its GPU where it has one.
        """
        settings = self.settings
        if settings.threads:
            torch.set_num_threads(settings.threads)
        if self.world_size > 1 and not torch.distributed.is_initialized():
            torch.distributed.init_process_group(
                "nccl" if settings.device == "cuda" else "gloo",
                rank=self.rank,
                world_size=self.world_size,
            )
        self.make_engine()
        gpus = "".join(f" GPU {gpu}" for gpu in ray.get_gpu_ids())
        return f"{ray.util.get_node_ip_address()}{gpus}"

    def make_engine(self) -> None:
        """Sets `engine` and the `tokenizer`; a test's worker may have others."""
        settings = self.settings
        streams = Streams(settings.seed)
        generators = [streams.torch(f"adapter {slot}") for slot in range(settings.slots)]
        self.engine, self.tokenizer = make_engine(settings, generators, parallel=True)

    @property
    def learner(self) -> TorchLearner:
        """The engine's."""
        return self.engine.learner

    def stream(
        self,
        prompts: Sequence[Ids],
        slots: Sequence[int],
        sampling: Sampling,
        seed: int,
        rows: Sequence[int],
    ) -> Iterator[Sequence[Finished]]:
        """See `Sampler`; called past veRL, which waits for whole results."""
        yield from self.engine.stream(prompts, slots, sampling, seed, rows)

    @register(dispatch_mode=Dispatch.ALL_TO_ALL, blocking=False)
    def log_prob_rows(self, part: Mapping[str, Any]) -> tuple[list[Tensor], list[Tensor]]:
        """`part` are the arguments of `Engine.log_probs` by name."""
        return self.engine.log_probs(**part)

    @register(dispatch_mode=Dispatch.ALL_TO_ALL, blocking=False)
    def update_rows(self, part: Mapping[str, Any]) -> Updates:
        """`part` are the arguments of `Engine.update` by name; every rank has every member."""
        return self.engine.update(**part)

    @register(dispatch_mode=Dispatch.ONE_TO_ALL)
    def read_member(self, slot: int) -> Adapter | None:
        """A copy of the member's factors on the CPU, from the first rank; None from the others."""
        return _on_cpu(self.engine.read(slot)) if self.rank == 0 else None

    @register(dispatch_mode=Dispatch.ONE_TO_ALL)
    def write_member(self, slot: int, adapter: Adapter) -> None:
        """Replaces the member's factors on every rank and starts its optimizer afresh."""
        self.engine.write(slot, adapter)

    @register(dispatch_mode=Dispatch.ONE_TO_ALL)
    def evolve(
        self, slot: int, parents: Sequence[int], recipe: Mapping[str, Any], seed: int
    ) -> Breeding:
        """Puts a child of `parents` (slots, the better one first) in the place of `slot`.

        `recipe` are keywords of `breed`: mix, options, adapt, inherited. Bred on the CPU of every
        rank from the same seed, then sent from the first rank, so that ranks cannot drift apart.
        """
        trust(recipe["mix"])  # checked where it was typed, which is another process
        adapters = [_on_cpu(self.engine.read(parent)) for parent in parents]
        generator = torch.Generator().manual_seed(seed)
        child, breeding = breed(parents=adapters, generator=generator, **recipe)
        self.learner.write(slot, child)
        self.learner.share(slot)
        self.engine.push([slot])
        return breeding

    @register(dispatch_mode=Dispatch.ONE_TO_ALL)
    def state_dict(self) -> dict[str, Any] | None:
        """See `Engine`; from the first rank, None from the others."""
        return self.engine.state_dict() if self.rank == 0 else None

    @register(dispatch_mode=Dispatch.ONE_TO_ALL)
    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.engine.load_state_dict(state)

    @register(dispatch_mode=Dispatch.ONE_TO_ALL)
    def shares_prompts(self) -> bool:
        """See `TorchLearner`; the same on every rank."""
        return self.learner.shares_prompts

    @register(dispatch_mode=Dispatch.ONE_TO_ALL)
    def digest(self) -> str:
        """SHA-256 over all members on this rank."""
        return self.learner.digest()


def _on_cpu(adapter: Adapter) -> Adapter:
    return Adapter(
        adapter.spec,
        {name: Factors(pair.A.cpu(), pair.B.cpu()) for name, pair in adapter.factors.items()},
    )
