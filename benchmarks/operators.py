"""Evolution operators at 7B shapes, beside their peers: python benchmarks/operators.py

Every operator makes a child from random members of rank 32 at Qwen2.5-Coder-7B's shapes (28 layers,
7 linear layers each, hidden 3584, key/value 512, intermediate 18944: 81M parameters), in turns with
the PyPI package `populora` (0.4.5, when it can be imported) and next to two bounds: copying a
member, and drawing as many normal numbers as it has parameters. Reading and writing files is left
out. Peak memory is the high-water mark over what the process held before, child included, in
members.

`--peft svd ...` adds combinations of PEFT's `add_weighted_adapter` on one decoder layer (minutes
each), against ours on as many layers as it has. `--device cuda` runs ours and populora's on a GPU.
Only ratios within one run mean much; on a busy machine `--threads 1 --clock cpu` counts processor
seconds instead of wall-clock ones.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import platform
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from types import SimpleNamespace

import torch

from azr_population.adapters.adapter import Adapter, Factors, LoraSpec
from azr_population.evolution.registry import Operator, get_operator, operators

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
PEERS = {
    "svd_structured": "mutation_svd_structured",
    "layer_selective_gaussian": "mutation_layer_selective_gaussian",
    "component_masking": "mutation_component_masking",
    "full_gaussian": "mutation_full_gaussian",
    "neftune_style": "mutation_neftune_style",
    "dare": "crossover_dare",
    "layer_wise": "crossover_layer_wise",
    "svd_subspace": "crossover_svd_subspace",
    "extrapolative": "crossover_extrapolative",
}
"""Our operators' names -> functions of populora.operators."""


PEFT_LIKE = {"svd": "extrapolative", "dare_linear_svd": "dare", "ties_svd": "extrapolative"}
"""PEFT's combination_type -> the operator that does as much work on the same parents."""

CLOCK = time.perf_counter


def member(seed: int, layers: int, rank: int, device: str) -> Adapter:
    """A random member: A like PEFT's start, B as after some training."""
    generator = torch.Generator().manual_seed(seed)
    factors = {}
    for layer in range(layers):
        for name, (outputs, inputs) in SHAPES.items():
            A = (torch.rand(rank, inputs, generator=generator) * 2 - 1) * inputs**-0.5
            B = torch.randn(outputs, rank, generator=generator) * 0.01
            factors[f"model.layers.{layer}.{name}"] = Factors(A.to(device), B.to(device))
    return Adapter(LoraSpec(rank, 2.0 * rank), factors)


def parameters(adapter: Adapter) -> int:
    return sum(pair.A.numel() + pair.B.numel() for pair in adapter.factors.values())


class Populora:
    """populora's operators on the same parents: its own layout, [P, in, r] and [P, out, r], with
    the parents in slots 0 and 1. Mutations work in place, on the first parent."""

    def __init__(self, parents: list[Adapter]) -> None:
        from populora import operators as peer

        self.operators = peer
        down, up = {}, {}
        for name in parents[0].factors:
            pairs = [parent.factors[name] for parent in parents]
            key = name.replace(".", "_")
            down[key] = torch.nn.Parameter(
                torch.stack([pairs[0].A.t(), pairs[1].A.t(), pairs[0].A.t()]), requires_grad=False
            )
            up[key] = torch.nn.Parameter(
                torch.stack([pairs[0].B, pairs[1].B, pairs[0].B]), requires_grad=False
            )
        device = next(iter(down.values())).device
        self.population = SimpleNamespace(weight_down=down, weight_up=up, device=device)

    def child(self, operator: Operator) -> None:
        function = getattr(self.operators, PEERS[operator.name])
        slot = torch.tensor([2], device=self.population.device)
        with torch.no_grad():
            if operator.parents == 1:
                function(self.population, slot)
            else:
                pair = torch.tensor([[0, 1]], device=self.population.device)
                function(self.population, pair, slot)


def seconds(run: Callable[[], object], device: str) -> float:
    if device == "cuda":
        torch.cuda.synchronize()
    start = CLOCK()
    run()
    if device == "cuda":
        torch.cuda.synchronize()
    return CLOCK() - start


def peak_bytes(run: Callable[[], object], device: str) -> int | None:
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


def normals(adapter: Adapter, generator: torch.Generator) -> list[torch.Tensor]:
    """As many normal numbers as the member has parameters, in tensors of its shapes."""
    drawn = []
    for pair in adapter.factors.values():
        for factor in (pair.A, pair.B):
            drawn.append(torch.empty(factor.shape).normal_(generator=generator))
    return drawn


def copies(adapter: Adapter) -> list[torch.Tensor]:
    return [f.clone() for pair in adapter.factors.values() for f in (pair.A, pair.B)]


def peft_seconds(parents: list[Adapter], combination: str) -> float:
    """PEFT's combination of both parents' first decoder layer, seconds."""
    import peft
    from transformers import Qwen2Config, Qwen2ForCausalLM

    config = Qwen2Config(
        vocab_size=8,
        hidden_size=HIDDEN,
        intermediate_size=INTERMEDIATE,
        num_hidden_layers=1,
        num_attention_heads=28,
        num_key_value_heads=4,
    )
    targets = [name.rpartition(".")[2] for name in SHAPES]
    rank = parents[0].spec.rank
    lora = peft.LoraConfig(r=rank, lora_alpha=2 * rank, target_modules=targets)
    model = peft.get_peft_model(Qwen2ForCausalLM(config), lora, adapter_name="one")
    model.add_adapter("two", lora)
    with torch.no_grad():
        for adapter_name, parent in zip(("one", "two"), parents, strict=True):
            for name in SHAPES:
                layer = model.get_submodule(f"base_model.model.model.layers.0.{name}")
                pair = parent.factors[f"model.layers.0.{name}"]
                layer.lora_A[adapter_name].weight.copy_(pair.A)
                layer.lora_B[adapter_name].weight.copy_(pair.B)
    density = {} if combination == "svd" else {"density": 0.3}
    return seconds(
        lambda: model.add_weighted_adapter(
            ["one", "two"], [0.5, 0.5], "child", combination_type=combination, **density
        ),
        "cpu",
    )


def exactness(parents: list[Adapter]) -> dict[str, float]:
    """Relative error of dW against the dense float64 operation, in the first key projection."""
    name = "model.layers.0.self_attn.k_proj"
    short = [Adapter(parent.spec, {name: parent.factors[name]}) for parent in parents]
    dense = [(f.factors[name].B.double() @ f.factors[name].A.double()).cpu() for f in short]
    rank = parents[0].spec.rank
    spectra = [torch.linalg.svd(update, full_matrices=False) for update in dense]

    def best(update: torch.Tensor) -> torch.Tensor:
        U, S, Vt = torch.linalg.svd(update, full_matrices=False)
        return U[:, :rank] * S[:rank] @ Vt[:rank]

    def part(which: int, start: int, stop: int) -> torch.Tensor:
        U, S, Vt = spectra[which]
        return U[:, start:stop] * S[start:stop] @ Vt[start:stop]

    def error(operator: str, expected: torch.Tensor, **options: float) -> float:
        child = get_operator(operator)(short, torch.Generator().manual_seed(0), **options)
        pair = child.factors[name]
        found = (pair.B.double() @ pair.A.double()).cpu()
        return float((found - expected).norm() / expected.norm())

    generator = torch.Generator().manual_seed(0)
    dropped = torch.rand(1, rank, generator=generator).argsort(dim=1)[0, : -(-3 * rank // 10)]
    kept = [i for i in range(rank) if i not in set(dropped.tolist())]
    generator.manual_seed(0)
    columns = [(torch.rand(HIDDEN, generator=generator) >= 0.7).double() / (1 - 0.7) for _ in dense]
    return {
        "svd_structured (eps 0)": error("svd_structured", dense[0], eps=0.0),
        "component_masking": error(
            "component_masking", sum((part(0, i, i + 1) for i in kept), torch.zeros(()).double())
        ),
        "dare": error("dare", best((dense[0] * columns[0] + dense[1] * columns[1]) / 2)),
        "svd_subspace": error("svd_subspace", part(0, 0, 10) + part(1, 10, rank), k=10),
        "extrapolative": error(
            "extrapolative",
            best(dense[1] + 1.3 * (dense[0] - dense[1])),
            eta_min=1.3,
            eta_max=1.3,
        ),
    }


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
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--clock", choices=["wall", "cpu"], default="wall")
    arguments = parser.parse_args()
    global CLOCK
    CLOCK = time.process_time if arguments.clock == "cpu" else time.perf_counter
    torch.set_num_threads(arguments.threads)
    device = arguments.device
    parents = [member(seed, arguments.layers, arguments.rank, device) for seed in (0, 1)]
    count = parameters(parents[0])
    try:
        peer = Populora(parents)
    except ImportError:
        peer = None
        print("populora is not installed: pip install populora==0.4.5 to compare")
    print(
        f"{count / 1e6:.1f}M parameters a member, rank {arguments.rank}, {arguments.threads} "
        f"threads, torch {torch.__version__}, {device}, {platform.machine()}, "
        f"{arguments.clock} seconds\n"
    )

    generator = torch.Generator().manual_seed(0)
    bounds: dict[str, list[float]] = {"copy": [], "normals": []}
    ours: dict[str, list[float]] = {operator.name: [] for operator in operators()}
    theirs: dict[str, list[float]] = {operator.name: [] for operator in operators()}
    peaks: dict[str, float | None] = {}
    for turn in range(arguments.repeats + 1):  # the first turn warms up
        times = [("copy", seconds(lambda: copies(parents[0]), device))]
        times += [("normals", seconds(lambda: normals(parents[0], generator), device))]
        for name, taken in times:
            bounds[name] += [taken] * (turn > 0)
        for operator in operators():
            make = _maker(operator, parents, turn)
            taken = seconds(make, device)
            ours[operator.name] += [taken] * (turn > 0)
            if turn == arguments.repeats:
                peak = peak_bytes(make, device)
                peaks[operator.name] = None if peak is None else peak / (4 * count)
            if peer is not None:
                taken = seconds(_peer_maker(peer, operator), device)
                theirs[operator.name] += [taken] * (turn > 0)

    rows = []
    print("| operator | s | populora s | ratio | s / copy | s / (copy + normals) | peak, members |")
    print("|---|---|---|---|---|---|---|")
    copy, both = median(bounds["copy"]), median(bounds["copy"]) + median(bounds["normals"])
    for operator in operators():
        mine = median(ours[operator.name])
        other = median(theirs[operator.name]) if peer is not None else None
        peak = peaks[operator.name]
        rows.append({"operator": operator.name, "seconds": mine, "populora": other, "peak": peak})
        print(
            f"| {operator.code} `{operator.name}` | {mine:.2f} | "
            + (f"{other:.2f} | {other / mine:.1f}x" if other is not None else "- | -")
            + f" | {mine / copy:.1f} | {mine / both:.1f} | "
            + ("-" if peak is None else f"{peak:.2f}")
            + " |"
        )
    print(f"\nbounds: copy {copy:.2f} s, normal numbers {both - copy:.2f} s")
    errors = exactness(parents)
    print("\nrelative error of dW against dense float64 (a key projection):")
    for name, value in errors.items():
        print(f"  {name}: {value:.1e}")
    peft_rows = {}
    for combination in arguments.peft:
        name = PEFT_LIKE[combination]
        taken = peft_seconds(parents, combination)
        peft_rows[combination] = taken
        layer = median(ours[name]) / arguments.layers
        print(
            f"PEFT {combination}: {taken:.1f} s a decoder layer, {taken * LAYERS:.0f} s a member; "
            f"`{name}` {layer:.3f} s a decoder layer: {taken / layer:.0f}x",
            flush=True,
        )
    if arguments.json:
        record = {"bounds": bounds, "rows": rows, "errors": errors, "peft_layer": peft_rows}
        arguments.json.write_text(json.dumps(record, indent=1) + "\n")


def _maker(operator: Operator, parents: list[Adapter], seed: int) -> Callable[[], object]:
    return lambda: operator(parents, torch.Generator().manual_seed(seed))


def _peer_maker(peer: Populora, operator: Operator) -> Callable[[], object]:
    return lambda: peer.child(operator)


if __name__ == "__main__":
    main()
