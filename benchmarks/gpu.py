"""What one GPU of 80 to 141 GB does, in 40 minutes: python benchmarks/gpu.py --json gpu.json

    python benchmarks/gpu.py [--parts decoding_7b,step] [--device cuda] [--rows 256] [--prompt 512]
        [--tokens 128] [--longest 14240] [--rank 32] [--repeats 3] [--minutes 40] [--json FILE]

Needs torch, transformers and this package, and no network; with vLLM and bitsandbytes where they
are installed. Weights of Qwen2.5-Coder's shapes are drawn on the spot; no completion ends early.
Parts come in order of worth (`PARTS`). Each has a process of its own and a time limit, so that one
that fails, hangs or spoils the GPU costs itself only, and what it had measured is kept. The JSON is
written after each part. `--shape small --device cpu` shows that it runs.
"""

from __future__ import annotations

import argparse
import gc
import json
import multiprocessing
import platform
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import torch
from drawn import SHAPES, described, drawn, seeds, tokenizer, words
from operators import Clock, measure

from azr_population.config.schema import LearnerConfig
from azr_population.engines import memory, vllm_versions
from azr_population.engines.base_model import load_base
from azr_population.engines.canary import Canary, random_adapter
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
from azr_population.weights import routing
from azr_population.weights.adapter import Adapter, Factors, LoraSpec
from azr_population.weights.bank import layer_shape, target_layers

MEMBERS = 8
TABLE_2 = 1.31
"""A step of 4T+4S in the paper, in steps of the single agent's."""
AIM = 0.9
"""Of one member's tokens a second, with eight in the same batch."""
MICRO_BATCH_TOKENS = 8192
Measured = Iterator[tuple[str, Any]]
"""What a part yields: a name and a figure, as soon as it has it."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", default=",".join(PARTS), metavar="NAMES")
    parser.add_argument("--shape", choices=SHAPES, help="of all parts; without it, each part's own")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--json", type=Path)
    numbers = {"rows": 256, "prompt": 512, "tokens": 128, "longest": 14_240, "rank": 32,
               "repeats": 3}  # fmt: skip
    for name, default in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--minutes", type=float, default=40)
    arguments = parser.parse_args()
    started = time.perf_counter()
    result: dict[str, Any] = {
        "arguments": {key: value for key, value in vars(arguments).items() if key != "json"},
        "python": platform.python_version(),
        **{name: installed(name) for name in ("torch", "transformers", "azr_population")},
        "vllm": next(filter(None, map(installed, vllm_versions.DISTRIBUTIONS)), None),
    }
    for name in arguments.parts.split(","):
        left = 60 * arguments.minutes - (time.perf_counter() - started)
        limit = min(60 * PARTS[name][0], left)
        result[name] = played(name, arguments, limit) if left > 0 else {"left out": "no time left"}
        result["seconds"] = round(time.perf_counter() - started)
        print(name, json.dumps(result[name]), flush=True)
        if arguments.json:
            arguments.json.write_text(json.dumps(result, indent=1) + "\n")


def played(name: str, arguments: argparse.Namespace, limit: float) -> dict[str, Any]:
    """What the part measures within `limit` seconds, in a process of its own."""
    # A process that has used CUDA cannot be forked; on a CPU a fork saves the imports.
    processes = multiprocessing.get_context("spawn" if arguments.device == "cuda" else "fork")
    ours, theirs = processes.Pipe(duplex=False)
    process = processes.Process(target=_play, args=(name, arguments, theirs))
    end, figures = time.monotonic() + limit, dict[str, Any]()
    process.start()
    theirs.close()
    try:
        while ours.poll(max(0.0, end - time.monotonic())):
            figure, value = ours.recv()
            figures[figure] = value
        figures["stopped"] = f"after {limit:.0f} s"
    except EOFError:
        process.join()
        if process.exitcode:
            figures["failed"] = f"exit code {process.exitcode}"
    process.kill()
    process.join()
    return figures


def _play(name: str, arguments: argparse.Namespace, pipe: Any) -> None:
    _, part, shape = PARTS[name]
    try:
        for figure in part(Machine(arguments, arguments.shape or shape)):
            pipe.send(figure)
    except Exception as error:
        # Out of memory, a kernel that is not there: what a benchmark is for. The rest goes on.
        pipe.send(("failed", f"{type(error).__name__}: {first_line(error)}"))
    pipe.close()


class Machine:
    """The device, a shape, and what is measured of them."""

    def __init__(self, arguments: argparse.Namespace, shape: str) -> None:
        self._arguments = arguments
        self._on_gpu = arguments.device == "cuda"
        self._clock = Clock(arguments.device, "wall")
        self._config = described(shape)
        self._dtype = torch.bfloat16 if self._on_gpu else torch.float32
        self._spec = LoraSpec(arguments.rank, 2.0 * arguments.rank)
        architecture = Architecture.of(self._config)
        assert architecture is not None
        response = arguments.longest * 8096 // 14_240
        self._load = Load(
            architecture, MEMBERS, arguments.rank, arguments.longest - response, response,
            size=self._dtype.itemsize, products=self._dtype.itemsize,
            piece=MICRO_BATCH_TOKENS if self._on_gpu else 1, on_gpu=self._on_gpu,
        )  # fmt: skip

    def bank(self) -> Measured:
        """A forward of the bare base, and how often it is with eight members, by both ways of
        routing; then the evolution operators."""
        if self._on_gpu:
            yield "device", torch.cuda.get_device_name()
        learner = self._learner()
        for rows, tokens in ((1, 1), (32, 1), (4, 128)):
            slots = torch.arange(MEMBERS).repeat_interleave(rows)
            ids = torch.zeros(len(slots), tokens, dtype=torch.long, device=self._arguments.device)
            forward = torch.inference_mode()(lambda ids=ids: learner.model(ids, use_cache=False))
            bare = self._median(forward)
            figures = {"seconds of the base": bare}
            for way, most in (("by segments", 0), ("grouped", 10**9)):
                routing.GROUPED_TOKENS_EVEN = most
                with learner.bank.adapters_active(slots, self._dtype):
                    figures[way] = round(self._median(forward) / bare, 3)
            yield f"{rows} rows of {tokens} tokens a member", figures
        parents = [learner.read(slot) for slot in (0, 1)]
        yield "operators", measure(parents, self._clock, self._arguments.repeats, None)

    def decoding(self) -> Measured:
        """New tokens a second of the same rows by the bare base and by 1, 2, 4 and 8 members, by
        torch and by vLLM; and a sleep of vLLM's."""
        samplers: dict[str, Callable[[], Any]] = {"torch": self._torch}
        if vllm_versions.is_installed():
            samplers["vllm"] = lambda: self._vllm(load_format="dummy")
        for name, made in samplers.items():
            with made() as rollout:
                speeds = {}
                for members in (0, 1, 2, 4, MEMBERS):
                    seconds = self._median(lambda m=members, r=rollout: self._write(r, m))
                    tokens = self._arguments.rows * self._arguments.tokens
                    speeds[members] = round(tokens / seconds, 1)
                    yield f"{name}, {members} members", {"tokens_per_second": speeds[members]}
                ratio = round(speeds[MEMBERS] / speeds[1], 3)
                yield f"{name}, {MEMBERS} members to 1", {"ratio": ratio, "aim": AIM}
                if name == "vllm":
                    yield "vllm, seconds to sleep and wake", self._clock(lambda r=rollout: _nap(r))

    def step(self) -> Measured:
        """Seconds of a step: proposals, answers, an update on both; rows are a member's."""
        learner = self._learner()
        rollout = TorchRollout(learner.model, learner.bank, frozenset())
        rows, seconds = max(1, self._arguments.rows // MEMBERS), {}
        for members, name in ((1, "single"), (MEMBERS, "4T+4S")):
            samples = self._samples(members, rows)

            def played(members: int = members, samples: Any = samples) -> None:
                for _ in range(2):
                    self._write(rollout, members, rows * members)
                learner.update(samples, dict.fromkeys(samples, Hyperparameters(1e-5)))

            seconds[name] = self._median(played)
            yield name, {"seconds": seconds[name], "rows": 2 * rows * members}
        ratio = round(seconds["4T+4S"] / seconds["single"], 3)
        yield "4T+4S to single", {"ratio": ratio, "table 2": TABLE_2}

    def cycle(self) -> Measured:
        """A step's sequence with the sampler and the learner on one GPU, the learner staying there
        and offloaded: seconds of each part, each member's canary distance, memory left."""
        for offload in (False, True) if vllm_versions.is_installed() else (False,):
            learner = self._learner(offload=offload)
            rollout = self._vllm(learner) if vllm_versions.is_installed() else self._torch(learner)
            with rollout as sampler:
                engine = LocalEngine(sampler, learner)
                canary = Canary(words(self._config, 1, min(160, self._arguments.prompt))[0],
                                [f"member {slot}" for slot in range(MEMBERS)],
                                str(self._dtype).removeprefix("torch."))  # fmt: skip
                samples = self._samples(MEMBERS, 2)
                rates = dict.fromkeys(samples, Hyperparameters(1e-5))
                seconds = {
                    "push": self._clock(lambda e=engine: e.push(range(MEMBERS))),
                    "sample": self._clock(lambda s=sampler: self._write(s, MEMBERS)),
                    "sleep, learn, wake, push": self._clock(
                        lambda e=engine, s=samples, r=rates: e.update(s, r)
                    ),
                }
                distances = canary.check(sampler, learner, range(MEMBERS))
                seconds["sample again"] = self._clock(lambda s=sampler: self._write(s, MEMBERS))
                free = torch.cuda.mem_get_info()[0] / 1e9 if self._on_gpu else None
                yield (
                    "offloaded" if offload else "resident",
                    {
                        "seconds": {name: round(value, 4) for name, value in seconds.items()},
                        "canary": {str(slot): round(value, 5) for slot, value in distances.items()},
                        "free_gb": free,
                    },
                )

    def memory(self) -> Measured:
        """Gigabytes of each part, by `engines/memory.py` and as measured; None on a CPU."""
        load, before = self._load, self._held()
        model = drawn(self._config, self._dtype, self._arguments.device)
        yield "base", self._both(memory.base_bytes(load), before)
        before = self._held()
        bank = make_bank(model, self._spec, seeds())
        parts = memory.learner_bytes(load)
        yield "members, float32", self._both(parts["members, float32"], before)
        learner = TorchLearner(model, bank, self._settings(), parallel=True)
        samples = self._samples(MEMBERS, 2)
        rates = dict.fromkeys(samples, Hyperparameters(1e-5))
        before = self._held()
        learner.update(samples, rates)
        yield "AdamW's moments", self._both(parts["AdamW's moments"], before)
        ids = words(self._config, 1, load.row)[0]
        sample = self._sample(0, ids, load.prompt, 1.0)
        prompt, answer = sample.completion.prompt_ids, sample.completion.token_ids
        # Copies stay after they were made once; two rows, for a sum of gradients beside the second.
        learner.log_probs([prompt[:8]], [answer[:8]], [0])
        for name, expected, run in (
            ("score", memory.score_peak(load), lambda: learner.log_probs([prompt], [answer], [0])),
            ("update", memory.update_peak(load), lambda: learner.update({0: [sample] * 2}, rates)),
        ):
            before = self._held()
            if self._on_gpu:
                torch.cuda.reset_peak_memory_stats()
            seconds = self._clock(run)
            peak = torch.cuda.max_memory_allocated() if self._on_gpu else 0
            yield f"peak of the longest row, {name}", {
                **self._both(expected, before, peak), "seconds": round(seconds, 4)
            }  # fmt: skip
        del learner, bank, model
        before = self._held()
        learner = self._learner(offload=True)
        learner.update(samples, rates)
        yield "an offloaded learner, at rest", self._both(0.0, before)

    def nf4(self) -> Measured:
        """The base in NF4 beside the same in full: bytes, new tokens a second, an update."""
        with self._folder(drawn(self._config, self._dtype, self._arguments.device)) as folder:
            for quantization in (None, "nf4"):
                before, name = self._held(), quantization or str(self._dtype).removeprefix("torch.")
                model, _ = load_base(folder, str(self._dtype).removeprefix("torch."),
                                     self._arguments.device, quantization=quantization)  # fmt: skip
                expected = replace(self._load, nf4=bool(quantization)).weights
                yield f"{name}, memory", self._both(expected, before)
                bank = make_bank(model, self._spec, seeds())
                learner = TorchLearner(model, bank, self._settings(), parallel=True)
                rollout = TorchRollout(model, bank, frozenset())
                samples = self._samples(MEMBERS, 2)
                rates = dict.fromkeys(samples, Hyperparameters(1e-5))
                seconds = self._median(lambda r=rollout: self._write(r, MEMBERS))
                tokens = self._arguments.rows * self._arguments.tokens
                yield (
                    f"{name}, speed",
                    {
                        "tokens_per_second": round(tokens / seconds, 1),
                        "seconds of an update": self._median(
                            lambda e=learner, s=samples, r=rates: e.update(s, r)
                        ),
                    },
                )
                del model, bank, learner, rollout

    def calls(self) -> Measured:
        """A step's rows in nine calls of the sampler, as AZR's loop makes them, and in two. Lengths
        are spread as `engines/throughput.py` assumes."""
        rows = max(1, self._arguments.rows // 4)
        kinds = {"propose": rows, "solve": rows, "estimate": 4 * rows}
        batches, first = [], 0
        for _ in range(3):
            for kind, count in kinds.items():
                batches.append((kind, range(first, first + count)))
                first += count
        together = [
            [row for kind, batch in batches if (kind == "estimate") == estimates for row in batch]
            for estimates in (False, True)
        ]
        mean, slots = self._arguments.tokens, [row % MEMBERS for row in range(first)]
        limits = [max(1, round(3 * mean * ((row * 7919 % first) / first) ** 2))
                  for row in range(first)]  # fmt: skip
        prompts = words(self._config, first, self._arguments.prompt)
        sampler = self._vllm(load_format="dummy") if vllm_versions.is_installed() else self._torch()
        with sampler as rollout:

            def run(calls: Sequence[Sequence[int]]) -> dict[int, tuple[int, ...]]:
                answers = {}
                for rows in calls:
                    groups = rollout.generate(
                        [prompts[row] for row in rows],
                        [slots[row] for row in rows],
                        Sampling(tuple(limits[row] for row in rows)),
                        seed=1,
                        rows=rows,
                    )
                    for row, (completion,) in zip(rows, groups, strict=True):
                        answers[row] = completion.token_ids
                return answers

            tokens, seconds = {}, {}
            for name, calls in (("nine", [list(batch) for _, batch in batches]), ("two", together)):
                run(calls)
                seconds[name] = self._clock(lambda n=name, c=calls: tokens.update({n: run(c)}))
                yield f"{name} calls", {"seconds": round(seconds[name], 4)}
            equal = sum(tokens["nine"][row] == tokens["two"][row] for row in range(first)) / first
            yield "two to nine", {
                "ratio": round(seconds["two"] / seconds["nine"], 3), "equal rows": round(equal, 4)
            }  # fmt: skip

    def _settings(self, offload: bool = False) -> LearnerConfig:
        return LearnerConfig(
            micro_batch_tokens=MICRO_BATCH_TOKENS, gradient_checkpointing=True, offload=offload
        )

    def _learner(self, offload: bool = False) -> TorchLearner:
        """Of eight members that change something."""
        model = drawn(self._config, self._dtype, self._arguments.device)
        bank = make_bank(model, self._spec, seeds())
        for slot in range(MEMBERS):
            bank.write(slot, random_adapter(bank.read(slot), slot))
        return TorchLearner(model, bank, self._settings(offload), parallel=True)

    @contextmanager
    def _torch(self, learner: TorchLearner | None = None) -> Iterator[Rollout]:
        learner = learner or self._learner()
        yield TorchRollout(learner.model, learner.bank, frozenset())

    @contextmanager
    def _vllm(self, learner: TorchLearner | None = None, **options: Any) -> Iterator[Rollout]:
        """A vLLM of the learner's weights, or of weights that it draws itself, with its members."""
        from azr_population.engines.vllm_rollout import VllmRollout

        options |= {"max_model_len": max(320, self._arguments.prompt + 3 * self._arguments.tokens)}
        if self._on_gpu:
            options["gpu_memory_utilization"] = 0.4 if learner else 0.8
        with self._folder(learner.model if learner else None) as folder:
            rollout = VllmRollout(
                folder, MEMBERS, self._spec.rank, frozenset(), on_gpu=self._on_gpu,
                dtype=str(self._dtype).removeprefix("torch."), options=options,
            )  # fmt: skip
            for slot in range(MEMBERS):
                rollout.push(slot, learner.read(slot) if learner else self._member(slot))
            yield rollout
            rollout.close()

    @contextmanager
    def _folder(self, model: Any) -> Iterator[str]:
        """A Hugging Face folder, with weights if there is a model."""
        with tempfile.TemporaryDirectory() as folder:
            self._config.save_pretrained(folder)
            # vLLM's V1 wants a tokenizer too.
            tokenizer().save_pretrained(folder)
            if model is not None:
                model.save_pretrained(folder)
            yield folder

    def _member(self, slot: int) -> Adapter:
        """One that changes something, for a base that is not here."""
        outline, rank = drawn(self._config, self._dtype, "meta"), self._spec.rank
        factors = {}
        for name, layer in target_layers(outline, self._spec).items():
            inputs, outputs = layer_shape(layer)
            factors[name] = Factors(torch.zeros(rank, inputs), torch.zeros(outputs, rank))
        return random_adapter(Adapter(self._spec, factors), slot)

    def _write(self, rollout: Rollout, members: int, rows: int | None = None) -> None:
        """So many rows, dealt to the members; 0 members are the bare base."""
        count = rows or self._arguments.rows
        slots = [row * members // count for row in range(count)] if members else [-1] * count
        prompts = words(self._config, count, self._arguments.prompt)
        rollout.generate(prompts, slots, Sampling(self._arguments.tokens), 1)

    def _samples(self, members: int, rows: int) -> dict[int, list[TrainingSample]]:
        """So many rows a member, as wide as what is generated, worth something by turns."""
        width = self._arguments.prompt + self._arguments.tokens
        drawn_rows = iter(words(self._config, members * rows, width))
        return {
            slot: [
                self._sample(slot, next(drawn_rows), self._arguments.prompt, 1.0 - 2 * (row % 2))
                for row in range(rows)
            ]
            for slot in range(members)
        }

    def _sample(self, slot: int, ids: list[int], prompt: int, advantage: float) -> TrainingSample:
        likely = (-torch.tensor(float(self._config.vocab_size)).log().item(),)
        answer = tuple(ids[prompt:])
        completion = Completion(slot, tuple(ids[:prompt]), answer, likely * len(answer), False)
        return TrainingSample(completion, advantage)

    def _median(self, run: Callable[[], object]) -> float:
        """Seconds; the first call warms up."""
        self._clock(run)
        return round(median(self._clock(run) for _ in range(self._arguments.repeats)), 4)

    def _held(self) -> int:
        """Bytes that torch holds on the GPU."""
        if not self._on_gpu:
            return 0
        gc.collect()
        torch.cuda.synchronize()
        return torch.cuda.memory_allocated()

    def _both(self, expected: float, before: int, now: int | None = None) -> dict[str, Any]:
        """Gigabytes by arithmetic, and as measured since `before`."""
        held = (self._held() if now is None else now) - before
        return {
            "by arithmetic": round(expected / 1e9, 6),
            "measured": round(held / 1e9, 6) if self._on_gpu else None,
        }


def _nap(rollout: Rollout) -> None:
    with rollout.asleep():
        pass


PARTS: dict[str, tuple[float, Callable[[Machine], Measured], str]] = {
    "bank": (3, Machine.bank, "7b"),
    "decoding_7b": (8, Machine.decoding, "7b"),
    "step": (6, Machine.step, "7b"),
    "cycle": (5, Machine.cycle, "1.5b"),
    "memory": (4, Machine.memory, "7b"),
    "nf4": (4, Machine.nf4, "1.5b"),
    "calls": (5, Machine.calls, "1.5b"),
    "decoding_1.5b": (3, Machine.decoding, "1.5b"),
    "decoding_0.5b": (2, Machine.decoding, "0.5b"),
}
"""Minutes that a part may take, what it measures, and the shape that it takes."""


if __name__ == "__main__":
    main()
