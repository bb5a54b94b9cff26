"""One worker process: the frozen base and all members.

Of veRL it needs `verl.single_controller` alone, and not veRL's own trainers and workers.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import ray
import torch
import torch.distributed
from verl.single_controller.base import Worker

from azr_population.engines.assembly import LocalEngine, make_engine
from azr_population.engines.engine import EngineSettings, Finished, PromptBatch, Sampling
from azr_population.registry import trust
from azr_population.streams import Streams


class EngineWorker(Worker):
    """All members on one rank."""

    engine: LocalEngine
    tokenizer: Any

    def __init__(self, settings: EngineSettings) -> None:
        super().__init__()
        learner = settings.learner
        # A process of a run: its driver has checked the names.
        trust([settings.rollout, learner.optimizer])
        self.settings = settings

    def init_model(self) -> tuple[str, bool]:
        """Joins the group, loads the base and draws the members, the same on every rank.

        Returns where the rank runs (its node, and its GPU where it has one), and whether its
        updates share prompts.
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
        streams = Streams(settings.seed)
        generators = [streams.torch(f"adapter {slot}") for slot in range(settings.slots)]
        self.engine, self.tokenizer = make_engine(settings, generators, parallel=True)
        gpus = "".join(f" GPU {gpu}" for gpu in ray.get_gpu_ids())
        return f"{ray.util.get_node_ip_address()}{gpus}", self.engine.learner.shares_prompts

    def stream(
        self, batch: PromptBatch, sampling: Sampling, seed: int
    ) -> Iterator[Sequence[Finished]]:
        """See `Sampler`."""
        yield from self.engine.stream(batch, sampling, seed)

    def call_engine(self, method: str, *arguments: Any) -> Any:
        """Calls a method of the engine by its name."""
        return getattr(self.engine, method)(*arguments)
