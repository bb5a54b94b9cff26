"""How far children are from the dense float64 operation, at 7B shapes (used by operators.py)."""

from __future__ import annotations

import torch
from torch import Tensor

from azr_population.weights.adapter import Adapter, Factors
from azr_population.weights.breeding import get_operator

LAYER = "model.layers.0.self_attn.k_proj"
"""512 x 3584: small enough to be formed."""

Errors = dict[str, dict[str, float]]


def errors(parents: list[Adapter]) -> Errors:
    """Relative Frobenius error of dW by operator, for three kinds of the same parents: as they are,
    with factors mixed by a matrix of condition number 1e4 (dW is the same), and in bfloat16."""
    short = [Adapter(p.spec, {LAYER: _cpu(p.factors[LAYER])}) for p in parents]
    kinds = {
        "float32": short,
        "ill-conditioned": [_mixed(p, seed) for seed, p in enumerate(short)],
        "bfloat16": [_in(p, torch.bfloat16) for p in short],
    }
    found: Errors = {}
    for kind, pair in kinds.items():
        for operator, error in _errors(pair).items():
            found.setdefault(operator, {})[kind] = error
    return found


def table(found: Errors) -> str:
    kinds = list(next(iter(found.values())))
    lines = [f"| operator | {' | '.join(kinds)} |", "|---" * (len(kinds) + 1) + "|"]
    for operator, own in found.items():
        lines.append(f"| {operator} | " + " | ".join(f"{own[k]:.1e}" for k in kinds) + " |")
    return "\n".join(lines)


def _errors(short: list[Adapter]) -> dict[str, float]:
    dense = [_dense(parent) for parent in short]
    rank, inputs = short[0].spec.rank, dense[0].shape[1]
    spectra = [torch.linalg.svd(update, full_matrices=False) for update in dense]

    def part(which: int, chosen: list[int]) -> Tensor:
        U, S, Vt = spectra[which]
        return U[:, chosen] * S[chosen] @ Vt[chosen]

    def best(update: Tensor) -> Tensor:
        U, S, Vt = torch.linalg.svd(update, full_matrices=False)
        return U[:, :rank] * S[:rank] @ Vt[:rank]

    def error(operator: str, expected: Tensor, **options: float) -> float:
        child = get_operator(operator)(short, torch.Generator().manual_seed(0), **options)
        return float((_dense(child) - expected).norm() / expected.norm())

    # The same draws as the operators make from the same seed.
    generator = torch.Generator().manual_seed(0)
    dropped = torch.rand(1, rank, generator=generator).argsort(dim=1)[0, : -(-3 * rank // 10)]
    kept = [i for i in range(rank) if i not in set(dropped.tolist())]
    generator.manual_seed(0)
    columns = [(torch.rand(inputs, generator=generator) >= 0.7).double() / (1 - 0.7) for _ in dense]
    everything = list(range(rank))
    return {
        "M1 `svd_structured`, eps 0": error("svd_structured", dense[0], eps=0.0),
        "M3 `component_masking`": error("component_masking", part(0, kept)),
        "X1 `dare` (columns)": error(
            "dare", best((dense[0] * columns[0] + dense[1] * columns[1]) / 2)
        ),
        "X3 `svd_subspace`, k 10": error(
            "svd_subspace", part(0, everything[:10]) + part(1, everything[10:]), k=10
        ),
        "X4 `extrapolative`, eta 1.3": error(
            "extrapolative", best(dense[1] + 1.3 * (dense[0] - dense[1])), eta_min=1.3, eta_max=1.3
        ),
    }


def _dense(adapter: Adapter) -> Tensor:
    pair = adapter.factors[LAYER]
    return pair.B.double() @ pair.A.double()


def _cpu(pair: Factors) -> Factors:
    return Factors(pair.A.cpu(), pair.B.cpu())


def _in(adapter: Adapter, dtype: torch.dtype) -> Adapter:
    pair = adapter.factors[LAYER]
    return Adapter(adapter.spec, {LAYER: Factors(pair.A.to(dtype), pair.B.to(dtype))})


def _mixed(adapter: Adapter, seed: int, condition: float = 1e4) -> Adapter:
    """B G and G^-1 A."""
    pair, rank = adapter.factors[LAYER], adapter.spec.rank
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(rank, rank, dtype=torch.float64, generator=generator)
    U, _, V = torch.linalg.svd(noise)
    stretch = torch.logspace(0, torch.tensor(condition).log10().item(), rank, dtype=torch.float64)
    B, A = pair.B.double() @ (U * stretch @ V), (V.mT / stretch @ U.mT) @ pair.A.double()
    return Adapter(adapter.spec, {LAYER: Factors(A.float(), B.float())})
