"""What a step of 4T+4S asks of GPUs beside the single agent's: python perf/scale.py

    python perf/scale.py [--prompt 1500] [--response 1000] [--count] [--json FILE]

No GPU. Seconds of AZR's own commands for Qwen2.5-Coder and of the examples for 24 GB, as the dry
run estimates them (`engines/throughput.py`): with nine calls of the sampler a step, as AZR's loop
makes them, with two, and with two and programs executed while others are written. `--count` also
runs this package's own learner at 7B's shapes on tensors without contents (`counted.py`), at two
depths, from which 28 layers follow, and holds the products and bytes of an update against the
estimate.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from counted import Counted
from drawn import SHAPES, sample
from transformers import Qwen2Config, Qwen2ForCausalLM

from azr_population.config.schema import LearnerConfig
from azr_population.engines import throughput
from azr_population.engines.engine import Hyperparameters
from azr_population.engines.memory import Architecture, Load, check_memory, kept_tokens
from azr_population.engines.throughput import DEVICES, Work, single, step_seconds
from azr_population.engines.torch_learner import TorchLearner
from azr_population.hosts.azr.fitting import find_fit
from azr_population.weights.adapter import LoraSpec
from azr_population.weights.bank import Bank

RANK, KINDS, SAMPLES, VALID, MEMBERS = 32, 3, 8, 2 / 3, 8
PROMPT, RESPONSE = 6144, 8096
"""The most tokens that AZR's commands allow."""
PIECES = 8
"""Of a counted update; the optimizer's step is of one in so many."""


@dataclass(frozen=True)
class Command:
    """A script: what of it matters for memory and time. AZR's are asked on 8 GPUs, with the
    tensor parallelism that they have, their share and `max_num_seqs`."""

    shape: str
    device: str = "H100"
    gpus: int = 8
    parallel: int = 2
    batch: int = 64
    options: tuple[tuple[str, Any], ...] = ()


_24GB = (("share", 0.9), ("sequences", 256), ("batched_tokens", 8192), ("offload", True))
COMMANDS = {
    "coder3b": Command("3b"),
    "coder7b": Command("7b"),
    "coder14b": Command("14b", parallel=4),
    "azr_coder3b_24gb": Command("3b", "4090", 1, 1, 8, _24GB),
    "azr_coder7b_24gb": Command("7b", "4090", 1, 1, 8, (*_24GB, ("nf4", True))),
}
CALLS = {
    "nine calls": {"merged": False, "overlapped": False},
    "two calls": {"merged": True, "overlapped": False},
    "two, overlapped": {"merged": True, "overlapped": True},
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--prompt", type=int, default=1500)
    parser.add_argument("--response", type=int, default=1000)
    parser.add_argument("--count", action="store_true")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    result: dict[str, Any] = {
        "arguments": {key: value for key, value in vars(arguments).items() if key != "json"},
        "steps": [],
    }
    for name, command in COMMANDS.items():
        result["steps"] += list(estimates(name, command, arguments))
    if arguments.count:
        load = load_of(COMMANDS["coder7b"])
        result["update"] = counted_update(load, DEVICES["H100"], arguments)
        print("seconds of an update's row, counted and estimated:", json.dumps(result["update"]))
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1) + "\n")


def estimates(name: str, command: Command, a: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Seconds of a step by phase, and how many single agents' they are, printed and returned."""
    device, load = DEVICES[command.device], load_of(command)
    total = throughput.gpu_bytes(device)
    rows = command.batch * MEMBERS
    work = Work(
        KINDS, rows, round(rows * SAMPLES * VALID), rows, SAMPLES, a.prompt, a.response, RESPONSE
    )
    print(
        f"\n{name}: {command.gpus} x {device.name}, tensor parallelism of {command.parallel}, "
        f"{rows:,} proposals of a type; seconds a step, and how often the single agent's"
    )
    for tail, longest in (("short", 3 * a.response), ("long", RESPONSE)):
        for calls, how in CALLS.items():
            asked = replace(work, longest=longest, **how)
            parts = step_seconds(load, asked, total, device)
            alone = sum(step_seconds(*single(load, asked, MEMBERS), total, device).values())
            whole = sum(parts.values())
            listed = ", ".join(f"{phase} {value:.0f}" for phase, value in parts.items())
            print(f"  {tail:<6}{calls:<18}{whole:>8.0f}{whole / alone:>7.2f}   {listed}")
            yield {
                "command": name,
                "tail": tail,
                "calls": calls,
                "seconds": {phase: round(value, 1) for phase, value in parts.items()},
                "in all": round(whole, 1),
                "to single": round(whole / alone, 2),
            }


def load_of(command: Command) -> Load:
    """What each GPU of the command holds. Raises AssertionError: it does not fit."""
    architecture = Architecture.of(Qwen2Config(**SHAPES[command.shape]))
    assert architecture is not None
    load = Load(
        architecture,
        MEMBERS,
        RANK,
        PROMPT,
        RESPONSE,
        products=2,
        ranks=command.gpus,
        parallel=command.parallel,
        **dict(command.options),
    )
    total = throughput.gpu_bytes(DEVICES[command.device])
    load = find_fit(load, total, ["shard"]) or load
    assert check_memory(load, total) is None, check_memory(load, total)
    return replace(load, keep=kept_tokens(load, total))


def counted_update(
    load: Load, device: throughput.Device, a: argparse.Namespace
) -> dict[str, float]:
    """Seconds of one row of an update: products at their speed and bytes between products, as the
    learner's own code asks for them, and by the formula."""
    shallow, deep = (counted(layers, load.keep, a) for layers in (1, 3))
    flops, beside = (
        one + (other - one) * (SHAPES["7b"]["num_hidden_layers"] - 1) / 2
        for one, other in zip(shallow, deep, strict=True)
    )
    one_member = replace(load, slots=1)
    estimated = throughput.update_seconds(one_member, PIECES, a.prompt, a.response, device)
    return {
        "counted": (flops / device.computed + beside / device.read) / PIECES,
        "estimated": estimated / PIECES,
    }


def counted(layers: int, keep: int, a: argparse.Namespace) -> tuple[float, float]:
    """(products and sums, bytes of operators that multiply no matrices) of an update."""
    row = sample(0, [1] * (a.prompt + a.response), a.prompt, 1.0)
    with Counted() as counting:
        torch.set_default_dtype(torch.bfloat16)
        model = Qwen2ForCausalLM(Qwen2Config(**SHAPES["7b"] | {"num_hidden_layers": layers})).eval()
        torch.set_default_dtype(torch.float32)
        settings = LearnerConfig(
            lora_dtype="bfloat16", gradient_checkpointing=True, recompute_above_tokens=keep
        )
        learner = TorchLearner(model, Bank(model, LoraSpec(RANK, 64.0), 1), settings, parallel=True)
        learner.update({0: [row]}, {0: Hyperparameters(1e-5)})
        found = counting.of(lambda: learner.update({0: [row] * PIECES}, {0: Hyperparameters(1e-5)}))
    return found["flops"], found["beside"]


if __name__ == "__main__":
    main()
