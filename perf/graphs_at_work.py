"""What `gpu.py` measures of steps that are recorded as CUDA graphs: memory, tokens, speed."""

from __future__ import annotations

import time
from typing import Any

import torch
from base_at_work import equal_share
from drawn import described, drawn, seeds, words

from azr_population.bases.nano import nano_base_path
from azr_population.engines.base_model import load_base, stop_ids
from azr_population.engines.canary import random_adapter
from azr_population.engines.engine import Sampling
from azr_population.engines.torch_rollout import TorchRollout, make_bank
from azr_population.weights.adapter import LoraSpec

MEMBERS = 8


class Samplers:
    """Two samplers of eight members of a base: one launches each kernel of a step, one replays
    steps as graphs."""

    def __init__(self, model: Any, rank: int, stops: frozenset[int]) -> None:
        self.config = model.config
        bank = make_bank(model, LoraSpec(rank, 2.0 * rank), seeds(MEMBERS))
        for slot in range(MEMBERS):
            bank.write(slot, random_adapter(bank.read(slot), slot))
        self.eager, self.graphs = (
            TorchRollout(model, bank, stops, share_prefix=False, step_graphs=graphs)
            for graphs in (False, True)
        )

    def prompts(self, rows: int, width: int) -> tuple[list[list[int]], list[int]]:
        """Prompts of several lengths, and the slot of the member that answers each."""
        written = words(self.config, rows, width)
        prompts = [ids[: width - row % 7] for row, ids in enumerate(written)]
        return prompts, [row * MEMBERS // rows for row in range(rows)]


def nano_graphs(device: str, note: Any) -> None:
    """Memory over 200 calls whose rows end early and in other numbers; tokens at many numbers of
    rows."""
    model, tokenizer = load_base(nano_base_path(), "float32", device)
    samplers = Samplers(model, 8, stop_ids(model, tokenizer, chat=False))
    calls, tokens, most = (200, 96, 512) if device == "cuda" else (6, 12, 16)
    start = time.perf_counter()
    for call in range(1, calls + 1):
        rows = 8 + 37 * call % most
        prompts, slots = samplers.prompts(rows, 40)
        limits = tuple(1 + (row * 31 + call) % tokens for row in range(rows))
        samplers.graphs.generate(prompts, slots, Sampling(limits), call)
        if call in (1, 5, 10, 20, 50, 100, 150, calls) and device == "cuda":
            torch.cuda.synchronize()
            held = torch.cuda.memory_allocated() / 1e6, torch.cuda.memory_reserved() / 1e6
            note(
                f"after call {call}", dict(zip(("allocated MB", "reserved MB"), held, strict=True))
            )
    note("calls", {"calls": calls, "s": time.perf_counter() - start})
    equal = {}
    for rows in (1, 2, 3, 5, 8, 13, 31, 64, 100, 256, 512):
        if rows > most:
            break
        prompts, slots = samplers.prompts(rows, 40)
        equal[rows] = equal_share(
            *(
                each.generate(prompts, slots, Sampling(tokens), rows)
                for each in (samplers.eager, samplers.graphs)
            )
        )
    note("completions with equal tokens, by rows", equal)


def long_completions(shape: str, device: str, note: Any) -> None:
    """Tokens a second of 64 rows of 2,048 new tokens each, by graphs and without."""
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    samplers = Samplers(drawn(described(shape), dtype, device), 32, frozenset())
    rows, width, tokens = (64, 512, 2048) if device == "cuda" else (16, 24, 12)
    prompts, slots = samplers.prompts(rows, width)
    speeds = {}
    for name, sampler in (("graphs", samplers.graphs), ("eager", samplers.eager)):
        sampler.generate(prompts, slots, Sampling(4), 0)
        start = time.perf_counter()
        sampler.generate(prompts, slots, Sampling(tokens), 0)
        speeds[name] = rows * tokens / (time.perf_counter() - start)
        note(f"{tokens} new tokens, {name}", {"rows": rows, "tokens/s": speeds[name]})
    note(f"{tokens} new tokens, graphs to eager", speeds["graphs"] / speeds["eager"])
