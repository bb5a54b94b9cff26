"""What a GPU does at Qwen2.5-Coder-7B's shapes, in minutes: python benchmarks/gpu.py

    python benchmarks/gpu.py [--shape 7b] [--device cuda] [--rows 64] [--prompt 512] [--tokens 128]
        [--rank 32] [--repeats 3] [--json benchmarks/results/gpu.json]

Needs torch and this package; with vLLM where it is installed. Weights are drawn on the device, so
nothing is downloaded, and no completion ends early. In turn: the evolution operators, decoding by
one and by eight members, an update of eight members, a step of 4T+4S against one of the single
agent with as many rows in all (the paper's Table 2: 1.31), and what memory the parts take beside
the arithmetic of docs/azr.md. `--shape small --device cpu` shows in seconds that it runs.
"""

from __future__ import annotations

import argparse
import gc
import json
import platform
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch
from operators import Clock, measure
from transformers import Qwen2Config, Qwen2ForCausalLM

from azr_population.config.schema import LearnerConfig
from azr_population.engines import vllm_versions
from azr_population.engines.base_model import keep_freed_memory
from azr_population.engines.data_parallel import DataParallelLearner
from azr_population.engines.engine import Completion, Rollout, Sample, Sampling
from azr_population.engines.torch_engine import make_bank
from azr_population.engines.torch_rollout import TorchRollout
from azr_population.versions import installed
from azr_population.weights.adapter import Adapter, LoraSpec

MEMBERS = 8
SHAPES = {
    "7b": {
        "vocab_size": 152_064, "hidden_size": 3584, "intermediate_size": 18_944,
        "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4,
    },
    "small": {
        "vocab_size": 320, "hidden_size": 128, "intermediate_size": 384,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    },
}  # fmt: skip
MICRO_BATCH_TOKENS = 8192


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shape", choices=SHAPES, default="7b")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--json", type=Path)
    numbers = {"rows": 64, "prompt": 512, "tokens": 128, "rank": 32, "repeats": 3}
    for name, default in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    arguments = parser.parse_args()
    if arguments.device == "cuda" and not torch.cuda.is_available():
        parser.error("torch sees no GPU; --shape small --device cpu shows that this runs")
    if arguments.rows < MEMBERS:
        parser.error(f"--rows={arguments.rows}: {MEMBERS} members need a row each")
    keep_freed_memory()
    started = time.perf_counter()
    machine = Machine(arguments)
    result: dict[str, Any] = {
        "arguments": {key: value for key, value in vars(arguments).items() if key != "json"},
        "device": torch.cuda.get_device_name() if arguments.device == "cuda" else "cpu",
        "python": platform.python_version(),
        **{name: installed(name) for name in ("torch", "transformers", "azr_population")},
        "memory_gb": machine.memory,
    }
    for section in (machine.decoding, machine.update, machine.steps, machine.operators):
        result[section.__name__] = section()
        print(section.__name__, json.dumps(result[section.__name__]), flush=True)
    result["vllm"] = machine.vllm()
    result["seconds"] = round(time.perf_counter() - started)
    print(json.dumps({key: result[key] for key in ("memory_gb", "vllm", "seconds")}, indent=1))
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1) + "\n")


class Machine:
    """A base and eight members on the device, and what is measured of them."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        self._clock = Clock(arguments.device, "wall")
        self._config = Qwen2Config(
            **SHAPES[arguments.shape], max_position_embeddings=8192, eos_token_id=None,
            bos_token_id=None, architectures=["Qwen2ForCausalLM"],
        )  # fmt: skip
        self._dtype = torch.bfloat16 if arguments.device == "cuda" else torch.float32
        self.memory: dict[str, dict[str, float | None]] = {}
        """Gigabytes of each part, as docs/azr.md works them out and as they were measured."""
        model = drawn(self._config, self._dtype, arguments.device)
        each = self._dtype.itemsize
        self._note("base", each * sum(p.numel() for p in model.parameters()), self._held())
        before = self._held()
        seeds = [torch.Generator().manual_seed(slot) for slot in range(MEMBERS)]
        self._spec = LoraSpec(arguments.rank, 2.0 * arguments.rank)
        bank = make_bank(model, self._spec, seeds)
        weights = sum(p.numel() for slot in range(MEMBERS) for p in bank.parameters_of(slot))
        self._note("members in float32", 4 * weights, self._held(before))
        self._weights = weights
        learner = LearnerConfig(
            micro_batch_tokens=MICRO_BATCH_TOKENS, gradient_checkpointing=arguments.shape != "small"
        )
        self._learner = DataParallelLearner(model, bank, learner)
        self._rollout = TorchRollout(model, bank, frozenset())

    def decoding(self) -> dict[str, dict[str, float]]:
        """New tokens a second, by the bare base, one member and eight."""
        told = {"base": self._decode(0), "1 member": self._decode(1), "8 members": self._decode(8)}
        config, arguments = self._config, self._arguments
        head = config.hidden_size // config.num_attention_heads
        a_token = 2 * config.num_hidden_layers * config.num_key_value_heads * head
        tokens = arguments.rows * (arguments.prompt + arguments.tokens)
        cache = a_token * self._dtype.itemsize * tokens
        copies = self._weights * self._dtype.itemsize
        before = self._held()
        peak = self._peak(lambda: self._write(self._rollout, 8))
        # With what a layer makes of a prompt, for which the docs give an upper bound.
        measured = None if peak is None or before is None else peak - before
        self._note("while generating: copies and KV cache, at least", copies + cache, measured)
        return told

    def update(self) -> dict[str, float]:
        """Seconds of an update of eight members; AdamW's moments come with the first."""
        before, samples = self._held(), self._samples(8)
        run = lambda: self._learner.update(samples, dict.fromkeys(samples, 1e-5))  # noqa: E731
        run()
        self._note("AdamW's moments", 8 * self._weights, self._held(before))
        seconds = self._median(run)
        peak = self._peak(run)
        self._note("peak of the update", None, peak)
        tokens = sum(len(s.completion.token_ids) for rows in samples.values() for s in rows)
        return {"seconds": seconds, "trained_tokens_per_second": round(tokens / seconds, 1)}

    def steps(self) -> dict[str, float]:
        """Seconds of a step: proposals, answers, an update on both; as many rows in all arms."""

        def step(members: int) -> None:
            self._write(self._rollout, members)
            self._write(self._rollout, members)
            samples = self._samples(members)
            self._learner.update(samples, dict.fromkeys(samples, 1e-5))

        single, population = (self._median(lambda n=n: step(n)) for n in (1, MEMBERS))
        return {"single": single, "4T+4S": population, "ratio": round(population / single, 3)}

    def operators(self) -> list[dict[str, Any]]:
        """Seconds and peak memory (in members) of each evolution operator."""
        parents = [self._learner.read(slot) for slot in (0, 1)]
        rows, _ = measure(
            parents, self._clock, self._arguments.repeats, self._arguments.device, None
        )
        return [
            {"operator": row["operator"], "seconds": round(row["ours"], 4), "peak": row["peak"]}
            for row in rows
        ]

    def vllm(self) -> dict[str, Any] | str:
        """New tokens a second by vLLM, members mixed; the learner's memory is given back first."""
        if not vllm_versions.is_installed():
            return "not installed"
        from azr_population.engines.vllm_rollout import VllmRollout

        adapters = [on_cpu(self._learner.read(slot)) for slot in range(MEMBERS)]
        del self._learner, self._rollout
        gc.collect()
        on_gpu = self._arguments.device == "cuda"
        if on_gpu:
            torch.cuda.empty_cache()
        with tempfile.TemporaryDirectory() as folder:
            self._config.save_pretrained(folder)
            rollout = VllmRollout(
                folder, MEMBERS, self._spec.rank, frozenset(),
                dtype=str(self._dtype).removeprefix("torch."), on_gpu=on_gpu,
                options={"load_format": "dummy", "max_model_len": self._longest()},
            )  # fmt: skip
        push = self._clock(lambda: [rollout.push(s, a) for s, a in enumerate(adapters)])
        figures = {f"{count} members": self._decode(count, rollout) for count in (1, MEMBERS)}
        version = ".".join(map(str, vllm_versions.version()))
        return {"version": version, **figures, "seconds_to_push_8": round(push, 3)}

    def _longest(self) -> int:
        return int(self._arguments.prompt + self._arguments.tokens)

    def _decode(self, members: int, rollout: Rollout | None = None) -> dict[str, float]:
        seconds = self._median(lambda: self._write(rollout or self._rollout, members))
        tokens = self._arguments.rows * self._arguments.tokens
        return {"seconds": seconds, "tokens_per_second": round(tokens / seconds, 1)}

    def _write(self, rollout: Rollout, members: int) -> None:
        prompts = words(self._config, self._arguments.rows, self._arguments.prompt)
        rollout.generate(prompts, self._slots(members), Sampling(self._arguments.tokens), 1)

    def _slots(self, members: int) -> list[int]:
        """The slot of each row; -1, the bare base, without members."""
        rows = self._arguments.rows
        return [row * members // rows if members else -1 for row in range(rows)]

    def _samples(self, members: int) -> dict[int, list[Sample]]:
        """Rows as wide as what is generated, worth something by turns."""
        prompt, samples = self._arguments.prompt, dict[int, list[Sample]]()
        rows = words(self._config, self._arguments.rows, self._longest())
        for place, (slot, ids) in enumerate(zip(self._slots(members), rows, strict=True)):
            likely = (-torch.tensor(float(self._config.vocab_size)).log().item(),)
            done = Completion(
                slot, tuple(ids[:prompt]), tuple(ids[prompt:]), likely * (len(ids) - prompt), False
            )
            samples.setdefault(slot, []).append(Sample(done, 1.0 if place % 2 else -1.0))
        return samples

    def _median(self, run: Callable[[], object]) -> float:
        """Seconds; the first call warms up."""
        self._clock(run)
        return round(median(self._clock(run) for _ in range(self._arguments.repeats)), 4)

    def _held(self, before: float | None = 0.0) -> float | None:
        """Bytes that torch holds on the GPU beyond `before`; None on a CPU."""
        if self._arguments.device != "cuda" or before is None:
            return None
        torch.cuda.synchronize()
        return torch.cuda.memory_allocated() - before

    def _peak(self, run: Callable[[], object]) -> float | None:
        if self._arguments.device != "cuda":
            run()
            return None
        torch.cuda.reset_peak_memory_stats()
        self._clock(run)
        return float(torch.cuda.max_memory_allocated())

    def _note(self, part: str, expected: float | None, measured: float | None) -> None:
        self.memory[part] = {
            "by arithmetic": None if expected is None else round(expected / 1e9, 3),
            "measured": None if measured is None else round(measured / 1e9, 3),
        }


def drawn(config: Qwen2Config, dtype: torch.dtype, device: str) -> Qwen2ForCausalLM:
    """A model whose weights are drawn where they are to lie."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    torch.manual_seed(0)
    try:
        with torch.device(device):
            return Qwen2ForCausalLM(config).eval()
    finally:
        torch.set_default_dtype(before)


def words(config: Qwen2Config, rows: int, length: int) -> list[list[int]]:
    """Random token ids, the same at each call."""
    generator = torch.Generator().manual_seed(0)
    return torch.randint(0, config.vocab_size, (rows, length), generator=generator).tolist()


def on_cpu(adapter: Adapter) -> Adapter:
    """A copy that outlives the device's memory."""
    factors = {name: type(p)(p.A.cpu(), p.B.cpu()) for name, p in adapter.factors.items()}
    return Adapter(adapter.spec, factors)


if __name__ == "__main__":
    main()
