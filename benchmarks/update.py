"""An update of 8 members against the same rows in one member: python benchmarks/update.py

    python benchmarks/update.py [--rows 48] [--tokens 48] [--rounds 7] [--clock wall] [--json FILE]

A random model of the nano base's shape; `rows` of each member, 16 tokens of prompt and `tokens`
completion. The two take turns; the result is the median over rounds of the ratio of their seconds:
1 means that routing and eight optimizers cost nothing.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from statistics import median

import torch
from decoding import CLOCKS, SHAPES, make_model
from transformers import LlamaConfig

from azr_population.engines.engine import Completion, Hyperparameters, TrainingSample
from azr_population.engines.torch_learner import TorchLearner
from azr_population.engines.torch_rollout import make_bank
from azr_population.versions import installed
from azr_population.weights.adapter import LoraSpec

MEMBERS, PROMPT = 8, 16


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("rows", 48), ("tokens", 48), ("rounds", 7)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--clock", choices=CLOCKS, default="wall")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    model = make_model(LlamaConfig(**SHAPES["nano"], tie_word_embeddings=True), torch.float32)
    seeds = [torch.Generator().manual_seed(slot) for slot in range(MEMBERS)]
    learner = TorchLearner(model, make_bank(model, LoraSpec(), seeds))
    each = {slot: samples(slot, arguments.rows, arguments.tokens) for slot in range(MEMBERS)}
    contenders = {
        "8 members": each,
        "one member": {0: [sample for rows in each.values() for sample in rows]},
    }
    clock = CLOCKS[arguments.clock]
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(arguments.rounds + 1):
        for name, rows in contenders.items():
            start = clock()
            learner.update(rows, dict.fromkeys(rows, Hyperparameters(1e-4)))
            seconds[name].append(clock() - start)
    # The first round warms up.
    eight, alone = (times[1:] for times in seconds.values())
    ratios = sorted(round(a / b, 3) for a, b in zip(eight, alone, strict=True))
    result = {
        "command": f"python benchmarks/update.py {' '.join(sys.argv[1:])}".split(" --json")[0],
        **{package: installed(package) for package in ("torch", "transformers")},
        "ratio": median(ratios),
        "ratios": ratios,
        "median_seconds": {name: round(median(times[1:]), 3) for name, times in seconds.items()},
    }
    print(json.dumps(result, indent=2))
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=2) + "\n")


def samples(slot: int, rows: int, tokens: int) -> list[TrainingSample]:
    """Random rows of one member."""
    generator = torch.Generator().manual_seed(slot)
    ids = torch.randint(0, 320, (rows, PROMPT + tokens), generator=generator).tolist()
    return [
        TrainingSample(
            Completion(slot, tuple(row[:PROMPT]), tuple(row[PROMPT:]), (-5.77,) * tokens, False),
            1.0 if place % 2 else -1.0,
        )
        for place, row in enumerate(ids)
    ]


if __name__ == "__main__":
    main()
