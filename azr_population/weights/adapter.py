"""One member's LoRA factors as plain tensors, independent of any model."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class LoraSpec:
    """The shape of every adapter of a run; the fields mean what they mean in `peft.LoraConfig`.

    `target_modules` are suffixes of module names (`q_proj`) or the single word `all-linear`, which
    stands for every linear layer but the output head.
    """

    rank: int = 8
    alpha: float = 16.0
    target_modules: tuple[str, ...] = ("all-linear",)

    @property
    def scaling(self) -> float:
        """The factor in dW = scaling * B A; dimensionless."""
        return self.alpha / self.rank


@dataclass(frozen=True)
class Factors:
    """The low-rank update of one linear layer: dW[out, in] = scaling * B[out, r] @ A[r, in]."""

    A: Tensor
    B: Tensor


@dataclass(frozen=True)
class Adapter:
    """All factors of one member, by the base model's module name (`model.layers.0.mlp.up_proj`)."""

    spec: LoraSpec
    factors: dict[str, Factors]
