"""Prompts computed once for all their completions, against once for each completion.

    python benchmarks/shared_prompts.py [--shape nano] [--prompts 48] [--prompt 24] [--tokens 8]
        [--completions 8] [--rounds 7] [--clock wall] [--json FILE]
    python benchmarks/shared_prompts.py --shape smollm2 --prompts 4 --prompt 400 --tokens 24

A random base, one member, one thread, float32. "sampling" writes completions of each prompt,
"update" trains on them. The two ways take turns; the result is the median over rounds of the ratio
of their seconds: 0.5 is half of the time. `--clock cpu` counts CPU seconds of this thread, for a
busy machine. `--json` appends to a list of results.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median

import torch
from decoding import CLOCKS, RANKS, SHAPES, make_model
from transformers import LlamaConfig

from azr_population.config.schema import LearnerConfig
from azr_population.engines.engine import Completion, Hyperparameters, Sampling, TrainingSample
from azr_population.engines.torch_learner import TorchLearner
from azr_population.engines.torch_rollout import TorchRollout, make_bank
from azr_population.versions import installed
from azr_population.weights.adapter import LoraSpec

WAYS = {"shared": True, "for each": False}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shape", choices=SHAPES, default="nano")
    parser.add_argument("--clock", choices=CLOCKS, default="wall")
    parser.add_argument("--json", type=Path)
    numbers = {"prompts": 48, "prompt": 24, "tokens": 8, "completions": 8, "rounds": 7}
    for name, default in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    runs_of = contenders(arguments)
    clock = CLOCKS[arguments.clock]
    seconds: dict[str, dict[str, list[float]]] = {
        what: {way: [] for way in WAYS} for what in ("sampling", "update")
    }
    for _ in range(arguments.rounds + 1):
        for way, runs in runs_of.items():
            for what, run in runs.items():
                start = clock()
                run()
                seconds[what][way].append(clock() - start)
    command = " ".join(["python benchmarks/shared_prompts.py", *sys.argv[1:]])
    result = {
        "command": command.split(" --json")[0],
        **{package: installed(package) for package in ("torch", "transformers")},
        # The first round warms up.
        **{
            what: ratio(times["shared"][1:], times["for each"][1:])
            for what, times in seconds.items()
        },
    }
    print(json.dumps(result, indent=2))
    if arguments.json:
        before = json.loads(arguments.json.read_text()) if arguments.json.exists() else []
        arguments.json.write_text(json.dumps([*before, result], indent=2) + "\n")


def contenders(arguments: argparse.Namespace) -> dict[str, dict[str, Callable[[], object]]]:
    """The timed functions of each way."""
    shape = {**SHAPES[arguments.shape], "tie_word_embeddings": True}
    model = make_model(LlamaConfig(**shape), torch.float32)
    rank = RANKS[arguments.shape]
    bank = make_bank(model, LoraSpec(rank=rank, alpha=2.0 * rank), [torch.Generator()])
    learners = {
        way: TorchLearner(model, bank, LearnerConfig(share_prefix=share))
        for way, share in WAYS.items()
    }
    rollouts = {
        way: TorchRollout(model, bank, frozenset(), share_prefix=share)
        for way, share in WAYS.items()
    }
    prompts = torch.randint(5, 300, (arguments.prompts, arguments.prompt)).tolist()
    sampling = Sampling(arguments.tokens, n=arguments.completions)

    def sample(way: str) -> list[list[Completion]]:
        return rollouts[way].generate(prompts, [0] * len(prompts), sampling, seed=1)

    rows = [
        TrainingSample(completion, 1.0 if place % 2 else -1.0)
        for group in sample("shared")
        for place, completion in enumerate(group)
    ]
    return {
        way: {
            "sampling": lambda way=way: sample(way),
            "update": lambda way=way: learners[way].update({0: rows}, {0: Hyperparameters(1e-6)}),
        }
        for way in WAYS
    }


def ratio(shared: list[float], for_each: list[float]) -> dict[str, object]:
    """Median, minimum and maximum ratio of the seconds over rounds."""
    ratios = sorted(round(ours / theirs, 3) for ours, theirs in zip(shared, for_each, strict=True))
    return {
        "ratio": median(ratios),
        "ratios": ratios,
        "median_seconds": [round(median(shared), 3), round(median(for_each), 3)],
    }


if __name__ == "__main__":
    main()
