"""The processes of `test_sharding.py`: members on whole bases, and on one that is shared out.

python sharded_rank.py FOLDER; the first rank leaves FOLDER/results.pt.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed
import transformers

from azr_population.bases.nano import nano_base_path
from azr_population.config.schema import LearnerConfig
from azr_population.engines.base_model import load_base
from azr_population.engines.engine import Completion, Hyperparameters, TrainingSample
from azr_population.engines.torch_learner import TorchLearner
from azr_population.engines.torch_rollout import make_bank
from azr_population.weights.adapter import LoraSpec

# Before the ranks are forked: so it is imported once. Its own modules come when they are asked for.
IMPORTED = (transformers.AutoModelForCausalLM, transformers.PreTrainedTokenizerFast)

RANKS, MEMBERS, STEPS = 2, 3, 2
RATES = dict.fromkeys(range(MEMBERS), Hyperparameters(1e-3))
SHARES = {0: ([0, 1, 2, 3, 4, 5], [0]), 1: ([6, 7, 8], []), 2: ([], [9, 10])}
"""By member the rows of each rank: uneven, and none at all."""


def row(number: int) -> tuple[list[int], list[int]]:
    generator = torch.Generator().manual_seed(number)
    ids = torch.randint(20, 200, (12 + 5 * number,), generator=generator).tolist()
    return ids[: 4 + number], ids[4 + number :]


class Stream:
    """A CPU's, which there is not, with the methods that FSDP2 of torch 2.6 calls."""

    def __init__(self, *ignored: Any, **priority: Any) -> None:
        pass

    def wait_stream(self, *ignored: Any) -> None:
        pass

    wait_event = record_event = wait_stream


def complete_cpu() -> None:
    """What FSDP2 of torch 2.6 finds on GPUs only: streams, and a copy of gathered weights that
    autograd does not take for a change of them (later versions do both on CPUs too)."""
    torch.cpu.Stream = Stream  # type: ignore[misc, assignment]
    torch.cpu.current_stream = lambda *ignored: Stream()  # type: ignore[assignment]

    def unnoticed(whole: torch.Tensor, sizes: list[int], dim: int, out: list[torch.Tensor]) -> None:
        for into, part in zip(out, whole.split(sizes, dim), strict=True):
            with torch.autograd._unsafe_preserve_version_counter(into):
                into.copy_(part)

    torch.split_with_sizes_copy = unnoticed  # type: ignore[assignment]


def join(rank: int, folder: Path) -> None:
    torch.set_num_threads(1)
    if not hasattr(torch.cpu.Stream, "record_event"):
        complete_cpu()
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{folder / 'store'}", rank=rank, world_size=RANKS
    )
    results = {
        (shard, checkpointing, keep): play(rank, shard, checkpointing, keep)
        for checkpointing, keep in ((False, 0), (True, 0), (True, 40))
        for shard in (False, True)
    }
    if rank == 0:
        torch.save(results, folder / "results.pt")
    torch.distributed.destroy_process_group()


def play(rank: int, shard: bool, checkpointing: bool, keep: int) -> dict[str, Any]:
    """Scores and updates as one rank."""
    model, _ = load_base(nano_base_path(), "float32", "cpu", shard)
    generators = [torch.Generator().manual_seed(slot) for slot in range(MEMBERS)]
    bank = make_bank(model, LoraSpec(4, 8.0), generators)
    learner = TorchLearner(
        model,
        bank,
        LearnerConfig(
            micro_batch_tokens=60,
            gradient_checkpointing=checkpointing,
            recompute_above_tokens=keep,
            shard_base=shard,
        ),
        parallel=True,
    )
    for _ in range(STEPS):
        samples: dict[int, list[TrainingSample]] = {}
        for slot, shares in SHARES.items():
            numbers = shares[rank]
            rows = [row(number) for number in numbers]
            chosen = learner.log_probs(
                [prompt for prompt, _ in rows], [ids for _, ids in rows], [slot] * len(rows)
            )
            samples[slot] = [
                TrainingSample(
                    Completion(slot, tuple(prompt), tuple(ids), tuple(logprobs.tolist()), True),
                    1.0 - 2 * (number % 2),
                )
                for number, (prompt, ids), logprobs in zip(numbers, rows, chosen, strict=True)
            ]
        updates = learner.update(samples, RATES)
    digests = [None] * RANKS
    members = [p for slot in range(MEMBERS) for p in bank.parameters_of(slot)]
    sums = tuple(float(p.detach().double().sum()) for p in members)
    torch.distributed.all_gather_object(digests, sums)
    return {
        "members": [[p.detach() for p in bank.parameters_of(slot)] for slot in range(MEMBERS)],
        "updates": updates,
        "held": sum(_local(p).numel() for p in model.parameters()),
        "digests": digests,
    }


def _local(parameter: Any) -> torch.Tensor:
    local: torch.Tensor = getattr(parameter, "to_local", lambda: parameter)()
    return local


if __name__ == "__main__":
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    fork = multiprocessing.get_context("fork")
    ranks = [fork.Process(target=join, args=(r, Path(sys.argv[1]))) for r in range(RANKS)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join()
    sys.exit(max(abs(process.exitcode or 0) for process in ranks))
