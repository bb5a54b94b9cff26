"""Evolution operators at 7B shapes, beside populora's: python perf/operators.py

    python perf/operators.py [--layers 28] [--rank 32] [--repeats 5] [--threads 1]
        [--clock cpu] [--device cpu] [--json FILE] [--count]

Every operator makes a child from random members at Qwen2.5-Coder-7B's shapes (28 layers, 7 linear
layers each: 81M parameters at rank 32), in turns with the PyPI package `populora` (0.4.5, when it
can be imported) and with a copy of a member, the lower bound. populora's
mutations change a member in place, ours make a new one; its X1 and X4 act on A and B apart, with
cross terms. `--clock cpu` counts processor seconds, for a busy machine. `--count` prints what a
child asks of a GPU, counted without one: launches, copies, waits, gigabytes read and written.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any

import torch
from pretended import DEVICE, PretendedGpu
from torch import Tensor

from azr_population.versions import installed
from azr_population.weights.adapter import Adapter, Factors, LoraSpec
from azr_population.weights.breeding import Operator, all_operators

HIDDEN, KEY_VALUE, INTERMEDIATE, LAYERS = 3584, 512, 18944, 28
SHAPES = {
    "self_attn.q_proj": (HIDDEN, HIDDEN),
    "self_attn.k_proj": (KEY_VALUE, HIDDEN),
    "self_attn.v_proj": (KEY_VALUE, HIDDEN),
    "self_attn.o_proj": (HIDDEN, HIDDEN),
    "mlp.gate_proj": (INTERMEDIATE, HIDDEN),
    "mlp.up_proj": (INTERMEDIATE, HIDDEN),
    "mlp.down_proj": (HIDDEN, INTERMEDIATE),
}


class Clock:
    """Seconds of a call, including its work on the device."""

    def __init__(self, device: str, kind: str) -> None:
        self._device = device
        self._now = time.process_time if kind == "cpu" else time.perf_counter

    def __call__(self, run: Callable[[], object]) -> float:
        self._wait()
        start = self._now()
        run()
        self._wait()
        return self._now() - start

    def _wait(self) -> None:
        if self._device == "cuda":
            torch.cuda.synchronize()


class Populora:
    """populora's operators on the same parents: its own layout, [P, in, r] and [P, out, r], with
    the parents in slots 0 and 1. Mutations work in place, in slot 2."""

    def __init__(self, parents: list[Adapter]) -> None:
        from populora import operators

        kinds = ("mutation_", "crossover_")
        self._functions = {
            name.removeprefix(kind): getattr(operators, name)
            for name in dir(operators)
            for kind in kinds
            if name.startswith(kind)
        }
        slots = (parents[0], parents[1], parents[0])
        down, up = {}, {}
        for name in parents[0].factors:
            pairs, key = [parent.factors[name] for parent in slots], name.replace(".", "_")
            down[key] = torch.nn.Parameter(torch.stack([pair.A.t() for pair in pairs]), False)
            up[key] = torch.nn.Parameter(torch.stack([pair.B for pair in pairs]), False)
        self._device = next(iter(down.values())).device
        self._population = SimpleNamespace(weight_down=down, weight_up=up, device=self._device)

    def child(self, operator: Operator) -> None:
        slots = [[2]] if operator.parents == 1 else [[[0, 1]], [2]]
        with torch.no_grad():
            self._functions[operator.name](
                self._population, *(torch.tensor(slot, device=self._device) for slot in slots)
            )


def random_member(seed: int, layers: int, rank: int, device: str) -> Adapter:
    """A like PEFT's start, B as after some training."""
    generator = torch.Generator().manual_seed(seed)
    factors = {}
    for layer in range(layers):
        for name, (outputs, inputs) in SHAPES.items():
            A = (torch.rand(rank, inputs, generator=generator) * 2 - 1) * inputs**-0.5
            B = torch.randn(outputs, rank, generator=generator) * 0.01
            factors[f"model.layers.{layer}.{name}"] = Factors(A.to(device), B.to(device))
    return Adapter(LoraSpec(rank, 2.0 * rank), factors)


def copied(parent: Adapter) -> object:
    return [(pair.A.clone(), pair.B.clone()) for pair in parent.factors.values()]


def measure(
    parents: list[Adapter], clock: Clock, repeats: int, peer: Populora | None
) -> list[dict[str, Any]]:
    """Median seconds of each operator; ours, populora's and the copy take turns."""
    rows = []
    for operator in all_operators():
        calls: dict[str, Callable[[int], object]] = {
            "seconds": lambda turn, made=operator: made(
                parents, torch.Generator().manual_seed(turn)
            ),
            "copy": lambda turn: copied(parents[0]),
        }
        if peer is not None:
            calls["populora"] = lambda turn, made=operator: peer.child(made)
        times: dict[str, list[float]] = {name: [] for name in calls}
        for turn in range(repeats + 1):  # the first turn warms up
            for name, call in calls.items():
                times[name].append(clock(lambda call=call, turn=turn: call(turn)))
        medians = {name: round(median(seconds[1:]), 4) for name, seconds in times.items()}
        rows.append({"operator": operator.name, "code": operator.code, **medians})
    return rows


def count(layers: int, rank: int) -> list[dict[str, Any]]:
    """For each operator: what a child asks of a GPU, and whether it is the CPU's, bit for bit."""
    parents = [random_member(seed, layers, rank, "cpu") for seed in (0, 1)]
    rows = []
    for operator in all_operators():
        expected = operator(parents, torch.Generator().manual_seed(0))
        with PretendedGpu() as gpu:
            there = [parent.map(lambda f: f.to(DEVICE)) for parent in parents]
            gpu.counts.clear()
            child = operator(there, torch.Generator().manual_seed(0))
            counts = dict(gpu.counts)
            factors = child.map(Tensor.cpu).factors
        same = all(
            torch.equal(*pair)
            for name, factor in factors.items()
            for pair in ((factor.A, expected.factors[name].A), (factor.B, expected.factors[name].B))
        )
        figures = {"GB": round(counts.pop("bytes") / 1e9, 2), "equal": same}
        rows.append({"operator": operator.name, "code": operator.code, **counts, **figures})
        print(json.dumps(rows[-1]), flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    numbers = {"layers": LAYERS, "rank": 32, "repeats": 5, "threads": 1}
    for name, default in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--clock", choices=["wall", "cpu"], default="wall")
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--count", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    result = {
        "command": re.sub(
            r" --json[ =]\S+", "", " ".join(["python perf/operators.py", *sys.argv[1:]])
        ),
        **{package: installed(package) for package in ("torch", "populora")},
    }
    if arguments.count:
        result["rows"] = count(arguments.layers, arguments.rank)
    else:
        parents = [
            random_member(seed, arguments.layers, arguments.rank, arguments.device)
            for seed in (0, 1)
        ]
        peer = Populora(parents) if installed("populora") else None
        clock = Clock(arguments.device, arguments.clock)
        result["rows"] = measure(parents, clock, arguments.repeats, peer)
        print(json.dumps(result, indent=1))
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
