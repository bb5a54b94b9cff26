"""Estimates the seconds of a step's phases on GPUs: operations over their speed, bytes over
bandwidth. The dry run and `benchmarks/scale.py` call `step_seconds`. No GPU has been timed.
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
    base_bytes,
    cache_tokens,
    offloaded_bytes,
    vllm_bytes,
)


@dataclass(frozen=True)
class Device:
    """A GPU by its data sheet (dense bfloat16, no sparsity), with assumed efficiencies."""

    name: str = "H100"
    memory: float = 80
    """GiB."""
    flops: float = 989e12
    """Products and sums in bfloat16 a second, at most."""
    bandwidth: float = 3.35e12
    """Bytes a second, at most."""
    computing: float = 0.4
    reading: float = 0.6
    """The shares of the two that are reached."""
    host: float = 10e9
    """Bytes a second between the GPU and the host's memory; assumed."""
    overhead: float = 2e-3
    """Other seconds of a decoding step: scheduling, sampling, kernels of adapters."""

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


PROPOSAL_CHECKS, ANSWER_CHECKS, WAITS = 4, 2, 7 / 3
"""Of each problem type, on average: executions of a proposal and of an answer to it, and batches of
executions that are waited for (AZR: three checks, two estimates, two of answers over three types).
"""
EXECUTION, LOOPS, PROCESSES = 1 / 1500, 0.001, 32
"""Seconds of one of AZR's executions (measured), the share that runs into its limit (assumed), and
how many run at once."""


@dataclass(frozen=True)
class Work:
    """What a step asks for, over all GPUs; rows are of one of its problem types."""

    types: int
    """Problem types."""
    proposals: int
    attempts: int
    """Answers that estimate the valid proposals' solve rates."""
    solved: int
    """Answers that students train on."""
    samples: int
    """Attempts at one proposal, which share its prompt."""
    prompt: float
    response: float
    """Tokens on average."""
    longest: float
    """Tokens of the longest response of a call."""
    timeout: float = 10.0
    """Seconds after which an execution is stopped."""
    merged: bool = False
    """Whether the sampler is called twice (proposals and answers of all types, then estimates), and
    not three times for each type."""
    overlapped: bool = False
    """Whether programs are executed while others are still being written."""


@dataclass(frozen=True)
class Rows:
    """Rows that one GPU samples in one call, or learns from."""

    count: int
    prompt: float
    response: float
    """Tokens of each, on average."""
    longest: float
    """Tokens of the longest response."""
    prompts: int | None = None
    """Different prompts among them, each of which is computed once; all, if empty."""


def step_seconds(load: Load, work: Work, total: float, device: Device) -> dict[str, float]:
    """Seconds of a step by phase, on GPUs of `total` bytes."""
    cache, seconds, waited = max(1, cache_tokens(load, total)), dict[str, float](), 0.0
    for name, count, executed, prompts in _calls(work):
        each, different = (math.ceil(number / load.ranks) for number in (count, prompts))
        rows = Rows(each, work.prompt, work.response, work.longest, different)
        ends = row_ends(load, rows, cache, device)
        took = ends[-1] if ends else 0.0
        late = sum(end > took - work.timeout for end in ends) / max(1, len(ends))
        # Half of the time limit is still to come of a loop that began in its last seconds.
        waited += work.timeout / 2 * min(1.0, executed * LOOPS * late)
        seconds[name] = seconds.get(name, 0.0) + took
    learned = math.ceil(work.types * (work.proposals + work.solved) / load.ranks)
    rows = Rows(learned, work.prompt, work.response, 0)
    seconds["update"] = update_seconds(load, rows, device)
    seconds["execute"] = waited if work.overlapped else execute_seconds(work)
    seconds["move"] = move_seconds(load, device)
    return seconds


def _calls(work: Work) -> Iterator[tuple[str, int, int, int]]:
    """Of each call of the sampler: the phase, its rows, executions of them, different prompts."""
    proposals, solved = work.proposals, work.solved
    checks, answers = PROPOSAL_CHECKS * proposals, ANSWER_CHECKS * solved
    shared = math.ceil(work.attempts / work.samples)
    times, each = (1, work.types) if work.merged else (work.types, 1)
    for _ in range(times):
        if work.merged:
            both = proposals + solved
            yield "propose, solve", each * both, each * (checks + answers), each * both
        else:
            yield "propose", proposals, checks, proposals
            yield "solve", solved, answers, solved
        yield "estimate", each * work.attempts, each * ANSWER_CHECKS * work.attempts, each * shared


def row_ends(load: Load, rows: Rows, cache: float, device: Device) -> list[float]:
    """The seconds after which each row of one call ends, ascending, by playing continuous batching.
    `cache` is the tokens that the KV cache of all GPUs that share a vLLM holds.

    A step of decoding reads the base, the members' factors, and the keys and values of the rows in
    it; a row that ends makes room for the next. Lengths are spread as the square of
    a uniform number, up to three times the mean, and one row is as long as a row may be.
    """
    if not rows.count:
        return []
    a, count = load.architecture, rows.count * load.parallel
    prompts = (rows.count if rows.prompts is None else rows.prompts) * rows.prompt
    clock = _forward_flops(a, prompts, rows.count, rows.prompt / 2) / device.computed
    clock += _member_seconds(load, prompts, device)
    factors = load.slots * a.served(load.rank, load.targets, load.parallel) * load.size
    read = (read_bytes(load) / load.parallel + factors) / device.read
    keys = (rows.prompt + rows.response / 2) * a.cache * load.size / device.read / load.parallel
    product = (_forward_flops(a, 1, 1, 0) + 2 * load.member) / device.computed / load.parallel
    lengths = [3 * rows.response * ((row + 0.5) / count) ** 2 for row in range(count)]
    random.Random(0).shuffle(lengths)
    lengths[count // 2] = rows.longest
    room = int(min(load.sequences, max(1.0, cache / (rows.prompt + rows.response))))
    steps, live, ends = 0.0, list[float](), list[float]()

    def finish_one() -> None:
        nonlocal clock, steps
        # All that are live go on until the first of them ends.
        step = max(read, len(live) * product) + len(live) * keys + device.overhead
        end = heapq.heappop(live)
        clock += (end - steps) * step
        steps = end
        ends.append(clock)

    for length in lengths:
        if len(live) == room:
            finish_one()
        heapq.heappush(live, steps + length)
    while live:
        finish_one()
    return ends


def read_bytes(load: Load) -> float:
    """Bytes moved to multiply by the base once: bitsandbytes writes a quantised layer's weights in
    full before it multiplies, and reads them again."""
    a = load.architecture
    linear = a.layers * sum(inputs * outputs for inputs, outputs in a.linear.values())
    return load.weights + 2 * load.nf4 * linear * load.size


def move_seconds(load: Load, device: Device) -> float:
    """Of a step's moves between GPU and host: vLLM sleeps while members learn and while the canary
    checks them, and an offloaded learner comes and goes."""
    if not load.vllm:
        return 0.0
    served = vllm_bytes(load)
    vllm = 2 * (served["vLLM: base"] + served["vLLM: slots"])
    learner = offloaded_bytes(load)
    base = base_bytes(load) if load.offload else 0.0
    # The base is frozen: nothing of it is copied back.
    return (2 * (vllm + 2 * learner - base)) / device.host


BETWEEN = {"kept": (40.8, 439.0), "again": (17.6, 118.0)}
"""Bytes a token that an update reads and writes in a block between products (norms, activations,
sums), by number of the MLP's and of the hidden width; and what is added where activations are not
kept. LOGIT bytes are those of each logit. Fitted to the learner's own code at the shapes of 7B and
14B; 1.5B and 3B follow within a percent (`tests/engines/test_throughput.py`)."""
LOGIT = 54.0


def update_seconds(load: Load, rows: Rows, device: Device) -> float:
    """Of an update on the rows: forward, once more where activations are not kept, and backward,
    which multiplies by the frozen base once and by members twice, and the optimizer's step.
    """
    a, tokens = load.architecture, rows.count * (rows.prompt + rows.response)
    again = load.checkpointing and rows.prompt + rows.response > load.keep
    past, logits = (rows.prompt + rows.response) / 2, rows.count * rows.response
    forward = _forward_flops(a, tokens, logits, past)
    # A flash kernel's backward has five products for the forward's two.
    attention = 1.5 * _attention_flops(a, tokens, past)
    products = (forward * (2 + again) + attention) / device.computed
    widths = BETWEEN["kept"], *([BETWEEN["again"]] if again else [])
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


def gpu_bytes(device: Device) -> float:
    """What torch sees of the device's memory."""
    return device.memory * GIB


def single(load: Load, work: Work, members: int) -> tuple[Load, Work]:
    """The single agent beside a population of so many members: each member trains on as many rows
    as it does."""
    share = {
        name: max(1, getattr(work, name) // members) for name in ("proposals", "attempts", "solved")
    }
    return replace(load, slots=1), replace(work, **share)


def _forward_flops(a: Architecture, tokens: float, logits: float, past: float) -> float:
    """Of `tokens` through the base, each attending to `past`; so many of them get logits."""
    blocks = 2 * tokens * a.layers * a.block
    return blocks + 2 * logits * a.vocabulary * a.hidden + _attention_flops(a, tokens, past)


def _attention_flops(a: Architecture, tokens: float, past: float) -> float:
    return tokens * 4 * a.layers * a.heads * a.head * past


def _member_seconds(load: Load, tokens: float, device: Device) -> float:
    """Of one pass of `tokens` through a member. A product with one of its thin factors takes as
    long as its wide side is read or written."""
    bytes_moved = tokens * load.member / load.rank * load.size
    return max(bytes_moved / device.read, 2 * tokens * load.member / device.computed)
