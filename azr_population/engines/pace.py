"""How long a step's phases take on a GPU, by arithmetic: products over the speed at which they are
made, bytes over that at which they are read. Estimates; what is assumed is in `Device` and in the
arguments. `benchmarks/scale.py` sets the learner's figures beside what its code was seen to do.
"""

from __future__ import annotations

from dataclasses import dataclass

from azr_population.engines.costs import Architecture, Load


@dataclass(frozen=True)
class Device:
    """A GPU; the defaults are an H100's, and what is reached of them is assumed."""

    flops: float = 989e12
    """Products and sums in bfloat16 a second, at most."""
    bandwidth: float = 3.35e12
    """Bytes a second, at most."""
    computing: float = 0.4
    reading: float = 0.6
    """The shares of the two that are reached."""
    overhead: float = 2e-3
    """Seconds of a decoding step that are neither: scheduling, sampling, kernels of adapters."""


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

    @property
    def tokens(self) -> float:
        """Of prompts and responses."""
        return self.count * (self.prompt + self.response)


def forward_flops(a: Architecture, member: int, tokens: float, past: float) -> float:
    """Of `tokens` through the base and a member's `member` weights, each attending to `past`."""
    attention = 4 * a.layers * a.heads * a.head * past
    return tokens * (2 * (a.products + member) + attention)


def generate_seconds(load: Load, rows: Rows, cache: float, device: Device) -> float:
    """Of one call for so many rows a GPU; `cache` is the tokens that the KV cache of all GPUs that
    share a vLLM holds. A step of decoding reads the base, the members' factors, and the keys and
    values of the rows that are being written."""
    if not rows.count:
        return 0.0
    a, computed = load.architecture, device.flops * device.computing
    read = device.bandwidth * device.reading
    prompts = rows.count / rows.copies * rows.prompt
    prefill = forward_flops(a, load.member, prompts, rows.prompt / 2) / computed
    live = max(1.0, cache / (rows.prompt + rows.response))
    steps = max(rows.longest, load.parallel * rows.count * rows.response / live)
    base = steps * (a.weights / load.parallel + load.slots * load.member) * load.size / read
    past = rows.count * rows.response * (rows.prompt + rows.response / 2)
    keys = past * a.cache * load.size / read
    products = forward_flops(a, load.member, rows.count * rows.response, 0) / computed
    return prefill + max(base, products) + keys + steps * device.overhead


def update_seconds(load: Load, rows: Rows, device: Device) -> float:
    """Of an update on the rows: forward, once more where activations are not kept, and backward,
    which multiplies by the frozen base once and by members twice; AdamW reads and writes members.
    """
    a = load.architecture
    past = (rows.prompt + rows.response) / 2
    forward = forward_flops(a, load.member, rows.tokens, past)
    members = rows.tokens * 2 * load.member
    # A flash kernel's backward has five products for the forward's two.
    attention = rows.tokens * 4 * a.layers * a.heads * a.head * past * 1.5
    again = load.checkpointing and rows.prompt + rows.response > load.keep
    flops = forward * (2 + again) + members + attention
    steps = load.slots * load.member * 4 * 7 / (device.bandwidth * device.reading)
    return flops / (device.flops * device.computing) + steps
