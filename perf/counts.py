"""What a decoding step and an update ask of a GPU, counted without one: python perf/counts.py

    python perf/counts.py [--shape 7b] [--rows 256] [--prompt 512] [--rank 32] [--members 0 1 8]

Tensors have shapes and no contents (`counted.py`), so bases of 7B take seconds. A decoding step is
counted for prompts of one length and of several: operators that launch a kernel, waits for the
device, gigabytes read and written. The floor is what cannot be left out: weights, cache and
members' factors read once. An update is one member's by a micro-batch of 8,160 tokens.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from typing import Any
from unittest.mock import patch

import torch
from counted import Counted, fake, real_tensors
from drawn import described, drawn, sample, seeds
from torch.utils._pytree import tree_leaves

from azr_population.config.schema import LearnerConfig
from azr_population.engines import decoding
from azr_population.engines.architecture import Architecture
from azr_population.engines.engine import Hyperparameters, Sampling
from azr_population.engines.torch_learner import TorchLearner
from azr_population.engines.torch_rollout import make_bank
from azr_population.weights.adapter import LoraSpec

SLOTS = 8
PRODUCTS = ("mm", "addmm", "bmm", "_scaled_dot_product")


class Launches(Counted):
    """Counts also operators that launch a kernel, and the bytes each reads and writes."""

    def __init__(self) -> None:
        super().__init__()
        self.launches: Counter[str] = Counter()
        self.bytes: Counter[str] = Counter()

    def _count(self, func: Any, packet: Any, args: Any, kwargs: Any, output: Any) -> None:
        super()._count(func, packet, args, kwargs, output)
        if self.moves_data(func):
            name = str(packet).removeprefix("aten.")
            self.launches[name] += 1
            tensors = [t for t in tree_leaves((args, kwargs, output)) if torch.is_tensor(t)]
            # What is broadcast or repeated in a view is read once.
            self.bytes[name] += sum(
                min(t.numel() * t.itemsize, t.untyped_storage().nbytes()) for t in tensors
            )


def drawn_tokens(logits: Any, *rest: Any) -> tuple[Any, Any]:
    """As `sample_tokens`, whose tokens have no contents: all 0."""
    _, chances = _sample_tokens(logits, *rest)
    with real_tensors():
        tokens = torch.zeros(len(logits), dtype=torch.long)
    return fake(tokens), chances


_sample_tokens = decoding.sample_tokens


def decode(model: Any, bank: Any, prompts: list[list[int]], slots: list[int], tokens: int) -> None:
    """Inside a `Counted`: these rows, which all get as many tokens."""
    uniforms = torch.zeros(len(prompts), tokens)
    # Not in inference mode, in which operators are seen before they are taken apart.
    with patch.object(decoding, "sample_tokens", drawn_tokens), torch.no_grad():
        decoding.decode.__wrapped__(  # type: ignore[attr-defined]
            model, bank, prompts, slots, Sampling(tokens), frozenset({1}), uniforms, False
        )


def step(
    config: Any, members: int, rows: int, prompt: int, several: bool, rank: int
) -> dict[str, Any]:
    """Of one decoding step: what a call of 4 tokens has more than one of 3."""
    counts = []
    for tokens in (3, 4):
        with Launches() as counted:
            model = drawn(config, torch.bfloat16, "cpu")
            bank = make_bank(model, LoraSpec(rank, 2.0 * rank), seeds(max(SLOTS, members)))
            slots = [row * members // rows for row in range(rows)] if members else [-1] * rows
            prompts = [[1] * (prompt - row % 7 * several) for row in range(rows)]
            counted.launches.clear(), counted.bytes.clear()
            decode(model, bank, prompts, slots, tokens)
        counts.append(counted)
    less, more = counts
    moved = more.bytes - less.bytes
    return {
        "members": members,
        "lengths": "several" if several else "one",
        "launches": (more.launches - less.launches).total(),
        "GB": round(moved.total() / 1e9, 2),
        "floor GB": round(floor(config, members, rows, prompt, rank) / 1e9, 2),
        "most GB": {name: round(size / 1e9, 2) for name, size in moved.most_common(4)},
    }


def floor(config: Any, members: int, rows: int, prompt: int, rank: int) -> float:
    """Bytes in bfloat16 of the weights (not the embeddings), the cache and the factors."""
    a = Architecture.of(config)
    assert a is not None
    weights = a.layers * a.block + a.vocabulary * a.hidden
    return 2.0 * (weights + rows * prompt * a.cache + members * a.adapter(rank))


def update(config: Any, rank: int, kept: str) -> dict[str, Any]:
    """Of an update of one member by one micro-batch of 16 rows of 510 tokens. `kept` are layers'
    "inputs", or also their "products"."""
    with Launches() as counted:
        model = drawn(config, torch.bfloat16, "cpu")
        bank = make_bank(model, LoraSpec(rank, 2.0 * rank), seeds(SLOTS))
        settings = LearnerConfig(
            gradient_checkpointing=True,
            recompute_above_tokens=8192 if kept == "products" else 0,
            lora_dtype="bfloat16",
            micro_batch_tokens=8192,
            share_prefix=False,
        )
        learner = TorchLearner(model, bank, settings)
        rows = [sample(0, [1] * 510, 446, 1.0)] * 16
        counted.launches.clear(), counted.bytes.clear()
        sums = counted.of(lambda: learner.update({0: rows}, {0: Hyperparameters(1e-5)}))
    beside = sum(size for name, size in counted.bytes.items() if not name.startswith(PRODUCTS))
    return {
        "update, kept": kept,
        "launches": counted.launches.total(),
        "GB beside products": round(beside / 1e9, 1),
        "TFLOP": round(sums["flops"] / 1e12, 1),
        "peak GB": round(sums["peak"] / 1e9, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shape", default="7b")
    parser.add_argument("--members", nargs="+", type=int, default=[0, 1, 2, 4, 8, 16])
    for name, default in {"rank": 32, "rows": 256, "prompt": 512}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    asked = parser.parse_args()
    config = described(asked.shape)
    for several in (False, True):
        for members in asked.members:
            figures = step(config, members, asked.rows, asked.prompt, several, asked.rank)
            print(json.dumps(figures), flush=True)
    for kept in ("inputs", "products"):
        print(json.dumps(update(config, asked.rank, kept)), flush=True)


if __name__ == "__main__":
    main()
