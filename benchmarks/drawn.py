"""Bases of given shapes with random weights, for benchmarks without downloads."""

from __future__ import annotations

from typing import Any

import torch
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen3Config

SHAPES: dict[str, dict[str, dict[str, int]]] = {
    "7b": {
        "base": {
            "vocab_size": 152_064, "hidden_size": 3584, "intermediate_size": 18_944,
            "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4,
        },
        "prime": {
            "vocab_size": 151_936, "hidden_size": 1024, "intermediate_size": 3072,
            "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8,
            "head_dim": 128,
        },
    },
    "small": {
        "base": {
            "vocab_size": 320, "hidden_size": 128, "intermediate_size": 384,
            "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        },
        "prime": {
            "vocab_size": 320, "hidden_size": 64, "intermediate_size": 128,
            "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
            "head_dim": 16,
        },
    },
}  # fmt: skip


def described(shape: str, name: str) -> Any:
    """The configuration of a base that ends no completion."""
    kind, architecture = (
        (Qwen2Config, "Qwen2ForCausalLM") if name == "base" else (Qwen3Config, "Qwen3ForCausalLM")
    )
    return kind(
        **SHAPES[shape][name], max_position_embeddings=32_768, eos_token_id=None,
        bos_token_id=None, architectures=[architecture], tie_word_embeddings=name == "prime",
    )  # fmt: skip


def drawn(config: Any, dtype: torch.dtype, device: str) -> Any:
    """A model with random weights, made on its device."""
    from transformers import AutoModelForCausalLM

    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    torch.manual_seed(0)
    try:
        with torch.device(device):
            return AutoModelForCausalLM.from_config(config).eval()
    finally:
        torch.set_default_dtype(before)


def tokenizer() -> PreTrainedTokenizerFast:
    """A tokenizer that vLLM can load; it is not used."""
    from tokenizers import Tokenizer, models

    words = Tokenizer(models.WordLevel({"a": 0, "b": 1}, unk_token="a"))
    return PreTrainedTokenizerFast(tokenizer_object=words, unk_token="a", eos_token="b")


def seeds(members: int = 8) -> list[torch.Generator]:
    return [torch.Generator().manual_seed(slot) for slot in range(members)]


def words(config: Any, rows: int, length: int) -> list[list[int]]:
    """Random token ids, the same at each call."""
    generator = torch.Generator().manual_seed(0)
    return torch.randint(0, config.vocab_size, (rows, length), generator=generator).tolist()
