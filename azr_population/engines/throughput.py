"""How long a step's phases take on GPUs, by arithmetic: products over the speed at which they are
made, bytes over that at which they are read. The dry run and `benchmarks/scale.py` call
`step_seconds`. Estimates: no GPU has been timed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from azr_population.engines.memory import GIB, Architecture, Load, cache_tokens


@dataclass(frozen=True)
class Device:
    """A GPU by its data sheet (dense bfloat16, no sparsity), and what is assumed to be reached."""

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
    overhead: float = 2e-3
    """Seconds of a decoding step that are neither: scheduling, sampling, kernels of adapters."""

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


@dataclass(frozen=True)
class Rows:
    """Rows that one GPU samples in one call, or learns from."""

    count: int
    prompt: float
    response: float
    """Tokens of each, on average."""
    longest: float
    """Tokens of the longest response."""
    copies: int = 1
    """Rows that share a prompt, which is then computed once."""


def step_seconds(load: Load, work: Work, total: float, device: Device) -> dict[str, float]:
    """Seconds of a step by phase, on GPUs of `total` bytes."""
    cache = max(1, cache_tokens(load, total))

    def generated(count: int, copies: int = 1) -> float:
        each = math.ceil(count / load.ranks)
        rows = Rows(each, work.prompt, work.response, work.longest, copies)
        return work.types * generate_seconds(load, rows, cache, device)

    learned = math.ceil(work.types * (work.proposals + work.solved) / load.ranks)
    return {
        "propose": generated(work.proposals),
        "estimate": generated(work.attempts, work.samples),
        "solve": generated(work.solved),
        "update": update_seconds(load, Rows(learned, work.prompt, work.response, 0), device),
        "execute": execute_seconds(work),
    }


def generate_seconds(load: Load, rows: Rows, cache: float, device: Device) -> float:
    """Of one call for so many rows a GPU; `cache` is the tokens that the KV cache of all GPUs that
    share a vLLM holds. A step of decoding reads the base, the members' factors, and the keys and
    values of the rows that are being written."""
    if not rows.count:
        return 0.0
    a = load.architecture
    prompts, written = rows.count / rows.copies * rows.prompt, rows.count * rows.response
    prefill = _forward_flops(a, prompts, rows.count, rows.prompt / 2) / device.computed
    prefill += _member_seconds(load, prompts, device)
    live = min(load.sequences, max(1.0, cache / (rows.prompt + rows.response)))
    steps = max(rows.longest, load.parallel * written / live)
    base = load.weights / load.parallel + load.slots * load.member * load.size
    base *= steps / device.read
    keys = written * (rows.prompt + rows.response / 2) * a.cache * load.size / device.read
    products = (_forward_flops(a, written, written, 0) + 2 * written * load.member) / (
        device.computed
    )
    return prefill + max(base, products) + keys + steps * device.overhead


BETWEEN = {"kept": (40.8, 439.0), "again": (17.6, 118.0)}
"""Bytes a token that an update reads and writes in a block between products (norms, activations,
sums), by number of the MLP's and of the hidden width; and what is added where activations are not
kept. LOGIT bytes are those of each logit. Fitted to the learner's own code at the shapes of 7B and
14B; 1.5B and 3B follow within a percent (`tests/engines/test_throughput.py`)."""
LOGIT = 54.0


def update_seconds(load: Load, rows: Rows, device: Device) -> float:
    """Of an update on the rows: forward, once more where activations are not kept, and backward,
    which multiplies by the frozen base once and by members twice; AdamW reads and writes members.
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
    adamw = load.slots * load.member * 4 * 7
    members = _member_seconds(load, tokens, device) * (3 + again)
    return products + members + (between + adamw) / device.read


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
