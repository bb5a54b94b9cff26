"""Estimates the seconds of a step's phases on GPUs: operations over their speed, bytes over
bandwidth. The dry run and `perf/scale.py` call `step_seconds`. No GPU has been timed.
"""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from azr_population.engines.memory import (
    GIB,
    Architecture,
    Load,
    cache_tokens,
    offloaded_bytes,
    phases,
)

PROPOSAL_CHECKS, ANSWER_CHECKS = 4, 2  # executions of a proposal, and of an answer to it
WAITS = 7 / 3  # batches of executions waited for (AZR: three checks, two estimates, two of answers)
EXECUTION = 1 / 1500  # seconds of one of AZR's executions, measured
LOOPS = 0.001  # share of executions that run into their time limit, assumed
PROCESSES = 32  # executions at once
# Bytes a token that an update reads and writes in a block between products (norms, activations,
# sums), by number of the MLP's and of the hidden width, and what is added where activations are not
# kept; bytes of each logit. Fitted to the learner's own code at the shapes of 7B and 14B; 1.5B and
# 3B follow within a percent (`tests/engines/test_throughput.py`).
BETWEEN, BETWEEN_AGAIN, LOGIT = (40.8, 439.0), (17.6, 118.0), 54.0


@dataclass(frozen=True)
class Device:
    """A GPU by its data sheet (dense bfloat16, no sparsity), with assumed efficiencies."""

    name: str = "H100"
    memory: float = 80  # GiB
    flops: float = 989e12  # products and sums in bfloat16 a second, at most
    bandwidth: float = 3.35e12  # bytes a second, at most
    computing: float = 0.4  # the share of `flops` that is reached
    reading: float = 0.6  # the share of `bandwidth` that is reached
    host: float = 10e9  # bytes a second between the GPU and the host's memory
    overhead: float = 2e-3  # other seconds of a decoding step: scheduling, sampling, adapters

    @property
    def computed(self) -> float:
        """Products and sums a second."""
        return self.flops * self.computing

    @property
    def read(self) -> float:
        """Bytes a second."""
        return self.bandwidth * self.reading


DEVICES = {
    device.name: device
    for device in (
        Device(),
        Device("H200", 141, 989e12, 4.8e12),
        Device("A100", 80, 312e12, 2.04e12),
        Device("A100-40", 40, 312e12, 1.56e12),
        Device("L40S", 48, 362e12, 0.864e12),
        Device("4090", 24, 165e12, 1.008e12),
    )
}


def device_of(gib: float, product: str = "") -> Device:
    """The device whose name is in the vendor's `product` name, or the one with the nearest memory;
    of the same memory the first in `DEVICES`."""
    named = [device for name, device in DEVICES.items() if name.partition("-")[0] in product]
    return min(named or DEVICES.values(), key=lambda device: abs(device.memory - gib))


def gpu_bytes(device: Device) -> float:
    """What torch sees of the device's memory."""
    return device.memory * GIB


@dataclass(frozen=True)
class Work:
    """What a step asks for, over all GPUs; rows are of one of its problem types."""

    types: int  # problem types
    proposals: int
    attempts: int  # answers that estimate the valid proposals' solve rates
    solved: int  # answers that students train on
    samples: int  # attempts at one proposal, which share its prompt
    prompt: float  # tokens on average
    response: float  # tokens on average
    longest: float  # tokens of the longest response of a call
    timeout: float = 10.0  # seconds after which an execution is stopped
    merged: bool = False  # two calls (proposals and answers of all types, then estimates), not nine
    overlapped: bool = False  # programs are executed while others are still being written


def single(load: Load, work: Work, members: int) -> tuple[Load, Work]:
    """The load and work of the single agent that trains on as many rows as each of these
    members."""
    share = {
        name: max(1, getattr(work, name) // members) for name in ("proposals", "attempts", "solved")
    }
    return replace(load, slots=1), replace(work, **share)


def step_seconds(load: Load, work: Work, total: float, device: Device) -> dict[str, float]:
    """Seconds of a step by phase, on GPUs of `total` bytes."""
    cache, seconds, waited = max(1, cache_tokens(load, total)), dict[str, float](), 0.0
    for name, count, prompts, executed in _calls(work):
        each, different = (math.ceil(number / load.ranks) for number in (count, prompts))
        ends = row_ends(load, each, different, work, cache, device)
        took = ends[-1] if ends else 0.0
        late = sum(end > took - work.timeout for end in ends) / max(1, len(ends))
        # Half of the time limit is still to come of a loop that began in its last seconds.
        waited += work.timeout / 2 * min(1.0, executed * LOOPS * late)
        seconds[name] = seconds.get(name, 0.0) + took
    learned = math.ceil(work.types * (work.proposals + work.solved) / load.ranks)
    seconds["update"] = update_seconds(load, learned, work.prompt, work.response, device)
    seconds["execute"] = waited if work.overlapped else execute_seconds(work)
    seconds["move"] = move_seconds(load, total, device)
    return seconds


def _calls(work: Work) -> Iterator[tuple[str, int, int, int]]:
    """Of each call of the sampler: the phase, its rows, different prompts, executions of the
    rows."""
    proposals, solved = work.proposals, work.solved
    checks, answers = PROPOSAL_CHECKS * proposals, ANSWER_CHECKS * solved
    shared = math.ceil(work.attempts / work.samples)
    times, each = (1, work.types) if work.merged else (work.types, 1)
    for _ in range(times):
        if work.merged:
            both = each * (proposals + solved)
            yield "propose, solve", both, both, each * (checks + answers)
        else:
            yield "propose", proposals, proposals, checks
            yield "solve", solved, solved, answers
        yield "estimate", each * work.attempts, each * shared, each * ANSWER_CHECKS * work.attempts


def row_ends(
    load: Load, rows: int, prompts: int, work: Work, cache: float, device: Device
) -> list[float]:
    """The seconds after which each row of one call ends, ascending, by playing continuous batching.
    `rows` and their `prompts`, each of which is computed once, are those of one GPU; `cache` is the
    tokens that the KV cache of all GPUs that share a vLLM holds.

    A step of decoding reads the base, the members' factors, and the keys and values of the rows in
    it; a row that ends makes room for the next. Lengths are spread as the square of
    a uniform number, up to three times the mean, and one row is as long as a row may be.
    """
    if not rows:
        return []
    a, count = load.architecture, rows * load.parallel
    read_in, mean = prompts * work.prompt, work.response
    clock = _forward_flops(a, read_in, rows, work.prompt / 2) / device.computed
    clock += _member_seconds(load, read_in, device)
    # bitsandbytes writes a quantised layer's weights in full, and reads them again.
    base = load.weights + 2 * load.nf4 * a.linear_weights * load.size
    factors = load.slots * a.adapter(load.rank, load.targets, load.parallel) * load.size
    read = (base / load.parallel + factors) / device.read
    keys = (work.prompt + mean / 2) * a.cache * load.size / device.read / load.parallel
    product = (_forward_flops(a, 1, 1, 0) + 2 * load.member) / device.computed / load.parallel
    lengths = [3 * mean * ((row + 0.5) / count) ** 2 for row in range(count)]
    random.Random(0).shuffle(lengths)
    lengths[count // 2] = work.longest
    room = int(min(load.sequences, max(1.0, cache / (work.prompt + mean))))
    steps, live, ends = 0.0, list[float](), list[float]()
    while lengths or live:
        while lengths and len(live) < room:
            heapq.heappush(live, steps + lengths.pop(0))
        # All that are live go on until the first of them ends.
        step = max(read, len(live) * product) + len(live) * keys + device.overhead
        end = heapq.heappop(live)
        clock += (end - steps) * step
        steps = end
        ends.append(clock)
    return ends


def update_seconds(load: Load, rows: int, prompt: float, response: float, device: Device) -> float:
    """Seconds of an update on these rows: forward (twice if activations are not kept), backward
    (once through the frozen base, twice through members) and the optimizer's step."""
    a, row = load.architecture, prompt + response
    tokens, logits = rows * row, rows * response
    again = load.checkpointing and row > load.keep
    forward = _forward_flops(a, tokens, logits, row / 2)
    # A flash kernel's backward has five products for the forward's two.
    attention = 1.5 * _attention_flops(a, tokens, row / 2)
    products = (forward * (2 + again) + attention) / device.computed
    widths = (BETWEEN, BETWEEN_AGAIN) if again else (BETWEEN,)
    block = sum(mlp * a.intermediate + hidden * a.hidden for mlp, hidden in widths)
    between = tokens * a.layers * block + logits * a.vocabulary * LOGIT
    # Weights and moments are read and written, gradients read.
    optimizer = load.slots * load.member * 4 * (3 + 2 * load.moments)
    members = _member_seconds(load, tokens, device) * (3 + again)
    return products + members + (between + optimizer) / device.read


def execute_seconds(work: Work) -> float:
    """Of a step's executions: a batch waits for its endless loops, if it has any, as many at once
    as there are processes."""
    answers = work.attempts + work.solved
    executed = work.types * (PROPOSAL_CHECKS * work.proposals + ANSWER_CHECKS * answers)
    waits = work.types * WAITS
    loops = executed * LOOPS / waits
    waited = waits * work.timeout * min(1.0, loops) * max(1, loops // PROCESSES)
    return executed * EXECUTION / PROCESSES + waited


def move_seconds(load: Load, total: float, device: Device) -> float:
    """Of a step's moves between GPU and host: vLLM sleeps while members learn and while the canary
    checks them, and an offloaded learner comes and goes."""
    if not load.vllm:
        return 0.0
    table = phases(load, total)
    vllm = 2 * (table["wake"]["vLLM: base"] + table["wake"]["vLLM: slots"])
    # The base is frozen: nothing of it is copied back.
    learner = 2 * offloaded_bytes(load, total) - load.offload * table["update"]["base"]
    return 2 * (vllm + learner) / device.host


def _forward_flops(a: Architecture, tokens: float, logits: float, past: float) -> float:
    """Operations of `tokens` through the base, each attending to `past`, with this number of
    logits."""
    blocks = 2 * tokens * a.layers * a.block
    return blocks + 2 * logits * a.vocabulary * a.hidden + _attention_flops(a, tokens, past)


def _attention_flops(a: Architecture, tokens: float, past: float) -> float:
    return tokens * 4 * a.layers * a.heads * a.head * past


def _member_seconds(load: Load, tokens: float, device: Device) -> float:
    """Of one pass of `tokens` through a member. A product with one of its thin factors takes as
    long as its wide side is read or written."""
    bytes_moved = tokens * load.member / load.rank * load.size
    return max(bytes_moved / device.read, 2 * tokens * load.member / device.computed)
