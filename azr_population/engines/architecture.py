"""The dimensions of a base, read from its configuration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from azr_population.engines.kv_cache import ATTENDING

_SIZES = (
    "vocab_size",
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
)
"""Names in a model's configuration of the first fields of `Architecture`."""


_ROUGHLY = 0.02


@dataclass(frozen=True)
class Architecture:
    """The dimensions of a decoder of Llama's kind: Llama, Mistral, Qwen2, Qwen3, SmolLM."""

    vocabulary: int
    hidden: int
    intermediate: int
    layers: int
    heads: int
    kv_heads: int
    head: int
    tied: bool = False
    qkv_bias: bool = False
    qk_norm: bool = False
    windowed: int = 0
    """Layers that attend to the last `window` tokens only."""
    window: int = 0

    @classmethod
    def of(cls, config: Any) -> Architecture | None:
        """That of a transformers configuration; None where these sums are not made for it: the
        weights of the model that it makes, on torch's meta device, must be those that they give,
        but for 2% (norms, biases)."""
        sizes: list[Any] = [getattr(config, name, None) for name in _SIZES]
        mixture = any(getattr(config, n, None) for n in ("num_experts", "num_local_experts"))
        if mixture or not all(isinstance(size, int) for size in sizes):
            return None
        vocabulary, hidden, intermediate, layers, heads = sizes
        kind, window = getattr(config, "model_type", ""), getattr(config, "sliding_window", 0) or 0
        # Without a list of kinds (Mistral in transformers 4) all layers have the window.
        kinds = getattr(config, "layer_types", None) or ["sliding_attention"] * layers
        if {*kinds} - ATTENDING:
            return None
        shape = cls(
            vocabulary,
            hidden,
            intermediate,
            layers,
            heads,
            kv_heads=getattr(config, "num_key_value_heads", None) or heads,
            head=getattr(config, "head_dim", None) or hidden // heads,
            tied=bool(getattr(config, "tie_word_embeddings", False)),
            qkv_bias=kind == "qwen2" or bool(getattr(config, "attention_bias", False)),
            qk_norm=kind == "qwen3",
            windowed=kinds.count("sliding_attention") if window else 0,
            window=window,
        )
        from transformers import AutoModelForCausalLM

        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(config)
        counted = sum(weight.numel() for weight in model.parameters())
        return shape if abs(shape.weights - counted) <= _ROUGHLY * counted else None

    @property
    def linear(self) -> dict[str, tuple[int, int]]:
        """(inputs, outputs) of each linear layer of a block."""
        query, key = self.heads * self.head, self.kv_heads * self.head
        return {
            "q_proj": (self.hidden, query),
            "k_proj": (self.hidden, key),
            "v_proj": (self.hidden, key),
            "o_proj": (query, self.hidden),
            "gate_proj": (self.hidden, self.intermediate),
            "up_proj": (self.hidden, self.intermediate),
            "down_proj": (self.intermediate, self.hidden),
        }

    @property
    def linear_weights(self) -> int:
        """Weights of all linear layers but the head."""
        return self.layers * sum(inputs * outputs for inputs, outputs in self.linear.values())

    @property
    def block(self) -> int:
        """Weights of one block."""
        biases = sum(self.linear[name][1] for name in ("q_proj", "k_proj", "v_proj"))
        norms = 2 * self.hidden + 2 * self.head * self.qk_norm
        return self.linear_weights // self.layers + biases * self.qkv_bias + norms

    @property
    def ends(self) -> int:
        """Weights of the embeddings, the head and the last norm."""
        return self.vocabulary * self.hidden * (1 if self.tied else 2) + self.hidden

    @property
    def weights(self) -> int:
        return self.layers * self.block + self.ends

    @property
    def cache(self) -> int:
        """Numbers in the KV cache for one token, which every layer keeps."""
        return 2 * self.layers * self.kv_heads * self.head

    def attended(self, past: float) -> float:
        """Tokens that a layer attends to behind `past` of them, as a mean over layers."""
        beyond = max(0.0, past - self.window)
        return past - beyond * self.windowed / self.layers

    def adapter(self, rank: int, targets: Sequence[str] = ("all-linear",), parts: int = 1) -> int:
        """Weights of one member, on one of `parts` GPUs of a tensor-parallel vLLM: the side of a
        layer that is cut is cut for the member too, the other is whole."""
        total = 0
        for name, (inputs, outputs) in self.linear.items():
            if "all-linear" in targets or name in targets:
                by_row = name in ("o_proj", "down_proj")
                total += inputs // parts + outputs if by_row else inputs + outputs // parts
        return self.layers * rank * total
