"""What a GPU does at Qwen2.5-Coder-7B's shapes, in minutes: python benchmarks/gpu.py

    python benchmarks/gpu.py [--shape 7b] [--device cuda] [--rows 8] [--prompt 512] [--tokens 128]
        [--longest 14240] [--rank 32] [--repeats 3] [--minutes 9] [--json gpu.json]

Needs torch, transformers and this package, and no network; uses vLLM if it is installed. Weights
are random, and no completion ends early. `--rows` is per member, the same for one member as for
eight, as in the paper's Table 2. In turn: decoding; an update; the longest row scored
and learned from; a step of 4T+4S against the single agent's (Table 2: 1.31); prime-rl's row (one
adapter of rank 16, Qwen3-0.6B's shapes, 16k tokens: 13,342 tokens/s at 5.1 GiB on one H100) for one
member and for eight; the evolution operators; learner and vLLM in memory together through one cycle
(sample, sleep, learn, wake, push, canary, sample). A section that fails says so, and the
others continue; the JSON is written after each. `--shape small --device cpu` is a quick check.
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
from drawn import SHAPES, described, drawn, seeds, tokenizer, words
from operators import Clock, measure

from azr_population.config.schema import LearnerConfig
from azr_population.engines import memory, vllm_versions
from azr_population.engines.base_model import keep_freed_memory
from azr_population.engines.canary import Canary
from azr_population.engines.engine import (
    Completion,
    Hyperparameters,
    Rollout,
    Sampling,
    TrainingSample,
)
from azr_population.engines.local import LocalEngine
from azr_population.engines.memory import Architecture, Load
from azr_population.engines.torch_learner import TorchLearner
from azr_population.engines.torch_rollout import TorchRollout, make_bank
from azr_population.errors import first_line
from azr_population.versions import installed
from azr_population.weights.adapter import LoraSpec

MEMBERS = 8
PRIME = {"tokens_per_second": 13_342.0, "gib": 5.1}
"""prime-rl's row on one H100, one adapter."""
TABLE_2 = 1.31
MICRO_BATCH_TOKENS = 8192


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shape", choices=SHAPES, default="7b")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--json", type=Path)
    numbers = {"rows": 8, "prompt": 512, "tokens": 128, "longest": 14_240, "prime": 16_384,
               "rank": 32, "repeats": 3, "minutes": 9}  # fmt: skip
    for name, default in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    arguments = parser.parse_args()
    if arguments.device == "cuda" and not torch.cuda.is_available():
        parser.error("torch sees no GPU; --shape small --device cpu shows that this runs")
    keep_freed_memory()
    started = time.perf_counter()
    result: dict[str, Any] = {
        "arguments": {key: value for key, value in vars(arguments).items() if key != "json"},
        "device": torch.cuda.get_device_name() if arguments.device == "cuda" else "cpu",
        "python": platform.python_version(),
        **{name: installed(name) for name in ("torch", "transformers", "azr_population")},
        "vllm": next(filter(None, map(installed, vllm_versions.DISTRIBUTIONS)), None),
    }
    machine = Machine(arguments)
    for section in (
        machine.decoding,
        machine.update,
        machine.longest,
        machine.steps,
        machine.prime,
        machine.operators,
        machine.cycle,
    ):
        name = section.__name__
        if time.perf_counter() - started > 60 * arguments.minutes:
            result[name] = {"left out": f"--minutes={arguments.minutes} were over"}
        else:
            result[name] = attempt(section)
        result["memory_gb"] = machine.memory
        result["seconds"] = round(time.perf_counter() - started)
        print(name, json.dumps(result[name]), flush=True)
        if arguments.json:
            arguments.json.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps({key: result[key] for key in ("memory_gb", "seconds")}, indent=1))


def attempt(section: Callable[[], Any]) -> Any:
    """A section's figures, or why it failed; frees its memory."""
    try:
        return section()
    except Exception as error:
        # Out of memory or a missing kernel is a result too. The other sections continue.
        return {"failed": f"{type(error).__name__}: {first_line(error)}"}
    finally:
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


class Machine:
    """A base and eight members on the device, and the measurements."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        self._clock = Clock(arguments.device, "wall")
        self._config = described(arguments.shape, "base")
        self._dtype = torch.bfloat16 if arguments.device == "cuda" else torch.float32
        self._deep = arguments.shape != "small"
        self.memory: dict[str, dict[str, float | None]] = {}
        """Gigabytes of each part: estimated by `engines/memory.py`, and measured."""
        architecture = Architecture.of(self._config)
        assert architecture is not None
        response = arguments.longest * 8096 // 14_240
        self._load = Load(
            architecture, MEMBERS, arguments.rank, arguments.longest - response, response,
            size=self._dtype.itemsize, piece=MICRO_BATCH_TOKENS if self._deep else 1,
            checkpointing=self._deep,
        )  # fmt: skip
        model = drawn(self._config, self._dtype, arguments.device)
        self._note("base", memory.base_bytes(self._load), self._held())
        before = self._held()
        self._spec = LoraSpec(arguments.rank, 2.0 * arguments.rank)
        bank = make_bank(model, self._spec, seeds())
        self._note("members in float32", 4.0 * MEMBERS * self._load.member, self._held(before))
        self._learner = TorchLearner(model, bank, self._settings(), parallel=True)
        self._rollout = TorchRollout(model, bank, frozenset())

    def _settings(self) -> LearnerConfig:
        return LearnerConfig(
            micro_batch_tokens=MICRO_BATCH_TOKENS, gradient_checkpointing=self._deep
        )

    def decoding(self) -> dict[str, dict[str, float]]:
        """New tokens a second of the bare base, one member and eight; `rows` is per member."""
        speeds = {
            "base": self._decode(0),
            "1 member": self._decode(1),
            "8 members": self._decode(8),
        }
        before = self._held()
        peak = self._peak(lambda: self._write(self._rollout, 8))
        rows = MEMBERS * self._arguments.rows * (self._arguments.prompt + self._arguments.tokens)
        cache = self._load.architecture.cache * self._dtype.itemsize * rows
        measured = None if peak is None or before is None else peak - before
        # Including a layer's activations for a prompt.
        self._note("while generating: copies and KV cache, at least",
                   memory.copies_bytes(self._load) + cache, measured)  # fmt: skip
        return speeds

    def update(self) -> dict[str, float]:
        """Seconds of an update of eight members; the first allocates AdamW's moments."""
        before, samples = self._held(), self._samples(8)
        run = lambda: self._learner.update(samples, dict.fromkeys(samples, Hyperparameters(1e-5)))  # noqa: E731
        run()
        self._note("AdamW's moments", 8.0 * MEMBERS * self._load.member, self._held(before))
        seconds = self._median(run)
        tokens = sum(len(s.completion.token_ids) for rows in samples.values() for s in rows)
        return {"seconds": seconds, "trained_tokens_per_second": round(tokens / seconds, 1)}

    def longest(self) -> dict[str, float]:
        """Seconds of scoring the longest row of AZR's 7B command, and of learning from it."""
        load, (ids,) = self._load, words(self._config, 1, self._load.row)
        sample = self._sample(0, ids, load.prompt, 1.0)
        prompt, answer = sample.completion.prompt_ids, sample.completion.token_ids
        runs = {
            "score": lambda: self._learner.log_probs([prompt], [answer], [0]),
            # Twice, so that accumulated gradients are in memory during the second.
            "update": lambda: self._learner.update({0: [sample] * 2}, {0: Hyperparameters(1e-5)}),
        }
        expected = {"score": memory.score_peak(load), "update": memory.update_peak(load)}
        seconds = {}
        for name, run in runs.items():
            before = self._held()
            peak = self._peak(run)
            measured = None if peak is None or before is None else peak - before
            self._note(f"peak of the longest row, {name}", expected[name], measured)
            seconds[f"seconds to {name}"] = self._clock(run)
        return {"tokens": load.row, **{name: round(value, 4) for name, value in seconds.items()}}

    def steps(self) -> dict[str, float]:
        """Seconds of a step: proposals, answers, an update on both; `rows` is per member."""

        def step(members: int) -> None:
            self._write(self._rollout, members)
            self._write(self._rollout, members)
            samples = self._samples(members)
            self._learner.update(samples, dict.fromkeys(samples, Hyperparameters(1e-5)))

        single, population = (self._median(lambda n=n: step(n)) for n in (1, MEMBERS))
        ratio = round(population / single, 3)
        return {"single": single, "4T+4S": population, "ratio": ratio, "table 2": TABLE_2}

    def prime(self) -> dict[str, Any]:
        """Tokens a second and peak GiB of an update, for one member and for eight, a row each."""
        figures: dict[str, Any] = {"prime-rl, 1 adapter, H100": PRIME}
        config = described(self._arguments.shape, "prime")
        for members in (1, MEMBERS):
            before = self._held()
            model = drawn(config, self._dtype, self._arguments.device)
            bank = make_bank(model, LoraSpec(16, 32.0), seeds(members))
            learner = TorchLearner(model, bank, self._settings(), parallel=True)
            rows = words(config, members, self._arguments.prime)
            samples = {slot: [self._sample(slot, ids, 64, 1.0)] for slot, ids in enumerate(rows)}
            run = lambda: learner.update(samples, dict.fromkeys(samples, Hyperparameters(1e-5)))  # noqa: E731, B023
            run()
            seconds, peak = self._median(run), self._peak(run)
            gib = None if peak is None or before is None else round((peak - before) / 2**30, 2)
            speed = round(members * self._arguments.prime / seconds, 1)
            figures[f"{members} members"] = {"tokens_per_second": speed, "gib": gib}
        return figures

    def operators(self) -> list[dict[str, Any]]:
        """Seconds of each evolution operator."""
        parents = [self._learner.read(slot) for slot in (0, 1)]
        return measure(parents, self._clock, self._arguments.repeats, None)

    def cycle(self) -> dict[str, Any]:
        """A step's sequence with the sampler and the learner in memory together: seconds of each
        part, and each member's canary distance (nats a token)."""
        if not vllm_versions.is_installed():
            return {"sampler": "torch", **self._cycle(self._rollout)}
        from azr_population.engines.vllm_rollout import VllmRollout

        on_gpu = self._arguments.device == "cuda"
        with tempfile.TemporaryDirectory() as folder:
            self._config.save_pretrained(folder)
            # vLLM reads the learner's weights; V1 needs a tokenizer too.
            self._learner.model.save_pretrained(folder)
            tokenizer().save_pretrained(folder)
            rollout = VllmRollout(
                folder, MEMBERS, self._spec.rank, frozenset(),
                dtype=str(self._dtype).removeprefix("torch."), on_gpu=on_gpu,
                options={"max_model_len": self._longest(), "gpu_memory_utilization": 0.4}
                if on_gpu else {"max_model_len": self._longest()},
            )  # fmt: skip
            figures = self._cycle(rollout)
            for members in (1, MEMBERS):
                figures[f"{members} members"] = self._decode(members, rollout)
            rollout.close()
        return {"sampler": "vllm", **figures}

    def _cycle(self, rollout: Rollout) -> dict[str, Any]:
        samples, seconds = self._samples(MEMBERS), dict[str, float]()
        engine = LocalEngine(rollout, self._learner)
        canary = Canary(words(self._config, 1, min(160, self._longest() // 2))[0],
                        [f"member {slot}" for slot in range(MEMBERS)],
                        str(self._dtype).removeprefix("torch."))  # fmt: skip
        seconds["push"] = self._clock(lambda: engine.push(range(MEMBERS)))
        seconds["sample"] = self._clock(lambda: self._write(rollout, MEMBERS))
        seconds["sleep, learn, wake, push"] = self._clock(
            lambda: engine.update(samples, dict.fromkeys(samples, Hyperparameters(1e-5)))
        )
        distances = canary.check(rollout, self._learner, range(MEMBERS))
        seconds["sample again"] = self._clock(lambda: self._write(rollout, MEMBERS))
        return {
            "seconds": {name: round(value, 4) for name, value in seconds.items()},
            "canary": {str(slot): round(value, 5) for slot, value in distances.items()},
            "free_gb": self._free(),
        }

    def _free(self) -> float | None:
        if self._arguments.device != "cuda":
            return None
        return round(torch.cuda.mem_get_info()[0] / 1e9, 2)

    def _longest(self) -> int:
        return max(320, int(self._arguments.prompt + self._arguments.tokens))

    def _decode(self, members: int, rollout: Rollout | None = None) -> dict[str, float]:
        seconds = self._median(lambda: self._write(rollout or self._rollout, members))
        tokens = len(self._slots(members)) * self._arguments.tokens
        return {"seconds": seconds, "tokens_per_second": round(tokens / seconds, 1)}

    def _write(self, rollout: Rollout, members: int) -> None:
        slots = self._slots(members)
        prompts = words(self._config, len(slots), self._arguments.prompt)
        rollout.generate(prompts, slots, Sampling(self._arguments.tokens), 1)

    def _slots(self, members: int) -> list[int]:
        """The slot of each row, as many for each member; -1, the bare base, without members."""
        rows = self._arguments.rows
        return [row // rows for row in range(rows * members)] if members else [-1] * rows

    def _samples(self, members: int) -> dict[int, list[TrainingSample]]:
        """Samples as long as generated rows, with rewards 1 and 0 in turn."""
        slots, samples = self._slots(members), dict[int, list[TrainingSample]]()
        width = self._arguments.prompt + self._arguments.tokens
        for place, (slot, ids) in enumerate(
            zip(slots, words(self._config, len(slots), width), strict=True)
        ):
            worth = 1.0 if place % 2 else -1.0
            samples.setdefault(slot, []).append(
                self._sample(slot, ids, self._arguments.prompt, worth)
            )
        return samples

    def _sample(self, slot: int, ids: list[int], prompt: int, worth: float) -> TrainingSample:
        likely = (-torch.tensor(float(self._config.vocab_size)).log().item(),)
        answer = tuple(ids[prompt:])
        done = Completion(slot, tuple(ids[:prompt]), answer, likely * len(answer), False)
        return TrainingSample(done, worth)

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
            "by arithmetic": None if expected is None else round(expected / 1e9, 6),
            "measured": None if measured is None else round(measured / 1e9, 6),
        }


if __name__ == "__main__":
    main()
