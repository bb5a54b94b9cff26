"""Tokens per second of sampling: ours, ours on transformers' cache and attention, and `generate`.

    python benchmarks/decoding.py [--rows 192] [--tokens 100] [--threads 1] [--rounds 5]

A random model of the nano base's shape samples from one-token prompts without ever stopping. Ours
serves 8 LoRA members in the batch; `generate` runs the bare base, which is less work. The variants
take turns within a round; what counts is the ratio of medians.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable

import torch
import transformers
from transformers import DynamicCache, Qwen2Config, Qwen2ForCausalLM

from azr_population.adapters.adapter import LoraSpec
from azr_population.adapters.bank import Bank
from azr_population.engines import kv_cache
from azr_population.engines.attention import use_strided_attention
from azr_population.engines.decoding import decode
from azr_population.engines.engine import Sampling

MEMBERS = 8


def main() -> None:
    parser = argparse.ArgumentParser()
    for name, default in (("rows", 192), ("tokens", 100), ("threads", 1), ("rounds", 5)):
        parser.add_argument(f"--{name}", type=int, default=default)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    variants = make_variants(arguments.rows, arguments.tokens)
    seconds: dict[str, list[float]] = {name: [] for name in variants}
    for _ in range(arguments.rounds + 1):
        for name, run in variants.items():
            start = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - start)
    # The first round warms up.
    medians = {name: statistics.median(times[1:]) for name, times in seconds.items()}
    total = arguments.rows * arguments.tokens
    print(
        json.dumps(
            {
                "torch": torch.__version__,
                "transformers": transformers.__version__,
                **vars(arguments),
                "tokens_per_second": {n: round(total / s) for n, s in medians.items()},
                "ratio_to_ours": {n: round(s / medians["ours"], 2) for n, s in medians.items()},
            },
            indent=2,
        )
    )


def make_variants(rows: int, tokens: int) -> dict[str, Callable[[], object]]:
    """The runs to compare, by name; each samples rows x tokens tokens."""
    members = [row * MEMBERS // rows for row in range(rows)]
    prompts = [[1]] * rows
    sampling = Sampling(tokens)
    uniforms = torch.rand(len(prompts), tokens, generator=torch.Generator().manual_seed(0))
    bare = make_model()
    plain, strided = make_model(), make_model()
    use_strided_attention(strided)
    banks = {id(model): make_bank(model) for model in (plain, strided)}

    def sample(model: Qwen2ForCausalLM) -> object:
        bank = banks[id(model)]
        return decode(
            model, bank, prompts, members, [tokens] * len(prompts), sampling, frozenset(), uniforms
        )

    def with_dynamic_cache() -> object:
        ours = kv_cache.GrowingCache
        kv_cache.GrowingCache = lambda room: DynamicCache()  # type: ignore[assignment,misc]
        try:
            return sample(plain)
        finally:
            kv_cache.GrowingCache = ours  # type: ignore[misc]

    def generate() -> object:
        return bare.generate(
            torch.tensor(prompts),
            attention_mask=torch.ones(rows, 1, dtype=torch.long),
            do_sample=True,
            max_new_tokens=tokens,
            min_new_tokens=tokens,
            pad_token_id=0,
        )

    return {
        "ours": lambda: sample(strided),
        "ours, transformers' attention": lambda: sample(plain),
        "ours, transformers' cache and attention": with_dynamic_cache,
        "transformers' generate, base without adapters": generate,
    }


def make_model() -> Qwen2ForCausalLM:
    """A random model of the nano base's shape that never ends a text."""
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=320,
        hidden_size=128,
        intermediate_size=384,
        num_hidden_layers=5,
        num_attention_heads=4,
        num_key_value_heads=4,
        tie_word_embeddings=True,
        max_position_embeddings=512,
    )
    return Qwen2ForCausalLM(config).eval()


def make_bank(model: Qwen2ForCausalLM) -> Bank:
    """Eight members of rank 8 on every linear layer."""
    bank = Bank(model, LoraSpec(rank=8, alpha=16.0), MEMBERS)
    generator = torch.Generator().manual_seed(0)
    for slot in range(MEMBERS):
        bank.init_member(slot, generator)
    return bank


if __name__ == "__main__":
    main()
