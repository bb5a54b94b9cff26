"""What one GPU of 80 to 141 GB does, in 40 minutes: python perf/gpu.py --json gpu.json

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
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import accumulate, chain
from pathlib import Path
from statistics import median
from typing import Any

import torch
from drawn import SHAPES, described, drawn, folder, sample, seeds, words
from operators import Clock, measure

from azr_population.config.schema import LearnerConfig
from azr_population.engines import vllm_versions
from azr_population.engines.assembly import EngineSettings, LocalEngine
from azr_population.engines.base_model import load_base
from azr_population.engines.canary import Canary, random_adapter
from azr_population.engines.engine import Hyperparameters, Rollout, Sampling, TrainingSample
from azr_population.engines.memory import GIB, Architecture, Load, phases
from azr_population.engines.torch_learner import TorchLearner
from azr_population.engines.torch_rollout import TorchRollout, make_bank
from azr_population.engines.vllm_rollout import VllmRollout
from azr_population.errors import first_line
from azr_population.versions import installed
from azr_population.weights.adapter import LoraSpec

MEMBERS = 8
MICRO_BATCH_TOKENS = 8192
SAMPLERS = ("torch", "vllm") if any(map(installed, vllm_versions.DISTRIBUTIONS)) else ("torch",)
RATES = dict.fromkeys(range(MEMBERS), Hyperparameters(1e-5))
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
               "repeats": 3, "minutes": 40.0}  # fmt: skip
    for name, default in numbers.items():
        parser.add_argument(f"--{name}", type=type(default), default=default)
    parser.add_argument("--play", choices=PARTS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.play:
        play(arguments)
        return
    started = time.perf_counter()
    result: dict[str, Any] = {
        "arguments": {key: value for key, value in vars(arguments).items() if key != "json"},
        **{name: installed(name) for name in ("torch", "transformers", "azr_population")},
        "vllm": next(filter(None, map(installed, vllm_versions.DISTRIBUTIONS)), None),
    }
    for name in arguments.parts.split(","):
        left = 60 * arguments.minutes - (time.perf_counter() - started)
        limit = min(60 * PARTS[name][0], left)
        result[name] = played(name, limit) if left > 0 else {"left out": "no time left"}
        result["seconds"] = round(time.perf_counter() - started)
        print(name, json.dumps(result[name]), flush=True)
        if arguments.json:
            arguments.json.write_text(json.dumps(result, indent=1) + "\n")


def played(name: str, limit: float) -> dict[str, Any]:
    """What the part measures within `limit` seconds, in a process of its own."""
    with tempfile.TemporaryFile("w+") as printed:
        try:
            command = [sys.executable, *sys.argv, "--play", name]
            code = subprocess.run(command, stdout=printed, timeout=limit).returncode
            end = {"failed": f"exit code {code}"} if code else {}
        except subprocess.TimeoutExpired:
            end = {"stopped": f"after {limit:.0f} s"}
        printed.seek(0)
        figures = [json.loads(line) for line in printed if line.startswith('{"')]
    return {key: value for figure in (*figures, end) for key, value in figure.items()}


def play(arguments: argparse.Namespace) -> None:
    """Prints the part's figures, each as soon as it is there."""
    _, part, shape = PARTS[arguments.play]
    try:
        for name, figure in part(Machine(arguments, arguments.shape or shape)):
            print(json.dumps({name: figure}), flush=True)
    except Exception as error:
        # Out of memory, a kernel that is not there: what a benchmark is for. The rest goes on.
        print(json.dumps({"failed": f"{type(error).__name__}: {first_line(error)}"}), flush=True)


class Machine:
    """The device and a shape: what is made and timed on it."""

    def __init__(self, arguments: argparse.Namespace, shape: str) -> None:
        self.asked = arguments
        self.on_gpu = arguments.device == "cuda"
        self.clock = Clock(arguments.device, "wall")
        self.config = described(shape)
        self.dtype = torch.bfloat16 if self.on_gpu else torch.float32
        self.dtype_name = str(self.dtype).removeprefix("torch.")
        self.spec = LoraSpec(arguments.rank, 2.0 * arguments.rank)
        self.base = partial(drawn, self.config, self.dtype, arguments.device)

    def learner(self, model: Any = None, offload: bool = False) -> TorchLearner:
        """Of eight members that change something."""
        model = model or self.base()
        bank = make_bank(model, self.spec, seeds())
        for slot in range(MEMBERS):
            bank.write(slot, random_adapter(bank.read(slot), slot))
        settings = LearnerConfig(
            micro_batch_tokens=MICRO_BATCH_TOKENS, gradient_checkpointing=True, offload=offload
        )
        return TorchLearner(model, bank, settings, parallel=True)

    @contextmanager
    def rollout(self, kind: str, learner: TorchLearner, dummy: bool = True) -> Iterator[Rollout]:
        """Torch's on the learner, or a vLLM with its members, and with its weights or `dummy`
        ones."""
        if kind == "torch":
            yield TorchRollout(learner.model, learner.bank, frozenset())
            return
        longest = max(320, self.asked.prompt + 3 * self.asked.tokens)
        options: dict[str, Any] = {"max_model_len": longest}
        options |= {"load_format": "dummy"} if dummy else {}
        options |= {"gpu_memory_utilization": 0.4} if self.on_gpu else {}
        with folder(self.config if dummy else learner.model) as path:
            names, device = tuple(map(str, range(MEMBERS))), "cuda" if self.on_gpu else "cpu"
            settings = EngineSettings(
                str(path), names, self.spec, device, self.dtype_name, vllm=options
            )
            rollout = VllmRollout(settings, frozenset())
            for slot in range(MEMBERS):
                rollout.push(slot, learner.read(slot))
            yield rollout
            rollout.close()

    def write(self, rollout: Rollout, members: int, rows: int | None = None) -> None:
        """So many rows, dealt to the members; 0 members are the bare base."""
        count = rows or self.asked.rows
        slots = [row * members // count for row in range(count)] if members else [-1] * count
        prompts = words(self.config, count, self.asked.prompt)
        rollout.generate(prompts, slots, Sampling(self.asked.tokens), 1)

    def samples(self, members: int, rows: int) -> dict[int, list[TrainingSample]]:
        """So many rows a member, as wide as what is generated, worth something by turns."""
        prompt, every = self.asked.prompt, range(members * rows)
        written = words(self.config, len(every), prompt + self.asked.tokens)
        turns = [sample(row // rows, written[row], prompt, 1.0 - 2 * (row % 2)) for row in every]
        return {slot: turns[slot * rows : (slot + 1) * rows] for slot in range(members)}

    def median(self, run: Callable[[], object]) -> float:
        """Seconds; the first call warms up."""
        self.clock(run)
        return round(median(self.clock(run) for _ in range(self.asked.repeats)), 4)

    def speed(self, rollout: Rollout, members: int) -> float:
        """New tokens a second."""
        seconds = self.median(lambda: self.write(rollout, members))
        return round(self.asked.rows * self.asked.tokens / seconds, 1)

    def held(self) -> int:
        """Bytes that torch holds on the GPU."""
        if not self.on_gpu:
            return 0
        gc.collect()
        torch.cuda.synchronize()
        return torch.cuda.memory_allocated()

    def both(self, expected: float, before: int, now: int | None = None) -> dict[str, Any]:
        """Gigabytes by arithmetic, and as measured since `before`."""
        held = (self.held() if now is None else now) - before
        return {
            "by arithmetic": round(expected / 1e9, 6),
            "measured": round(held / 1e9, 6) if self.on_gpu else None,
        }

    def load(self) -> Load:
        """What this GPU holds with one row of the greatest length."""
        response = self.asked.longest * 8096 // 14_240
        architecture, size = Architecture.of(self.config), self.dtype.itemsize
        assert architecture is not None
        return Load(
            architecture, MEMBERS, self.asked.rank, self.asked.longest - response, response,
            size=size, products=size, piece=MICRO_BATCH_TOKENS if self.on_gpu else 1,
            on_gpu=self.on_gpu,
        )  # fmt: skip


def bank(machine: Machine) -> Measured:
    """A forward of the bare base, and how often it is with eight members; then the
    evolution operators."""
    if machine.on_gpu:
        yield "device", torch.cuda.get_device_name()
    learner = machine.learner()
    for rows, tokens in ((1, 1), (32, 1), (4, 128)):
        slots = torch.arange(MEMBERS).repeat_interleave(rows)
        ids = torch.zeros(len(slots), tokens, dtype=torch.long, device=machine.asked.device)
        forward = torch.inference_mode()(lambda ids=ids: learner.model(ids, use_cache=False))
        bare = machine.median(forward)
        figures = {"seconds of the base": bare}
        with learner.bank.adapters_active(slots, machine.dtype):
            figures["with members"] = round(machine.median(forward) / bare, 3)
        yield f"{rows} rows of {tokens} tokens a member", figures
    parents = [learner.read(slot) for slot in (0, 1)]
    yield "operators", measure(parents, machine.clock, machine.asked.repeats, None)


def decoding(machine: Machine) -> Measured:
    """New tokens a second of the same rows by the bare base and by 1, 2, 4 and 8 members, by torch
    and by vLLM."""
    for name in SAMPLERS:
        with machine.rollout(name, machine.learner()) as rollout:
            speeds = {}
            for members in (0, 1, 2, 4, MEMBERS):
                speeds[members] = machine.speed(rollout, members)
                yield f"{name}, {members} members", {"tokens_per_second": speeds[members]}
            ratio = round(speeds[MEMBERS] / speeds[1], 3)
            yield f"{name}, {MEMBERS} members to 1", {"ratio": ratio, "aim": 0.9}


def step(machine: Machine) -> Measured:
    """Seconds of a step: proposals, answers, an update on both; rows are a member's."""
    learner = machine.learner()
    rollout = TorchRollout(learner.model, learner.bank, frozenset())
    rows, seconds = max(1, machine.asked.rows // MEMBERS), {}
    for members, name in ((1, "single"), (MEMBERS, "4T+4S")):
        samples = machine.samples(members, rows)

        def played(members: int = members, samples: Any = samples) -> None:
            for _ in range(2):
                machine.write(rollout, members, rows * members)
            learner.update(samples, RATES)

        seconds[name] = machine.median(played)
        yield name, {"seconds": seconds[name], "rows": 2 * rows * members}
    ratio = round(seconds["4T+4S"] / seconds["single"], 3)
    yield "4T+4S to single", {"ratio": ratio, "table 2": 1.31}


def cycle(machine: Machine) -> Measured:
    """A step's sequence with the sampler and the learner on one GPU, the learner staying there and
    offloaded: seconds of each part, each member's canary distance, memory left."""
    name = SAMPLERS[-1]
    for offload in (False, True) if name == "vllm" else (False,):
        learner = machine.learner(offload=offload)
        with machine.rollout(name, learner, dummy=False) as rollout:
            engine, samples = LocalEngine(rollout, learner), machine.samples(MEMBERS, 2)
            prompt = words(machine.config, 1, min(160, machine.asked.prompt))[0]
            names = [f"member {slot}" for slot in range(MEMBERS)]
            canary = Canary(prompt, names, machine.dtype_name)
            parts: dict[str, Callable[[], object]] = {
                "push": partial(engine.push, range(MEMBERS)),
                "sample": partial(machine.write, rollout, MEMBERS),
                "sleep, wake": partial(engine.log_probs, [], [], []),
                "sleep, learn, wake, push": partial(engine.update, samples, RATES),
                "canary": partial(canary.check, rollout, learner, range(MEMBERS)),
                "sample again": partial(machine.write, rollout, MEMBERS),
            }
            seconds = {part: round(machine.clock(run), 4) for part, run in parts.items()}
            checked = canary.check(rollout, learner, range(MEMBERS))
            distances = {str(slot): round(value, 5) for slot, value in checked.items()}
            free = torch.cuda.mem_get_info()[0] / 1e9 if machine.on_gpu else None
            figures = {"seconds": seconds, "canary": distances, "free_gb": free}
            yield "offloaded" if offload else "resident", figures


def memory(machine: Machine) -> Measured:
    """Gigabytes of each part, by `engines/memory.py` and as measured; None on a CPU."""
    load, before = machine.load(), machine.held()
    table = phases(load, 80 * GIB)
    parts = table["update"]
    model = machine.base()
    yield "base", machine.both(parts["base"], before)
    before = machine.held()
    learner = machine.learner(model)
    yield "members, float32", machine.both(parts["members, float32"], before)
    samples = machine.samples(MEMBERS, 2)
    before = machine.held()
    learner.update(samples, RATES)
    yield "AdamW's moments", machine.both(parts["AdamW's moments"], before)
    longest = sample(0, words(machine.config, 1, load.row)[0], load.prompt, 1.0)
    prompt, answer = longest.completion.prompt_ids, longest.completion.token_ids
    # Copies stay after they were made once; two rows, for a sum of gradients beside the second.
    learner.log_probs([prompt[:8]], [answer[:8]], [0])
    runs: dict[str, Callable[[], object]] = {
        "score": partial(learner.log_probs, [prompt], [answer], [0]),
        "update": partial(learner.update, {0: [longest] * 2}, RATES),
    }
    for name, run in runs.items():
        before = machine.held()
        if machine.on_gpu:
            torch.cuda.reset_peak_memory_stats()
        seconds = machine.clock(run)
        peak = torch.cuda.max_memory_allocated() if machine.on_gpu else 0
        figures = machine.both(table[name]["work"], before, peak)
        yield f"peak of the longest row, {name}", {**figures, "seconds": round(seconds, 4)}
    del learner, model, runs, run
    before = machine.held()
    learner = machine.learner(offload=True)
    learner.update(samples, RATES)
    yield "an offloaded learner, at rest", machine.both(0.0, before)


def nf4(machine: Machine) -> Measured:
    """The base in NF4 beside the same in full: bytes, new tokens a second, an update."""
    with folder(machine.base()) as path:
        for quantization in (None, "nf4"):
            before, name = machine.held(), quantization or machine.dtype_name
            model, _ = load_base(
                path, machine.dtype_name, machine.asked.device, quantization=quantization
            )
            expected = replace(machine.load(), nf4=bool(quantization)).weights
            yield f"{name}, memory", machine.both(expected, before)
            learner = machine.learner(model)
            with machine.rollout("torch", learner) as rollout:
                speed = machine.speed(rollout, MEMBERS)
            update = partial(learner.update, machine.samples(MEMBERS, 2), RATES)
            seconds = machine.median(update)
            yield f"{name}, speed", {"tokens_per_second": speed, "seconds of an update": seconds}
            del model, learner, rollout, update


def calls(machine: Machine) -> Measured:
    """A step's rows in nine calls of the sampler, as AZR's loop makes them, and in two. Lengths
    are spread as the square of a uniform number."""
    rows = max(1, machine.asked.rows // 4)
    counts = [rows, rows, 4 * rows] * 3  # proposals, answers, estimates of each type
    ends = list(accumulate(counts))
    nine = [list(range(end - count, end)) for end, count in zip(ends, counts, strict=True)]
    estimates = list(chain.from_iterable(nine[2::3]))
    count, mean = ends[-1], machine.asked.tokens
    two = [[row for row in range(count) if row not in set(estimates)], estimates]
    limits = [max(1, round(3 * mean * ((row * 7919 % count) / count) ** 2)) for row in range(count)]
    prompts = words(machine.config, count, machine.asked.prompt)
    with machine.rollout(SAMPLERS[-1], machine.learner()) as rollout:

        def run(batches: Sequence[Sequence[int]]) -> dict[int, tuple[int, ...]]:
            answers = {}
            for rows in batches:
                groups = rollout.generate(
                    [prompts[row] for row in rows],
                    [row % MEMBERS for row in rows],
                    Sampling(tuple(limits[row] for row in rows)),
                    seed=1,
                    rows=rows,
                )
                answers |= zip(rows, (done.token_ids for (done,) in groups), strict=True)
            return answers

        tokens, seconds = {}, {}
        for name, batches in (("nine", nine), ("two", two)):
            tokens[name] = run(batches)
            seconds[name] = machine.clock(partial(run, batches))
            yield f"{name} calls", {"seconds": round(seconds[name], 4)}
        equal = sum(tokens["nine"][row] == tokens["two"][row] for row in range(count)) / count
        ratio = round(seconds["two"] / seconds["nine"], 3)
        yield "two to nine", {"ratio": ratio, "equal rows": round(equal, 4)}


PARTS: dict[str, tuple[float, Callable[[Machine], Measured], str]] = {
    "bank": (3, bank, "7b"),
    "decoding_7b": (8, decoding, "7b"),
    "step": (6, step, "7b"),
    "cycle": (5, cycle, "1.5b"),
    "memory": (4, memory, "7b"),
    "nf4": (4, nf4, "1.5b"),
    "calls": (5, calls, "1.5b"),
    "decoding_1.5b": (3, decoding, "1.5b"),
    "decoding_0.5b": (2, decoding, "0.5b"),
}
"""Minutes that a part may take, what it measures, and the shape that it takes."""


if __name__ == "__main__":
    main()
