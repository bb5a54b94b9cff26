"""Evolution operators at 7B shapes, beside their peers: python benchmarks/operators.py

Every operator makes a child from random members of rank 32 at Qwen2.5-Coder-7B's shapes (28 layers,
7 linear layers each, hidden 3584, key/value 512, intermediate 18944: 81M parameters), in turns with
the PyPI package `populora` (0.4.5, when it can be imported) and with its bound: writing the child's
memory, and drawing the random numbers that it needs (`operators_peers.Bounds`). Reading and writing
files is left out. Peak memory is the high-water mark over what the process held before, child
included, in members.

`--peft svd ...` adds combinations of PEFT's `add_weighted_adapter` on one whole decoder layer
(minutes each), against ours on as many layers as it has; with `--layers 1` ours has the same one
layer and is timed right beside. `--device cuda` runs ours and populora's on a GPU. Only ratios
within one run mean much; on a busy machine `--threads 1 --clock cpu` counts processor seconds
instead of wall-clock ones.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch
from operators_peers import (
    LAYERS,
    PEFT_LIKE,
    Bounds,
    Populora,
    member,
    parameters,
    peft_call,
)

from azr_population.versions import installed
from azr_population.weights.adapter import Adapter
from azr_population.weights.breeding import Operator, all_operators, get_operator

Call = Callable[[], object]


class Clock:
    """Seconds that a call takes, once what it started on the device is done."""

    def __init__(self, device: str, kind: str) -> None:
        self._device = device
        self._now = time.process_time if kind == "cpu" else time.perf_counter

    def __call__(self, run: Call) -> float:
        self._wait()
        start = self._now()
        run()
        self._wait()
        return self._now() - start

    def _wait(self) -> None:
        if self._device == "cuda":
            torch.cuda.synchronize()


def peak_bytes(run: Call, device: str) -> int | None:
    """The most that was held during the call beyond what was held before; None where unknown."""
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        run()
        return torch.cuda.max_memory_allocated() - before
    try:
        # What earlier calls freed goes back to the system first, or it would count as held.
        ctypes.CDLL("libc.so.6").malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return None
    before = _status("VmRSS")
    kept = run()
    peak = _status("VmHWM") - before
    del kept
    return peak


def _status(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise ValueError(field)


def measure(
    parents: list[Adapter], clock: Clock, repeats: int, device: str, peer: Populora | None
) -> tuple[list[dict[str, Any]], float]:
    """A row of figures per operator, and the seconds of a copy; everything in turns."""
    bounds, count = Bounds(parents[0]), parameters(parents[0])
    times: dict[tuple[str, str], list[float]] = {}
    peaks: dict[str, float | None] = {}
    for turn in range(repeats + 1):  # the first turn warms up
        calls: list[tuple[str, str, Call]] = [("", "copy", bounds.copy)]
        for operator in all_operators():
            calls.append((operator.name, "ours", _ours(operator, parents, turn)))
            calls.append((operator.name, "bound", bounds.of(operator.name)))
            if peer is not None:
                calls.append((operator.name, "populora", _theirs(operator, peer)))
        for name, who, call in calls:
            taken = clock(call)
            times.setdefault((name, who), [])
            if turn:
                times[name, who].append(taken)
            if turn == repeats and who == "ours":
                peak = peak_bytes(call, device)
                peaks[name] = None if peak is None else peak / (4 * count)
    rows = []
    for operator in all_operators():
        row: dict[str, Any] = {"operator": operator.name, "code": operator.code}
        for who in ("ours", "bound", "populora"):
            taken_all = times.get((operator.name, who))
            row[who] = median(taken_all) if taken_all else None
        row["ours_all"] = times[operator.name, "ours"]
        row["peak"] = peaks[operator.name]
        rows.append(row)
    return rows, median(times["", "copy"])


def shown(rows: list[dict[str, Any]], copy: float) -> str:
    lines = [
        "| operator | s | populora s | ratio | bound s | s / bound | s / copy | peak, members |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        ours, other, peak = row["ours"], row["populora"], row["peak"]
        beside = "- | -" if other is None else f"{other:.3f} | {other / ours:.1f}x"
        lines.append(
            f"| {row['code']} `{row['operator']}` | {ours:.3f} | {beside} | {row['bound']:.3f} | "
            f"{ours / row['bound']:.2f} | {ours / copy:.1f} | "
            + ("-" if peak is None else f"{peak:.2f}")
            + " |"
        )
    return "\n".join(lines)


def beside_peft(
    parents: list[Adapter], combinations: list[str], clock: Clock, layers: int
) -> list[dict[str, Any]]:
    """PEFT's combinations of one decoder layer, and our operator that does as much, in seconds."""
    rows = []
    for combination in combinations:
        name = PEFT_LIKE[combination]
        operator = get_operator(name)
        ours = [clock(_ours(operator, parents, turn)) for turn in range(9)][1:]
        theirs = clock(peft_call(parents, combination))
        ours += [clock(_ours(operator, parents, turn)) for turn in range(8)]
        layer = median(ours) / layers
        rows.append(
            {
                "combination": combination,
                "peft_layer": theirs,
                "peft_member": theirs * LAYERS,
                "operator": name,
                "ours_layer": layer,
                "ours_member": layer * LAYERS,
                "ratio": theirs / layer,
            }
        )
        print(
            f"PEFT {combination}: {theirs:.1f} s a decoder layer, {theirs * LAYERS:.0f} s a "
            f"member; `{name}`: {layer:.4f} s a decoder layer: {theirs / layer:,.0f}x",
            flush=True,
        )
    return rows


def _ours(operator: Operator, parents: list[Adapter], seed: int) -> Call:
    return lambda: operator(parents, torch.Generator().manual_seed(seed))


def _theirs(operator: Operator, peer: Populora) -> Call:
    return lambda: peer.child(operator)


def _versions() -> dict[str, str | None]:
    packages = {package: installed(package) for package in ("torch", "peft", "populora")}
    return {"python": platform.python_version(), **packages}


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--layers", type=int, default=LAYERS)
    parser.add_argument("--rank", type=int, default=32)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--peft", nargs="+", default=[], choices=list(PEFT_LIKE))
    parser.add_argument("--only-peft", action="store_true", help="leave out everything else")
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--clock", choices=["wall", "cpu"], default="wall")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    clock = Clock(arguments.device, arguments.clock)
    parents = [member(seed, arguments.layers, arguments.rank, arguments.device) for seed in (0, 1)]
    record: dict[str, Any] = {
        "command": " ".join(["python benchmarks/operators.py", *sys.argv[1:]]),
        "versions": _versions(),
        "processor": _processor(),
        "threads": arguments.threads,
        "clock": arguments.clock,
        "parameters": parameters(parents[0]),
    }
    print(json.dumps(record), flush=True)
    if not arguments.only_peft:
        try:
            peer = Populora(parents)
        except ImportError:
            peer = None
            print("populora is not installed: pip install populora==0.4.5 to compare")
        rows, copy = measure(parents, clock, arguments.repeats, arguments.device, peer)
        del peer
        record |= {"copy": copy, "rows": rows}
        print(f"\n{shown(rows, copy)}\n\ncopy {copy:.3f} s\n")
    record["peft"] = beside_peft(parents, arguments.peft, clock, arguments.layers)
    if arguments.json:
        arguments.json.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
