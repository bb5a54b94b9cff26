"""Seeded draws: vLLM's own, row by row, and ours, all at once: python perf/vllm_draws.py

    python perf/vllm_draws.py [--rows 16 64 256] [--vocabulary 49152 152064] [--rounds 5]

Needs vLLM. Seconds are those of this process on one thread; ratios are within a round, above 1 ours
is faster. Then new tokens a second of a whole vLLM on the nano base, 256 rows of 64 new tokens.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from functools import partial
from statistics import median

import torch

from azr_population.bases.nano import nano_base_path
from azr_population.engines import vllm_versions
from azr_population.engines.vllm_draws import BatchedDraws


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", nargs="+", type=int, default=[16, 64, 256])
    parser.add_argument("--vocabulary", nargs="+", type=int, default=[49_152, 152_064])
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    vllm_versions.set_environment(on_gpu=False)
    from vllm.v1.sample.ops import topk_topp_sampler as sampler

    theirs, ours = sampler.random_sample, BatchedDraws(sampler.random_sample)
    for vocabulary in arguments.vocabulary:
        for rows in arguments.rows:
            probs = torch.randn(rows, vocabulary).mul(4).softmax(dim=-1)
            generators = {row: torch.Generator().manual_seed(row) for row in range(rows)}
            calls = [partial(sample, draw, probs, generators) for draw in (theirs, ours)]
            report({"rows": rows, "vocabulary": vocabulary}, calls, arguments.rounds)
    # The class's method before and after it is replaced.
    originals = sampler.random_sample, sampler.TopKTopPSampler.forward_cpu
    llm = vllm_versions.make_llm(
        {
            "model": str(nano_base_path()),
            "skip_tokenizer_init": True,
            "dtype": "float32",
            "max_num_seqs": 256,
            **vllm_versions.engine_arguments(on_gpu=False),
        }
    )
    native = sampler.TopKTopPSampler.forward_native
    replaced = sampler.random_sample, native
    runner = llm.llm_engine.model_executor.driver_worker.worker.model_runner
    top = runner.sampler.topk_topp_sampler

    def run(functions: tuple[Callable[..., object], Callable[..., object]]) -> None:
        sampler.random_sample, forward = functions
        top.forward = forward.__get__(top)
        parameters = [
            vllm_versions.sampling_params(max_tokens=64, ignore_eos=True, seed=row)
            for row in range(256)
        ]
        llm.generate([{"prompt_token_ids": [20] * 16}] * 256, parameters, use_tqdm=False)

    report(
        {"rows": 256, "vllm": "nano base, 64 new tokens"},
        [lambda: run(originals), lambda: run(replaced)],
        arguments.rounds,
    )


def sample(draw: Callable[..., object], probs: torch.Tensor, generators: object) -> None:
    """One draw; both overwrite the probabilities."""
    draw(probs.clone(), generators)


def report(case: dict[str, object], calls: Sequence[Callable[[], object]], rounds: int) -> None:
    """Runs both in turns; prints the case with medians of seconds and of the ratio."""
    seconds = []
    for _ in range(rounds + 1):
        times = []
        for call in calls:
            begin = time.process_time()
            call()
            times.append(time.process_time() - begin)
        seconds.append(times)
    counted = seconds[1:]
    print(
        json.dumps(
            case
            | {
                "theirs_seconds": round(median(theirs for theirs, _ in counted), 5),
                "ours_seconds": round(median(ours for _, ours in counted), 5),
                "ratio": round(median(theirs / ours for theirs, ours in counted), 2),
            }
        )
    )


if __name__ == "__main__":
    main()
