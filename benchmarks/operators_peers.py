"""What `operators.py` compares: members at 7B shapes, populora's operators, PEFT's, and bounds."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import torch

from azr_population.weights.adapter import Adapter, Factors, LoraSpec
from azr_population.weights.breeding import Operator

HIDDEN, KEY_VALUE, INTERMEDIATE, LAYERS = 3584, 512, 18944, 28
SHAPES = {
    "self_attn.q_proj": (HIDDEN, HIDDEN),
    "self_attn.k_proj": (KEY_VALUE, HIDDEN),
    "self_attn.v_proj": (KEY_VALUE, HIDDEN),
    "self_attn.o_proj": (HIDDEN, HIDDEN),
    "mlp.gate_proj": (INTERMEDIATE, HIDDEN),
    "mlp.up_proj": (INTERMEDIATE, HIDDEN),
    "mlp.down_proj": (HIDDEN, INTERMEDIATE),
}
PEERS = {
    "svd_structured": "mutation_svd_structured",
    "layer_selective_gaussian": "mutation_layer_selective_gaussian",
    "component_masking": "mutation_component_masking",
    "full_gaussian": "mutation_full_gaussian",
    "neftune_style": "mutation_neftune_style",
    "dare": "crossover_dare",
    "layer_wise": "crossover_layer_wise",
    "svd_subspace": "crossover_svd_subspace",
    "extrapolative": "crossover_extrapolative",
}
"""Our operators' names -> functions of populora.operators."""

PEFT_LIKE = {"svd": "extrapolative", "dare_linear_svd": "dare", "ties_svd": "extrapolative"}
"""PEFT's combination_type -> the operator that does as much work on the same parents."""


def member(seed: int, layers: int, rank: int, device: str) -> Adapter:
    """A random member: A like PEFT's start, B as after some training."""
    generator = torch.Generator().manual_seed(seed)
    factors = {}
    for layer in range(layers):
        for name, (outputs, inputs) in SHAPES.items():
            A = (torch.rand(rank, inputs, generator=generator) * 2 - 1) * inputs**-0.5
            B = torch.randn(outputs, rank, generator=generator) * 0.01
            factors[f"model.layers.{layer}.{name}"] = Factors(A.to(device), B.to(device))
    return Adapter(LoraSpec(rank, 2.0 * rank), factors)


def parameters(adapter: Adapter) -> int:
    return sum(pair.A.numel() + pair.B.numel() for pair in adapter.factors.values())


class Bounds:
    """The least that an operator has to do, as calls to be timed: `of(name)`.

    A child cannot be had faster than its memory is written: `copy` is the bound of all. Noise costs
    its random numbers: M4 as many normals as the member has parameters, M2 in a third of the layers
    and copies of the others, M5 uniform numbers for A and copies of B. Drawn by torch from one
    generator, as the operators draw them.
    """

    def __init__(self, parent: Adapter) -> None:
        self._pairs = list(parent.factors.values())
        self._generator = torch.Generator(self._pairs[0].A.device).manual_seed(0)

    def of(self, name: str) -> Callable[[], object]:
        calls: dict[str, Callable[[], object]] = {
            "full_gaussian": lambda: self._normals(1.0),
            "layer_selective_gaussian": lambda: self._normals(0.33),
            "neftune_style": self._uniforms,
        }
        return calls.get(name, self.copy)

    def copy(self) -> object:
        return [(pair.A.clone(), pair.B.clone()) for pair in self._pairs]

    def _normals(self, share: float) -> object:
        order = torch.randperm(len(self._pairs), generator=torch.Generator().manual_seed(0))
        chosen = set(order[: int(share * len(self._pairs))].tolist())
        made = []
        for index, pair in enumerate(self._pairs):
            for factor in (pair.A, pair.B):
                if index in chosen:
                    made.append(torch.empty_like(factor).normal_(generator=self._generator))
                else:
                    made.append(factor.clone())
        return made

    def _uniforms(self) -> object:
        return [
            (torch.empty_like(pair.A).uniform_(generator=self._generator), pair.B.clone())
            for pair in self._pairs
        ]


class Populora:
    """populora's operators on the same parents: its own layout, [P, in, r] and [P, out, r], with
    the parents in slots 0 and 1. Mutations work in place, on the first parent."""

    def __init__(self, parents: list[Adapter]) -> None:
        from populora import operators as peer

        self.operators = peer
        down, up = {}, {}
        for name in parents[0].factors:
            pairs = [parent.factors[name] for parent in parents]
            key = name.replace(".", "_")
            down[key] = torch.nn.Parameter(
                torch.stack([pairs[0].A.t(), pairs[1].A.t(), pairs[0].A.t()]), requires_grad=False
            )
            up[key] = torch.nn.Parameter(
                torch.stack([pairs[0].B, pairs[1].B, pairs[0].B]), requires_grad=False
            )
        device = next(iter(down.values())).device
        self.population = SimpleNamespace(weight_down=down, weight_up=up, device=device)

    def child(self, operator: Operator) -> None:
        function = getattr(self.operators, PEERS[operator.name])
        slot = torch.tensor([2], device=self.population.device)
        with torch.no_grad():
            if operator.parents == 1:
                function(self.population, slot)
            else:
                pair = torch.tensor([[0, 1]], device=self.population.device)
                function(self.population, pair, slot)


def peft_call(parents: list[Adapter], combination: str) -> Callable[[], object]:
    """PEFT's combination of both parents' first decoder layer, ready to be timed."""
    import peft
    from transformers import Qwen2Config, Qwen2ForCausalLM

    config = Qwen2Config(
        vocab_size=8,
        hidden_size=HIDDEN,
        intermediate_size=INTERMEDIATE,
        num_hidden_layers=1,
        num_attention_heads=28,
        num_key_value_heads=4,
    )
    targets = [name.rpartition(".")[2] for name in SHAPES]
    rank = parents[0].spec.rank
    lora = peft.LoraConfig(r=rank, lora_alpha=2 * rank, target_modules=targets)
    model = peft.get_peft_model(Qwen2ForCausalLM(config), lora, adapter_name="one")
    model.add_adapter("two", lora)
    with torch.no_grad():
        for adapter_name, parent in zip(("one", "two"), parents, strict=True):
            for name in SHAPES:
                layer = model.get_submodule(f"base_model.model.model.layers.0.{name}")
                pair = parent.factors[f"model.layers.0.{name}"]
                layer.lora_A[adapter_name].weight.copy_(pair.A)
                layer.lora_B[adapter_name].weight.copy_(pair.B)
    density = {} if combination == "svd" else {"density": 0.3}
    return lambda: model.add_weighted_adapter(
        ["one", "two"], [0.5, 0.5], "child", combination_type=combination, **density
    )
