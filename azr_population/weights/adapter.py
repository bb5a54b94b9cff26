"""One member's LoRA factors as plain tensors, independent of any model."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from azr_population.errors import UserError


@dataclass(frozen=True)
class LoraSpec:
    """The shape of every adapter of a run; the fields are those of `peft.LoraConfig`.

    `target_modules` are suffixes of module names (`q_proj`), or `all-linear` for every linear layer
    except the output head.
    """

    rank: int = 8
    alpha: float = 16.0
    target_modules: tuple[str, ...] = ("all-linear",)

    @property
    def scaling(self) -> float:
        """The factor in dW = scaling * B A; dimensionless."""
        return self.alpha / self.rank


def matches(layer: str, target: str) -> bool:
    """Whether a layer's full name is meant by a name in `target_modules`, by PEFT's rule: a suffix
    at a dot."""
    return layer == target or layer.endswith(f".{target}")


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

    def map(self, change: Callable[[Tensor], Tensor]) -> "Adapter":
        """The adapter whose factors are `change` of these."""
        changed = {n: Factors(change(p.A), change(p.B)) for n, p in self.factors.items()}
        return Adapter(self.spec, changed)


LARGEST = 1e4
"""Largest magnitude of a factor that is accepted: training does not reach it, and beyond it the
base's outputs overflow."""


def refuse_not_finite(adapter: Adapter, where: str) -> None:
    """Raises `UserError` for a NaN or Inf."""
    factors = _by_layer(adapter)
    # Sums are ten times as fast, and a GPU is waited for once; where one overflows, values count.
    sums = torch.stack([factor.sum(dtype=torch.float32) for _, factor in factors]).isfinite()
    for (layer, factor), finite in zip(factors, sums.tolist(), strict=True):
        if not finite and not factor.isfinite().all():
            raise UserError(f"{where} holds a value that is not finite (NaN or Inf) in {layer}")


def refuse_unsound(adapter: Adapter, where: str) -> None:
    """Raises `UserError` for values that are not finite or above `LARGEST`."""
    refuse_not_finite(adapter, where)
    factors = _by_layer(adapter)
    sizes = torch.stack([factor.detach().abs().max().double() for _, factor in factors]).tolist()
    for (layer, _), largest in zip(factors, sizes, strict=True):
        if largest > LARGEST:
            raise UserError(f"{where} holds {largest:.3g} in {layer}; at most {LARGEST:g} may be")


def _by_layer(adapter: Adapter) -> list[tuple[str, Tensor]]:
    return [(name, f) for name, pair in adapter.factors.items() for f in (pair.A, pair.B)]


def refuse_misfit(first: Adapter, second: Adapter, who: str) -> None:
    """Raises UserError unless both adapters have the same rank, alpha, layers and shapes. `who`
    names the two in the message."""
    for field in ("rank", "alpha"):
        values = getattr(first.spec, field), getattr(second.spec, field)
        if values[0] != values[1]:
            raise UserError(f"{who} have {field} {values[0]:g} and {values[1]:g}, not the same")
    if first.factors.keys() != second.factors.keys():
        odd = min(first.factors.keys() ^ second.factors.keys())
        raise UserError(f"{who} adapt different layers: only one of them has {odd}")
    for name, pair in first.factors.items():
        other = second.factors[name]
        if pair.A.shape != other.A.shape or pair.B.shape != other.B.shape:
            sizes = " and ".join(f"{len(p.B)}x{p.A.shape[1]}" for p in (pair, other))
            ranks = " and ".join(f"{len(p.A)}" for p in (pair, other))
            raise UserError(
                f"{who} belong to different bases or ranks: {name} is {sizes} of rank {ranks}"
            )
