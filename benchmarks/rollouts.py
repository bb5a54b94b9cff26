"""What samples fastest with live members: python benchmarks/rollouts.py

    python benchmarks/rollouts.py [--cases 32x64x32 128x512x128] [--members 1 8] [--shape smollm2]
        [--dtype float32] [--threads 1] [--rounds 3] [--clock wall] [--json FILE]

A case is rows x prompt x new tokens. A random model of SmolLM2's (or the nano base's) shape writes:

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
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import torch
from drawn import LLAMAS, llama
from transformers import LlamaForCausalLM

from azr_population.engines import vllm_versions
from azr_population.engines.engine import Sampling
from azr_population.engines.torch_rollout import TorchRollout, make_bank
from azr_population.versions import installed
from azr_population.weights.adapter import LoraSpec
from azr_population.weights.peft_folder import save_adapter

RANKS = {"smollm2": 16, "nano": 8}
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
MODULES = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
FIRST_WORD = 10
"""Lower ids may be special."""

Case = tuple[int, int, int]
Writer = Callable[[list[list[int]], list[int], int], int]
"""Samples that many tokens after each prompt by the slot's member; returns their number."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", nargs="+", type=case, default=[(32, 64, 32), (128, 512, 128)])
    parser.add_argument("--members", nargs="+", type=int, default=[1, 8])
    parser.add_argument("--shape", choices=LLAMAS, default="smollm2")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clock", choices=CLOCKS, default="wall")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    with tempfile.TemporaryDirectory() as folder:
        llama(arguments.shape, getattr(torch, arguments.dtype)).save_pretrained(folder)
        table = Table(Path(folder), arguments)
        result = {
            "command": " ".join(["python benchmarks/rollouts.py", *sys.argv[1:]]).split(" --json")[
                0
            ],
            "python": platform.python_version(),
            **{name: installed(name) for name in ("torch", "transformers", "peft")},
            "vllm": vllm_versions.is_installed() and ".".join(map(str, vllm_versions.version())),
            "rows": list(table.rows()),
            "push_seconds": table.pushes(),
        }
    print(json.dumps(result, indent=1))
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1) + "\n")


def case(text: str) -> Case:
    """`32x64x32` as numbers."""
    rows, prompt, tokens = map(int, text.split("x"))
    return rows, prompt, tokens


class Table:
    """The figures: contenders on the base in `folder`, made once for the most members."""

    def __init__(self, folder: Path, arguments: argparse.Namespace) -> None:
        self._folder, self._arguments = folder, arguments
        self._clock = CLOCKS[arguments.clock]
        dtype = getattr(torch, arguments.dtype)
        slots = max(arguments.members)

        def base() -> Any:
            return LlamaForCausalLM.from_pretrained(folder).to(dtype).eval()

        spec = LoraSpec(RANKS[arguments.shape], 16.0, MODULES)
        seeds = [torch.Generator().manual_seed(slot) for slot in range(slots)]
        bank = make_bank(served := base(), spec, seeds)
        self._adapters = [bank.read(slot) for slot in range(slots)]
        self._vllm: Any = None
        self._writers: dict[str, Writer] = {
            "torch": by_rollout(TorchRollout(served, bank, frozenset())),
            "generate": by_generate(base()),
        }
        if installed("peft"):
            self._writers["peft"] = by_peft(base(), folder, self._adapters)
        if vllm_versions.is_installed():
            self._vllm = self._start_vllm(slots, spec.rank)
            self._writers["vllm"] = by_rollout(self._vllm)
            self._writers["vllm base"] = by_bare_vllm(self._bare_vllm())

    def rows(self) -> Iterator[dict[str, Any]]:
        """One for each case and number of members."""
        for rows, prompt, tokens in self._arguments.cases:
            for members in self._arguments.members:
                generator = torch.Generator().manual_seed(rows)
                words = (FIRST_WORD, LLAMAS[self._arguments.shape]["vocab_size"])
                prompts = torch.randint(*words, (rows, prompt), generator=generator).tolist()
                slots = [row * members // rows for row in range(rows)]
                speeds = self._speeds(prompts, slots, tokens)
                row = {
                    "case": f"{rows} x ({prompt} + {tokens})",
                    "members": members,
                    "tokens_per_second": {name: round(speed, 1) for name, speed in speeds.items()},
                    "ratio_to_torch": {
                        name: round(speed / speeds["torch"], 2) for name, speed in speeds.items()
                    },
                }
                print(json.dumps(row), file=sys.stderr, flush=True)
                yield row

    def pushes(self) -> float | None:
        """Median seconds of pushing all members to vLLM."""
        if self._vllm is None:
            return None
        seconds = []
        for _ in range(self._arguments.rounds + 1):
            start = self._clock()
            for slot, adapter in enumerate(self._adapters):
                self._vllm.push(slot, adapter)
            seconds.append(self._clock() - start)
        return round(median(seconds[1:]), 4)

    def _speeds(self, prompts: list[list[int]], slots: list[int], tokens: int) -> dict[str, float]:
        """Median new tokens a second; the first round is warm-up with two tokens."""
        speeds: dict[str, list[float]] = {name: [] for name in self._writers}
        for write in self._writers.values():
            write(prompts, slots, 2)
        for _ in range(self._arguments.rounds):
            for name, write in self._writers.items():
                start = self._clock()
                written = write(prompts, slots, tokens)
                speeds[name].append(written / (self._clock() - start))
        return {name: median(each) for name, each in speeds.items()}

    def _start_vllm(self, slots: int, rank: int) -> Any:
        from azr_population.engines.vllm_rollout import VllmRollout

        rollout = VllmRollout(
            self._folder, slots, rank, frozenset(),
            dtype=self._arguments.dtype, on_gpu=False, options=self._options(),
        )  # fmt: skip
        for slot, adapter in enumerate(self._adapters):
            rollout.push(slot, adapter)
        return rollout

    def _bare_vllm(self) -> Any:
        return vllm_versions.make_llm({
            "model": str(self._folder), "dtype": self._arguments.dtype,
            "skip_tokenizer_init": True, **vllm_versions.engine_arguments(False), **self._options(),
        })  # fmt: skip

    def _options(self) -> dict[str, Any]:
        longest = max(prompt + tokens for _, prompt, tokens in self._arguments.cases)
        rows = max(rows for rows, _, _ in self._arguments.cases)
        return {"max_model_len": longest, "max_num_seqs": rows}


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
