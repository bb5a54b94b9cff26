"""Which way of routing rows to members is fastest, by tokens per member: python benchmarks/bank.py

Times both ways of `azr_population.weights.routing` in a whole forward of a random model of the
nano base's shape, in one process and in turns, so only the ratios mean anything. The limits
`GROUPED_TOKENS_EVEN` and `GROUPED_TOKENS_UNEVEN` there come from this table.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from statistics import median

import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

from azr_population.weights import routing
from azr_population.weights.adapter import LoraSpec
from azr_population.weights.bank import Bank

WAYS = {"segments": 0, "grouped": 10**9}


def nano_shaped() -> Qwen2ForCausalLM:
    """A random model of the nano base's shape: hidden 128, 5 layers, 4 heads, MLP 384."""
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=256,
        hidden_size=128,
        intermediate_size=384,
        num_hidden_layers=5,
        num_attention_heads=4,
        num_key_value_heads=4,
        tie_word_embeddings=True,
    )
    return Qwen2ForCausalLM(config).eval()


def seconds(run: Callable[[], object], repeats: int) -> list[float]:
    """Wall-clock seconds of each of `repeats` calls."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--members", type=int, default=8)
    parser.add_argument("--rank", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--uneven", action="store_true", help="one member has twice the rows")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    model = nano_shaped()
    bank = Bank(model, LoraSpec(rank=arguments.rank), arguments.members)
    for slot in range(arguments.members):
        bank.init_member(slot, torch.Generator().manual_seed(slot))

    print("rows/member  tokens/row  base_ms  " + "  ".join(f"{way:>9}" for way in WAYS))
    for rows, tokens in [(1, 1), (4, 1), (16, 1), (32, 1), (48, 1), (96, 1), (4, 16), (4, 64)]:
        members = torch.arange(arguments.members).repeat_interleave(rows)
        if arguments.uneven:
            members = torch.cat([torch.zeros(rows, dtype=torch.long), members])
        ids = torch.randint(0, 256, (len(members), tokens))
        times: dict[str, list[float]] = {way: [] for way in ["base", *WAYS]}
        with torch.inference_mode():
            for turn in range(arguments.repeats):
                repeats = 1 if turn == 0 else 5
                times["base"] += seconds(partial(model, ids), repeats)
                for way, limit in WAYS.items():
                    routing.GROUPED_TOKENS_EVEN = routing.GROUPED_TOKENS_UNEVEN = limit
                    with bank.adapters_active(members):
                        times[way] += seconds(partial(model, ids), repeats)
        base = median(times["base"])
        extra = "  ".join(f"{median(times[way]) / base:>8.2f}x" for way in WAYS)
        print(f"{rows:>11}  {tokens:>10}  {base * 1e3:>7.2f}  {extra}")


if __name__ == "__main__":
    main()
