"""What a step of 4T+4S asks of GPUs beside the single agent's: python benchmarks/scale.py

    python benchmarks/scale.py [--flops 989] [--float32 67] [--bandwidth 3.35] [--gpus 8]
        [--prompt 1500] [--response 1000] [--limit 8096] [--batch 64] [--json FILE]

No GPU. Products, calls, and the bytes of what lies between products are counted while this
package's own learner runs at Qwen2.5-Coder-7B's shapes on tensors without contents (`counted.py`),
at two depths, from which 28 layers follow. Sampling, which is vLLM's, follows `engines/pace.py`.
`--flops` and `--float32` are the GPU's peak in TFLOPS for products in bfloat16 and in float32,
`--bandwidth` is in TB/s; of both the shares of `pace.Device` are reached. "before" multiplies
adapters in float32, runs all layers twice in an update, scores every row although importance
weights need no scores, spreads a prompt's copies over the GPUs, seeds each request, pushes through
the CPU, and executes programs one by one.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

import torch
from counted import Counted
from transformers import Qwen2Config, Qwen2ForCausalLM

from azr_population.config.schema import LearnerConfig
from azr_population.engines import costs, pace
from azr_population.engines.attention import use_strided_attention
from azr_population.engines.costs import Architecture, Load
from azr_population.engines.data_parallel import DataParallelLearner
from azr_population.engines.engine import Completion, Sample
from azr_population.weights.adapter import LoraSpec
from azr_population.weights.bank import Bank

SIZES = {
    "vocab_size": 152_064, "hidden_size": 3584, "intermediate_size": 18_944,
    "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4,
}  # fmt: skip
RANK, PIECE, KINDS, SAMPLES, VALID, CARD = 32, 8192, 3, 8, 2 / 3, 84.9e9
LAUNCH = 4e-6
"""Seconds of a call that computes nothing, on the GPU's side of the queue."""
PUSH = {"before": 5.8, "after": 0.02}
"""Seconds a member: measured through the CPU; from GPU to GPU 323 MB and 392 copies."""
SEEDED = 2.5e-3
"""Seconds of a decoding step for seeds by request, between the 1 and 4 that were estimated."""
EXECUTION, LOOPS, LIMIT, CORES = 1 / 1500, 0.001, 10.0, 32
"""Seconds of one of AZR's executions, the share of endless loops, their limit, processes."""
CHECKS, ANSWERS, BATCHES = 12, 6, 7
"""Executions of a proposal of each type (code_f has ten inputs), of an answer to each (code_i one,
code_f five), and how many batches they are: three checks, two estimates, two of answers."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    numbers = {"flops": 989.0, "float32": 67.0, "bandwidth": 3.35, "gpus": 8, "prompt": 1500,
               "response": 1000, "limit": 8096, "batch": 64}  # fmt: skip
    for name, default in numbers.items():
        parser.add_argument(f"--{name}", type=type(default), default=default)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    row = arguments.prompt + arguments.response
    # As many tokens as keep their activations beside eight members; the single agent has as many.
    keep = costs.kept_tokens(_load("4T+4S", arguments), CARD)
    rows = {"before": max(1, PIECE // row), "after": max(1, (keep or PIECE) // row)}
    counts = {
        "before": counted_learner("float32", rows["before"], 0, arguments),
        "after": counted_learner("bfloat16", rows["after"], keep, arguments),
    }
    result: dict[str, Any] = {
        "arguments": {key: value for key, value in vars(arguments).items() if key != "json"},
        "piece": {"rows": rows, "kept tokens": keep, **counts},
        "steps": {},
    }
    for tail in ("short", "long"):
        table = {
            f"{arm} {when}": seconds(arm, when, tail, counts[when], rows[when], arguments)
            for when in ("before", "after")
            for arm in ("single", "4T+4S")
        }
        ratios = {
            when: round(
                sum(table[f"4T+4S {when}"].values()) / sum(table[f"single {when}"].values()), 2
            )
            for when in ("before", "after")
        }
        result["steps"][tail] = {"seconds": table, "ratio": ratios}
        show(tail, table, ratios)
    for when, count in counts.items():
        for phase, figures in count.items():
            print(f"{when} {phase} of {rows[when]} rows:", json.dumps(figures))
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1) + "\n")


def counted_learner(
    products: str, rows: int, keep: int, arguments: argparse.Namespace
) -> dict[str, Any]:
    """Products by dtype, bytes and calls of a piece of `rows` rows at 28 layers, by phase."""
    shallow, deep = (_counted(layers, products, rows, keep, arguments) for layers in (1, 3))
    layers = SIZES["num_hidden_layers"]

    def grown(one: Any, other: Any) -> Any:
        return one + (other - one) * (layers - 1) // 2

    return {
        phase: {
            "flops": {
                dtype: grown(shallow[phase]["flops"].get(dtype, 0), flops)
                for dtype, flops in deep[phase]["flops"].items()
            },
            **{
                name: grown(shallow[phase][name], deep[phase][name])
                for name in ("moved", "beside", "calls")
            },
        }
        for phase in deep
    }


def _counted(
    layers: int, products: str, rows: int, keep: int, arguments: argparse.Namespace
) -> dict[str, dict[str, Any]]:
    prompt, answer = (1,) * arguments.prompt, (1,) * arguments.response
    sample = Sample(Completion(0, prompt, answer, (0.0,) * len(answer), True), 1.0)
    told: dict[str, dict[str, Any]] = {}
    with Counted() as counted:
        torch.set_default_dtype(torch.bfloat16)
        model = Qwen2ForCausalLM(Qwen2Config(**SIZES | {"num_hidden_layers": layers})).eval()
        torch.set_default_dtype(torch.float32)
        use_strided_attention(model)
        settings = LearnerConfig(
            products=products,
            gradient_checkpointing=True,
            micro_batch_tokens=PIECE,
            keep_tokens=keep,
        )
        learner = DataParallelLearner(model, Bank(model, LoraSpec(RANK, 64.0), 1), settings)
        # As many as make pieces of PIECE tokens; the optimizer's step is of one in so many.
        pieces = 8
        runs = {
            "score": lambda: learner.log_probs([prompt] * rows, [answer] * rows, [0] * rows),
            "update": lambda: learner.update({0: [sample] * rows * pieces}, {0: 1e-5}),
        }
        learner.update({0: [sample]}, {0: 1e-5})
        for phase, run in runs.items():
            each = pieces if phase == "update" else 1
            counted.by_dtype = Counter()
            found = counted.of(run)
            told[phase] = {
                "flops": {dtype: flops // each for dtype, flops in counted.by_dtype.items()},
                **{name: found[name] // each for name in ("moved", "beside", "calls")},
            }
    return told


def seconds(
    arm: str, when: str, tail: str, counts: dict[str, Any], rows: int, a: argparse.Namespace
) -> dict[str, float]:
    """Of a step by phase on `a.gpus` GPUs, each with a whole vLLM."""
    load = _load(arm, a)
    members = load.slots
    device = pace.Device(
        flops=a.flops * 1e12,
        bandwidth=a.bandwidth * 1e12,
        overhead=pace.Device.overhead + (SEEDED if when == "before" else 0.0),
    )
    cache = costs.cache_tokens(load, CARD)
    share = members / a.gpus
    proposals, solved = a.batch * share, a.batch * share
    longest = a.limit if tail == "long" else min(a.limit, 3 * a.response)
    told = {}
    for phase, count, copies in (
        ("propose", proposals, 1),
        ("estimate", proposals * VALID * SAMPLES, 1 if when == "before" else SAMPLES),
        ("solve", solved, 1),
    ):
        sampled = pace.Rows(round(count), a.prompt, a.response, longest, copies)
        told[phase] = KINDS * pace.generate_seconds(load, sampled, cache, device)
    pieces = KINDS * (proposals + solved) / rows
    told["score"] = pieces * piece_seconds(counts["score"], device, a) if when == "before" else 0.0
    told["update"] = pieces * piece_seconds(counts["update"], device, a)
    told["push"] = members * PUSH[when]
    executed = a.batch * members * (CHECKS + ANSWERS * (VALID * SAMPLES + 1))
    one_by_one = executed * (EXECUTION + LOOPS * LIMIT)
    # A batch waits for its loops, if it has any, as many at once as there are processes.
    loops = executed * LOOPS / BATCHES
    ahead = executed * EXECUTION / CORES + BATCHES * LIMIT * min(1.0, loops) * max(
        1, loops // CORES
    )
    told["execute"] = one_by_one if when == "before" else min(one_by_one, ahead)
    return {phase: round(value, 1) for phase, value in told.items()}


def _load(arm: str, a: argparse.Namespace) -> Load:
    architecture = Architecture.of(Qwen2Config(**SIZES))
    assert architecture is not None
    members = 1 if arm == "single" else 8
    return Load(architecture, members, RANK, 6144, a.limit, products=2, ranks=a.gpus)


def piece_seconds(count: dict[str, Any], device: pace.Device, a: argparse.Namespace) -> float:
    """Products at their dtypes' speed, the bytes of what lies between them, and each call's
    launch."""
    peaks = {"bfloat16": a.flops * 1e12, "float32": a.float32 * 1e12, "float64": a.float32 * 5e11}
    products = sum(flops / peaks[dtype] for dtype, flops in count["flops"].items())
    between = count["beside"] / (device.bandwidth * device.reading)
    return products / device.computing + between + count["calls"] * LAUNCH


def show(tail: str, table: dict[str, dict[str, float]], ratios: dict[str, float]) -> None:
    names = list(next(iter(table.values())))
    print(f"\nseconds a step, answers {tail}")
    print("".join(f"{cell:>15}" for cell in ["", *names, "in all"]))
    for row, parts in table.items():
        cells = [*(f"{parts[name]:.1f}" for name in names), f"{sum(parts.values()):.0f}"]
        print("".join(f"{cell:>15}" for cell in [row, *cells]))
    print(f"4T+4S : single  before {ratios['before']}, after {ratios['after']}")


if __name__ == "__main__":
    main()
