"""A base and some members on it, loaded to sample."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from azr_population.engines.base_folder import context_of
from azr_population.engines.base_model import load_base, stop_ids
from azr_population.engines.engine import Rollout
from azr_population.engines.rollouts import RolloutSettings, Served
from azr_population.engines.torch_rollout import make_bank
from azr_population.errors import UserError
from azr_population.evals.targets import EvalTarget
from azr_population.weights.adapter import Adapter, Factors, LoraSpec
from azr_population.weights.bank import Bank
from azr_population.weights.peft_folder import load_adapter

_NO_MEMBERS = LoraSpec(1, 1.0, ("all-linear",))


@dataclass(frozen=True)
class LoadedRollout:
    """A rollout, its tokenizer, and the slot of each target."""

    rollout: Rollout
    tokenizer: Any
    context: int
    """Tokens that a prompt and its completion may have together."""
    slots: dict[EvalTarget, int]


def load_rollout(
    targets: Sequence[EvalTarget],
    dtype: str = "float32",
    device: str = "cpu",
    settings: RolloutSettings | None = None,
) -> LoadedRollout:
    """Loads targets that share a base and whose adapters have one shape; close its `rollout`.

    Raises UserError where an adapter does not fit, or where the rollout cannot serve it.
    """
    settings = settings or RolloutSettings()
    base = targets[0].base
    adapters = {target: load_adapter(target.folder) for target in targets if target.folder}
    shapes = {adapter.spec for adapter in adapters.values()} or {_NO_MEMBERS}
    if len(shapes) > 1:
        raise UserError(f"the adapters have {len(shapes)} shapes; ask those of one shape at a time")
    settings.kind.check(1)
    # A rollout with weights of its own has the GPU to itself.
    model, tokenizer = load_base(base, dtype, "cpu" if settings.kind.own_weights else device)
    # Fresh adapters add nothing (B is zero): that is the base.
    seeds = [torch.Generator().manual_seed(0) for _ in targets]
    bank = make_bank(model, shapes.pop(), seeds)
    for slot, target in enumerate(targets):
        if target in adapters:
            try:
                bank.write(slot, _complete(adapters[target], bank))
            except UserError as error:
                raise UserError(f"{target.folder} does not fit {base}: {error}") from error
    served = Served(
        model, bank, stop_ids(model, tokenizer), str(base), dtype, device.startswith("cuda")
    )
    rollout = settings.kind.make(served, settings)
    for slot in range(len(targets)):
        rollout.push(slot, bank.read(slot))
    limits = [limit for limit in (context_of(model), rollout.longest) if limit]
    slots = {target: slot for slot, target in enumerate(targets)}
    return LoadedRollout(rollout, tokenizer, min(limits, default=1 << 20), slots)


def _complete(adapter: Adapter, bank: Bank) -> Adapter:
    """The adapter as the bank keeps factors: float32, and zero where it leaves a layer alone."""
    factors = {
        name: Factors(torch.zeros_like(pair.A), torch.zeros_like(pair.B))
        for name, pair in bank.read(0).factors.items()
    }
    given = {n: Factors(pair.A.float(), pair.B.float()) for n, pair in adapter.factors.items()}
    return Adapter(adapter.spec, {**factors, **given})
