"""The kinds of rollouts, by name: their checks before anything is loaded, and how they are made.

One of your own is a subclass of `RolloutKind` in a module that the run can import:
`engine.rollout=my_module.MyKind`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from azr_population.engines import torch_rollout
from azr_population.engines import vllm_versions as versions
from azr_population.engines.base_model import stop_ids
from azr_population.engines.engine import Rollout
from azr_population.engines.torch_rollout import TorchRollout
from azr_population.registry import Registry
from azr_population.weights.bank import Bank

ROLLOUTS: Registry[type[RolloutKind]] = Registry("rollout")


@dataclass(frozen=True)
class RolloutSettings:
    """The settings of a rollout; plain data, because they are sent to other processes."""

    name: str = "torch"
    rows: int = torch_rollout.ROWS
    tokens: int = torch_rollout.TOKENS
    """Of the torch rollout: most rows in a batch, most tokens in its KV cache."""
    vllm: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of `vllm.LLM` as the user gave them."""
    share_prefix: bool = True
    """Of the torch rollout: see `LearnerConfig`."""

    @property
    def together(self) -> int:
        """Ranks that sample the same rows together: vLLM's tensor parallelism."""
        return int(self.vllm.get("tensor_parallel_size") or 1)

    @property
    def kind(self) -> RolloutKind:
        """Of the name. Raises UserError when there is none."""
        return ROLLOUTS.find(self.name)()


@dataclass(frozen=True)
class Served:
    """What a rollout samples from: the base, loaded and in its folder, and the members on it."""

    model: nn.Module
    tokenizer: Any
    bank: Bank
    base: str
    dtype: str
    device: str

    @property
    def stop_ids(self) -> frozenset[int]:
        """The token ids that end a completion."""
        return stop_ids(self.model, self.tokenizer)


class RolloutKind:
    """A kind of rollout. The base class refuses nothing."""

    own_weights = False
    """Whether it has weights beside the learner's: then its log-probabilities are rounded in
    another way, and a canary checks what it serves."""

    def check(self, rank: int) -> None:
        """Refuses what is known to fail before anything is loaded; `rank` is the adapters'."""

    def make(self, served: Served, settings: RolloutSettings) -> Rollout:
        """The rollout; of members only their number and shape are asked, they are pushed later."""
        raise NotImplementedError


@ROLLOUTS.register("torch", "ours")
class TorchKind(RolloutKind):
    """Samples from the learner's own bank."""

    def make(self, served: Served, settings: RolloutSettings) -> Rollout:
        return TorchRollout(
            served.model,
            served.bank,
            served.stop_ids,
            settings.rows,
            settings.tokens,
            settings.share_prefix,
        )


@ROLLOUTS.register("vllm", "vLLM, multi-LoRA")
class VllmKind(RolloutKind):
    """Samples by a vLLM in this process. All methods raise UserError with its reasons."""

    own_weights = True

    def check(self, rank: int) -> None:
        versions.version()
        versions.lora_rank(rank)

    def make(self, served: Served, settings: RolloutSettings) -> Rollout:
        # Imported late, as everything that starts a vLLM.
        from azr_population.engines.vllm_rollout import VllmRollout

        return VllmRollout(
            served.base,
            served.bank.slots,
            served.bank.spec.rank,
            served.stop_ids,
            dtype=served.dtype,
            on_gpu=served.device.startswith("cuda"),
            options=settings.vllm,
        )
