"""Estimates a step of 4T+4S and of the single agent on GPUs: python benchmarks/scale.py

    python benchmarks/scale.py [--gpu H100] [--gpus 8] [--parallel 2] [--prompt 1500]
        [--response 1000] [--limit 8096] [--batch 64] [--count] [--json FILE]

Needs no GPU. Seconds by phase for Qwen2.5-Coder-7B, as the dry run estimates them
(`engines/throughput.py`), with AZR's own tensor parallelism of 2. `--count` also runs this
package's own learner at those shapes on tensors without contents (`counted.py`), at two depths,
extrapolates to 28 layers, and compares the products and bytes of an update with the estimate.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from counted import Counted
from transformers import Qwen2Config, Qwen2ForCausalLM

from azr_population.config.schema import LearnerConfig
from azr_population.engines import throughput
from azr_population.engines.engine import Completion, Hyperparameters, TrainingSample
from azr_population.engines.memory import Architecture, Load, kept_tokens
from azr_population.engines.throughput import DEVICES, Rows, Work, single, step_seconds
from azr_population.engines.torch_learner import TorchLearner
from azr_population.weights.adapter import LoraSpec
from azr_population.weights.bank import Bank

SIZES = {
    "vocab_size": 152_064, "hidden_size": 3584, "intermediate_size": 18_944,
    "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4,
}  # fmt: skip
RANK, KINDS, SAMPLES, VALID, MEMBERS = 32, 3, 8, 2 / 3, 8
PIECES = 8
"""Of a counted update; the optimizer's step is of one in so many."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--gpu", choices=DEVICES, default="H100")
    numbers = {"gpus": 8, "parallel": 2, "prompt": 1500, "response": 1000, "limit": 8096,
               "batch": 64}  # fmt: skip
    for name, default in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--count", action="store_true")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    device = DEVICES[arguments.gpu]
    total = throughput.gpu_bytes(device)
    load = load_of(arguments)
    load = replace(load, keep=kept_tokens(load, total))
    rows = 2 * arguments.batch * MEMBERS // 2
    valid = round(rows * SAMPLES * VALID)
    work = Work(
        KINDS, rows, valid, rows, SAMPLES, arguments.prompt, arguments.response, arguments.limit
    )
    result: dict[str, Any] = {
        "arguments": {key: value for key, value in vars(arguments).items() if key != "json"},
        "kept tokens": load.keep,
        "steps": {},
    }
    for tail, longest in (("short", 3 * arguments.response), ("long", arguments.limit)):
        both = {"4T+4S": (load, work), "single": single(load, work, MEMBERS)}
        table = {
            name: step_seconds(
                its, replace(asked, longest=min(longest, work.longest)), total, device
            )
            for name, (its, asked) in both.items()
        }
        sums = {name: sum(parts.values()) for name, parts in table.items()}
        result["steps"][tail] = {
            "seconds": {
                name: {phase: round(value, 1) for phase, value in parts.items()}
                | {"in all": sums[name]}
                for name, parts in table.items()
            },
            "to single": round(sums["4T+4S"] / sums["single"], 2),
        }
        show(tail, result["steps"][tail])
    if arguments.count:
        result["update"] = counted_update(load, device, arguments)
        print("seconds of an update's row, counted and estimated:", json.dumps(result["update"]))
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1) + "\n")


def load_of(a: argparse.Namespace) -> Load:
    architecture = Architecture.of(Qwen2Config(**SIZES))
    assert architecture is not None
    return Load(
        architecture, MEMBERS, RANK, 6144, a.limit, products=2, ranks=a.gpus, parallel=a.parallel
    )


def counted_update(
    load: Load, device: throughput.Device, a: argparse.Namespace
) -> dict[str, float]:
    """Seconds of one row of an update: products at their speed and bytes between products, as the
    learner's own code asks for them, and by the formula."""
    shallow, deep = (counted(layers, load.keep, a) for layers in (1, 3))
    flops, beside = (
        shallow_cost + (other - shallow_cost) * (SIZES["num_hidden_layers"] - 1) / 2
        for shallow_cost, other in zip(shallow, deep, strict=True)
    )
    one_member = replace(load, slots=1)
    rows = Rows(PIECES, a.prompt, a.response, 0)
    return {
        "counted": (flops / device.computed + beside / device.read) / PIECES,
        "estimated": throughput.update_seconds(one_member, rows, device) / PIECES,
    }


def counted(layers: int, keep: int, a: argparse.Namespace) -> tuple[float, float]:
    """(products and sums, bytes of operators that multiply no matrices) of an update."""
    prompt, answer = (1,) * a.prompt, (1,) * a.response
    sample = TrainingSample(Completion(0, prompt, answer, (0.0,) * len(answer), True), 1.0)
    with Counted() as counting:
        torch.set_default_dtype(torch.bfloat16)
        model = Qwen2ForCausalLM(Qwen2Config(**SIZES | {"num_hidden_layers": layers})).eval()
        torch.set_default_dtype(torch.float32)
        settings = LearnerConfig(
            lora_dtype="bfloat16", gradient_checkpointing=True, recompute_above_tokens=keep
        )
        learner = TorchLearner(model, Bank(model, LoraSpec(RANK, 64.0), 1), settings, parallel=True)
        learner.update({0: [sample]}, {0: Hyperparameters(1e-5)})
        totals = counting.of(
            lambda: learner.update({0: [sample] * PIECES}, {0: Hyperparameters(1e-5)})
        )
    return totals["flops"], totals["beside"]


def show(tail: str, step: dict[str, Any]) -> None:
    names = list(step["seconds"]["single"])
    print(f"\nseconds a step, answers {tail}")
    print("".join(f"{cell:>12}" for cell in ["", *names]))
    for name, parts in step["seconds"].items():
        print("".join(f"{cell:>12}" for cell in [name, *(f"{parts[part]:.1f}" for part in names)]))
    print(f"4T+4S to single: {step['to single']}")


if __name__ == "__main__":
    main()
