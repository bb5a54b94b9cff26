"""Sampling with 8 LoRA members in the batch, against transformers' `generate` of the bare base.

    python benchmarks/decoding.py [--shape smollm2] [--dtype bfloat16] [--rows 32] [--prompt 64]
        [--tokens 32] [--members 8] [--threads 1] [--rounds 7] [--clock wall] [--json FILE]

A random model of SmolLM2's or of the nano base's shape samples and never stops. `generate` runs the
base without adapters, which is less work. "prompts only" samples one token. The contenders take
turns within a round; the result is the median over rounds of their ratios: above 1, ours is
faster. `--clock cpu` counts CPU seconds of this thread, for a busy machine. `--json` appends to a
list of results.
"""

from __future__ import annotations

import argparse
import copy
import json
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import torch
from transformers import LlamaConfig, LlamaForCausalLM, PretrainedConfig

from azr_population.engines.decoding import decode
from azr_population.engines.engine import Sampling
from azr_population.engines.torch_rollout import make_bank
from azr_population.versions import installed
from azr_population.weights.adapter import LoraSpec

SHAPES = {
    "smollm2": {
        "vocab_size": 49_152, "hidden_size": 576, "intermediate_size": 1536,
        "num_hidden_layers": 30, "num_attention_heads": 9, "num_key_value_heads": 3,
    },
    "nano": {
        "vocab_size": 320, "hidden_size": 128, "intermediate_size": 384,
        "num_hidden_layers": 5, "num_attention_heads": 4, "num_key_value_heads": 4,
    },
}  # fmt: skip
RANKS = {"smollm2": 16, "nano": 8}
CLOCKS = {"wall": time.perf_counter, "cpu": time.thread_time}

Run = Callable[[], object]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shape", choices=SHAPES, default="smollm2")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="bfloat16")
    parser.add_argument("--clock", choices=CLOCKS, default="wall")
    parser.add_argument("--json", type=Path)
    numbers = {"rows": 32, "prompt": 64, "tokens": 32, "members": 8, "threads": 1, "rounds": 7}
    for name, default in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    contenders = make_contenders(arguments)
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(arguments.rounds + 1):
        for name, run in contenders.items():
            start = CLOCKS[arguments.clock]()
            run()
            seconds[name].append(CLOCKS[arguments.clock]() - start)
    # The first round warms up.
    seconds = {name: times[1:] for name, times in seconds.items()}
    result = {
        "command": f"python benchmarks/decoding.py {' '.join(sys.argv[1:])}".split(" --json")[0],
        "python": platform.python_version(),
        **{package: installed(package) for package in ("torch", "transformers")},
        "ratio": ratio(seconds, ""),
        "ratio_prompts_only": ratio(seconds, ", prompts only"),
        "median_seconds": {name: round(median(times), 3) for name, times in seconds.items()},
    }
    print(json.dumps(result, indent=2))
    if arguments.json:
        before = json.loads(arguments.json.read_text()) if arguments.json.exists() else []
        arguments.json.write_text(json.dumps([*before, result], indent=2) + "\n")


def ratio(seconds: dict[str, list[float]], what: str) -> list[float]:
    """Median, minimum and maximum over rounds of generate's seconds divided by ours."""
    pairs = zip(seconds[f"generate{what}"], seconds[f"ours{what}"], strict=True)
    ratios = [theirs / ours for theirs, ours in pairs]
    return [round(each, 2) for each in (median(ratios), min(ratios), max(ratios))]


def make_contenders(arguments: argparse.Namespace) -> dict[str, Run]:
    """The contenders by name."""
    rows, members, tokens = arguments.rows, arguments.members, arguments.tokens
    config = LlamaConfig(
        **SHAPES[arguments.shape], tie_word_embeddings=True, max_position_embeddings=8192
    )
    dtype = getattr(torch, arguments.dtype)
    bare, served = make_model(config, dtype), make_model(config, dtype)
    seeds = [torch.Generator().manual_seed(slot) for slot in range(members)]
    bank = make_bank(served, LoraSpec(rank=RANKS[arguments.shape], alpha=16.0), seeds)
    slots = [row * members // rows for row in range(rows)]
    generator = torch.Generator().manual_seed(0)
    prompts = torch.randint(0, config.vocab_size, (rows, arguments.prompt), generator=generator)
    listed = prompts.tolist()
    uniforms = torch.rand(rows, tokens, generator=generator)

    def ours(count: int) -> Run:
        limits, sampling = [count] * rows, Sampling(count)
        return lambda: decode(served, bank, listed, slots, limits, sampling, frozenset(), uniforms)

    def generate(count: int) -> Run:
        return lambda: bare.generate(
            prompts,
            attention_mask=torch.ones_like(prompts),
            do_sample=True,
            top_k=0,
            max_new_tokens=count,
            min_new_tokens=count,
            pad_token_id=0,
        )

    return {
        "ours": ours(tokens),
        "generate": generate(tokens),
        "ours, prompts only": ours(1),
        "generate, prompts only": generate(1),
    }


def make_model(config: PretrainedConfig, dtype: torch.dtype) -> LlamaForCausalLM:
    """A random model with a copy of the configuration, because making a bank changes it."""
    torch.manual_seed(0)
    return LlamaForCausalLM(copy.deepcopy(config)).to(dtype).eval()


if __name__ == "__main__":
    main()
