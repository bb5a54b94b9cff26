"""vLLM beside the torch sampler, as this package uses both, in a minute or two on one GPU:

    python perf/azr_on_gpu/vllm_smoke.py BASE [--members 8] [--rows 256] [--tokens 144]

For each sampler: seconds to start with its canary, to push all members, to sample (the first call
checks what was pushed), for one member and for all; gigabytes held; and of vLLM seconds to sleep
and wake. BASE comes from random_base.py. Plays on a CPU too, where vLLM does not sleep.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from azr_population.config.schema import LearnerConfig
from azr_population.engines.assembly import make_engine
from azr_population.engines.canary import random_adapter
from azr_population.engines.engine import EngineSettings, Sampling
from azr_population.versions import installed
from azr_population.weights.adapter import LoraSpec

ON_GPU = torch.cuda.is_available()
VLLM = {
    "gpu_memory_utilization": 0.4,
    "max_model_len": 4096,
    "max_num_seqs": 256,
    "max_num_batched_tokens": 8192,
    # Graphs of decoding without torch.compile, which takes minutes.
    "compilation_config": {
        "mode": 0,
        "cudagraph_mode": "FULL_DECODE_ONLY",
        "cudagraph_capture_sizes": [8, 64, 128, 256],
    },
}


def timed(name: str, run: Callable[[], Any]) -> Any:
    """The result of `run`, whose seconds are printed."""
    start = time.perf_counter()
    result = run()
    if ON_GPU:
        torch.cuda.synchronize()
    print(json.dumps({name: round(time.perf_counter() - start, 3)}), flush=True)
    return result


def play(sampler: str, asked: argparse.Namespace) -> None:
    """One sampler's figures."""
    settings = EngineSettings(
        asked.base,
        tuple(f"member_{slot}" for slot in range(asked.members)),
        LoraSpec(32, 64.0),
        device="cuda" if ON_GPU else "cpu",
        dtype="bfloat16" if ON_GPU else "float32",
        rollout=sampler,
        vllm=VLLM if sampler == "vllm" and ON_GPU else {},
        learner=LearnerConfig(step_graphs=True),
    )
    seeds = [torch.Generator().manual_seed(slot) for slot in range(asked.members)]
    engine, tokenizer = timed(f"{sampler}: start", lambda: make_engine(settings, seeds))
    for slot in range(asked.members):
        engine.learner.write(slot, random_adapter(engine.read(slot), slot))
    slots = range(asked.members)
    timed(f"{sampler}: push of {asked.members}", lambda: engine.push(slots))
    drawn = torch.Generator().manual_seed(0)
    highest = min(len(tokenizer), 2900)
    prompts = torch.randint(5, highest, (asked.rows, asked.prompt), generator=drawn).tolist()
    few = Sampling(4)
    timed(f"{sampler}: pushes checked", lambda: engine.generate(prompts[:8], [0] * 8, few, 1))
    for members in (1, asked.members):
        of_rows = [row * members // asked.rows for row in range(asked.rows)]
        for _ in range(2):  # the first call prepares
            name = f"{sampler}: {asked.rows} x {asked.tokens} tokens, {members} members"
            timed(name, partial(engine.generate, prompts, of_rows, Sampling(asked.tokens), 1))
    if sampler == "vllm":
        for _ in range(2):
            timed("vllm: sleep and wake", lambda: nap(engine))
    if ON_GPU:
        free, total = torch.cuda.mem_get_info()
        print(json.dumps({f"{sampler}: GB held": round((total - free) / 1e9, 1)}), flush=True)
    engine.rollout.close()


def nap(engine: Any) -> None:
    with engine.rollout.asleep():
        pass


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("base")
    for name, default in {"members": 8, "rows": 256, "prompt": 512, "tokens": 144}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--sampler", choices=["vllm", "torch"], action="append")
    asked = parser.parse_args()
    packages = ("vllm", "torch", "transformers", "triton")
    print(json.dumps({name: installed(name) for name in packages}), flush=True)
    for sampler in asked.sampler or ["vllm", "torch"]:
        play(sampler, asked)


if __name__ == "__main__":
    main()
