"""What samples fastest with live members: python perf/rollouts.py

    python perf/rollouts.py [--cases 32x64x32 128x512x128] [--members 1 8] [--shape smollm2]
        [--rounds 3] [--clock wall] [--json FILE]

A case is rows x prompt x new tokens. A random model of SmolLM2's (or the nano base's) shape writes,
in float32 on one thread:

    torch        our rollout in torch, members mixed in a batch
    vllm         our rollout by vLLM, members mixed in a batch, with log-probabilities
    vllm base    vLLM by itself without adapters, the bare base
    generate     transformers' generate, the bare base
    peft         PEFT's adapter_names, members mixed in a batch

The two on the bare base do less work. Installed contenders take turns within a round; the result is
the median of new tokens a second, and its ratio to torch's. Then members are pushed to vLLM.
`--clock cpu` counts CPU seconds of this process, for a busy machine.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import torch
from drawn import LLAMAS, llama, seeds
from transformers import LlamaForCausalLM

from azr_population.engines import vllm_versions
from azr_population.engines.engine import EngineSettings, Sampling
from azr_population.engines.torch_rollout import TorchRollout, make_bank
from azr_population.engines.vllm_rollout import VllmRollout
from azr_population.versions import installed
from azr_population.weights.adapter import LoraSpec
from azr_population.weights.peft_folder import save_adapter

RANKS = {"smollm2": 16, "nano": 8}
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
MODULES = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
FIRST_WORD = 10
"""Lower ids may be special."""

Writer = Callable[[list[list[int]], list[int], int], int]
"""Samples that many tokens after each prompt by the slot's member; returns their number."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", nargs="+", default=["32x64x32", "128x512x128"])
    parser.add_argument("--members", nargs="+", type=int, default=[1, 8])
    parser.add_argument("--shape", choices=LLAMAS, default="smollm2")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clock", choices=CLOCKS, default="wall")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    arguments.cases = [tuple(map(int, case.split("x"))) for case in arguments.cases]
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        llama(arguments.shape, torch.float32).save_pretrained(folder)
        writers, push = contenders(Path(folder), arguments)
        command = " ".join(["python perf/rollouts.py", *sys.argv[1:]])
        result = {
            "command": re.sub(r" --json[ =]\S+", "", command),
            "python": platform.python_version(),
            **{name: installed(name) for name in ("torch", "transformers", "peft", "vllm")},
            "rows": [
                row(writers, case, members, arguments)
                for case in arguments.cases
                for members in arguments.members
            ],
            "push_seconds": None,
        }
        if push:
            (timed,) = timings([push], arguments)
            result["push_seconds"] = round(median(seconds for seconds, _ in timed), 4)
    print(json.dumps(result, indent=1))
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1) + "\n")


def row(
    writers: dict[str, Writer],
    case: tuple[int, int, int],
    members: int,
    arguments: argparse.Namespace,
) -> dict[str, Any]:
    """The case with so many members: median new tokens a second of each contender."""
    count, length, tokens = case
    generator = torch.Generator().manual_seed(count)
    ids = (FIRST_WORD, LLAMAS[arguments.shape]["vocab_size"])
    prompts = torch.randint(*ids, (count, length), generator=generator).tolist()
    slots = [row * members // count for row in range(count)]
    timed = timings([partial(each, prompts, slots, tokens) for each in writers.values()], arguments)
    speeds = {
        name: median(written / seconds for seconds, written in rounds)
        for name, rounds in zip(writers, timed, strict=True)
    }
    ratios = {name: round(speed / speeds["torch"], 2) for name, speed in speeds.items()}
    figures = {
        "case": f"{count} x ({length} + {tokens})",
        "members": members,
        "tokens_per_second": {name: round(speed, 1) for name, speed in speeds.items()},
        "ratio_to_torch": ratios,
    }
    print(json.dumps(figures), file=sys.stderr, flush=True)
    return figures


def timings(
    calls: Sequence[Callable[[], Any]], arguments: argparse.Namespace
) -> list[list[tuple[float, Any]]]:
    """Seconds and result of each call by round; calls take turns, and the first round warms up."""
    clock, timed = CLOCKS[arguments.clock], [[] for _ in calls]
    for _ in range(arguments.rounds + 1):
        for call, rounds in zip(calls, timed, strict=True):
            start = clock()
            result = call()
            rounds.append((clock() - start, result))
    return [rounds[1:] for rounds in timed]


def contenders(
    folder: Path, arguments: argparse.Namespace
) -> tuple[dict[str, Writer], Callable[[], None] | None]:
    """Those that are installed, on the base in `folder`, made once for the most members; and what
    pushes all members to vLLM."""
    slots = max(arguments.members)
    served, alone, with_peft = (LlamaForCausalLM.from_pretrained(folder).eval() for _ in range(3))
    spec = LoraSpec(RANKS[arguments.shape], 16.0, MODULES)
    bank = make_bank(served, spec, seeds(slots))
    adapters = [bank.read(slot) for slot in range(slots)]
    writers = {
        "torch": by_rollout(TorchRollout(served, bank, frozenset())),
        "generate": by_generate(alone),
    }
    if installed("peft"):
        writers["peft"] = by_peft(with_peft, folder, adapters)
    if not installed("vllm"):
        return writers, None

    options = {
        "max_model_len": max(prompt + tokens for _, prompt, tokens in arguments.cases),
        "max_num_seqs": max(count for count, _, _ in arguments.cases),
    }
    names = tuple(map(str, range(slots)))
    rollout = VllmRollout(EngineSettings(str(folder), names, spec, vllm=options), frozenset())

    def push() -> None:
        for slot, adapter in enumerate(adapters):
            rollout.push(slot, adapter)

    push()
    settings = {"model": str(folder), "dtype": "float32", "skip_tokenizer_init": True}
    settings |= {**vllm_versions.engine_arguments(False), **options}
    bare = vllm_versions.make_llm(settings, on_gpu=False)
    return writers | {"vllm": by_rollout(rollout), "vllm base": by_bare_vllm(bare)}, push


def by_rollout(rollout: Any) -> Writer:
    """A contender with our rollout."""

    def write(prompts: list[list[int]], slots: list[int], tokens: int) -> int:
        groups = rollout.generate(prompts, slots, Sampling(tokens), 1)
        return sum(len(done.token_ids) for group in groups for done in group)

    return write


def by_bare_vllm(llm: Any) -> Writer:
    """vLLM without adapters."""

    def write(prompts: list[list[int]], slots: list[int], tokens: int) -> int:
        requests = [{"prompt_token_ids": prompt} for prompt in prompts]
        parameters = vllm_versions.sampling_params(max_tokens=tokens, temperature=1.0, seed=1)
        outputs = llm.generate(requests, parameters, use_tqdm=False)
        return sum(len(output.outputs[0].token_ids) for output in outputs)

    return write


def by_generate(model: Any, names: Sequence[str] | None = None) -> Writer:
    """transformers' generate; with `names` PEFT's adapters, by slot."""

    def write(prompts: list[list[int]], slots: list[int], tokens: int) -> int:
        input_ids = torch.tensor(prompts)
        mixed = {"adapter_names": [names[slot] for slot in slots]} if names else {}
        with torch.inference_mode():
            written = model.generate(
                input_ids=input_ids, attention_mask=torch.ones_like(input_ids), do_sample=True,
                top_k=0, max_new_tokens=tokens, min_new_tokens=tokens, pad_token_id=0, **mixed,
            )  # fmt: skip
        return written[:, input_ids.shape[1] :].numel()

    return write


def by_peft(model: Any, folder: Path, adapters: Sequence[Any]) -> Writer:
    """PEFT's adapters, read from folders."""
    from peft import PeftModel

    names = [f"member_{slot}" for slot in range(len(adapters))]
    for name, adapter in zip(names, adapters, strict=True):
        save_adapter(adapter, folder / "members" / name, str(folder))
    first = folder / "members" / names[0]
    peft = PeftModel.from_pretrained(model, str(first), adapter_name=names[0])
    for name in names[1:]:
        peft.load_adapter(str(folder / "members" / name), adapter_name=name)
    return by_generate(peft.eval(), names)


if __name__ == "__main__":
    main()
