"""Bases of given shapes with random weights, for benchmarks without downloads."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, Qwen2Config

from azr_population.bases.nano import nano_base_path
from azr_population.engines.engine import Completion, TrainingSample
from azr_population.files import read_json

SHAPES: dict[str, dict[str, Any]] = {
    "small": {
        "vocab_size": 320, "hidden_size": 128, "intermediate_size": 384,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    },
    "0.5b": {
        "vocab_size": 151_936, "hidden_size": 896, "intermediate_size": 4864,
        "num_hidden_layers": 24, "num_attention_heads": 14, "num_key_value_heads": 2,
        "tie_word_embeddings": True,
    },
    "1.5b": {
        "vocab_size": 151_936, "hidden_size": 1536, "intermediate_size": 8960,
        "num_hidden_layers": 28, "num_attention_heads": 12, "num_key_value_heads": 2,
        "tie_word_embeddings": True,
    },
    "3b": {
        "vocab_size": 151_936, "hidden_size": 2048, "intermediate_size": 11_008,
        "num_hidden_layers": 36, "num_attention_heads": 16, "num_key_value_heads": 2,
        "tie_word_embeddings": True,
    },
    "7b": {
        "vocab_size": 152_064, "hidden_size": 3584, "intermediate_size": 18_944,
        "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4,
    },
    "14b": {
        "vocab_size": 152_064, "hidden_size": 5120, "intermediate_size": 13_824,
        "num_hidden_layers": 48, "num_attention_heads": 40, "num_key_value_heads": 8,
    },
}  # fmt: skip
"""Of Qwen2.5-Coder, and one that a CPU runs in seconds."""


NANO = read_json(nano_base_path() / "config.json")
LLAMAS: dict[str, dict[str, int]] = {
    "smollm2": {
        "vocab_size": 49_152, "hidden_size": 576, "intermediate_size": 1536,
        "num_hidden_layers": 30, "num_attention_heads": 9, "num_key_value_heads": 3,
    },
}  # fmt: skip
LLAMAS["nano"] = {name: NANO[name] for name in LLAMAS["smollm2"]}
"""Of SmolLM2-135M and of the nano base."""


def described(shape: str) -> Any:
    """The configuration of a base that ends no completion."""
    return Qwen2Config(
        **SHAPES[shape], max_position_embeddings=32_768, eos_token_id=None, bos_token_id=None,
        architectures=["Qwen2ForCausalLM"],
    )  # fmt: skip


def llama(shape: str, dtype: torch.dtype) -> LlamaForCausalLM:
    """A random model of one of the `LLAMAS`."""
    torch.manual_seed(0)
    config = LlamaConfig(**LLAMAS[shape], tie_word_embeddings=True, max_position_embeddings=2048)
    return LlamaForCausalLM(config).to(dtype).eval()


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


@contextmanager
def folder(model: Any) -> Iterator[str]:
    """A model, or its configuration alone, in a Hugging Face folder that vLLM can load; the
    tokenizer is not used."""
    from tokenizers import Tokenizer, models

    words = Tokenizer(models.WordLevel({"a": 0, "b": 1}, unk_token="a"))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, unk_token="a", eos_token="b")
    with tempfile.TemporaryDirectory() as path:
        model.save_pretrained(path)
        tokenizer.save_pretrained(path)
        yield path


def seeds(members: int = 8) -> list[torch.Generator]:
    return [torch.Generator().manual_seed(slot) for slot in range(members)]


def words(config: Any, rows: int, length: int) -> list[list[int]]:
    """Random token ids, the same at each call."""
    generator = torch.Generator().manual_seed(0)
    return torch.randint(0, config.vocab_size, (rows, length), generator=generator).tolist()


def sample(slot: int, ids: list[int], prompt: int, advantage: float) -> TrainingSample:
    """A row of an update: the first `prompt` ids and a completion, unlikely to its sampler."""
    answer = tuple(ids[prompt:])
    completion = Completion(slot, tuple(ids[:prompt]), answer, (-12.0,) * len(answer), False)
    return TrainingSample(completion, advantage)
