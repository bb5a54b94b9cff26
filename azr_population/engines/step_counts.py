"""What a step asks of the GPUs, counted: calls, tokens, products, bytes; and the least time that a
roofline (Williams et al. 2009) leaves for it."""

from __future__ import annotations

import math
from typing import NamedTuple

from azr_population.engines.memory import GpuLayout


class Device(NamedTuple):
    """A GPU by its data sheet, dense and without sparsity."""

    name: str = "H100"
    memory: float = 80  # GiB
    flops: float = 989e12  # products and sums in bfloat16 a second
    bandwidth: float = 3.35e12  # bytes a second


_SHEETS = (
    Device(),
    Device("H200", 141, 989e12, 4.8e12),
    Device("A100", 80, 312e12, 2.04e12),
    Device("A100-40", 40, 312e12, 1.56e12),
    Device("L40S", 48, 362e12, 0.864e12),
    Device("4090", 24, 165e12, 1.008e12),
)
DEVICES = {device.name: device for device in _SHEETS}


def device_of(gib: float, product: str = "") -> Device:
    """The device whose name is in the vendor's `product` name, or the one with the nearest memory;
    of the same memory the first in `DEVICES`."""
    named = [device for name, device in DEVICES.items() if name.partition("-")[0] in product]
    return min(named or DEVICES.values(), key=lambda device: abs(device.memory - gib))


MEASURED_SHARES = {"sampling": 0.34, "updates": 0.38}
"""The share of the roofline that the torch engine reached on one H100 at 7B's shapes, sampling by
CUDA graphs and learning with activations computed again (perf/results/gpu.json, days 1 and 2). vLLM
has not been timed."""


class Cost(NamedTuple):
    """Products and sums, and bytes read and written, on all GPUs."""

    flops: float
    bytes: float

    def seconds(self, device: Device, gpus: int) -> float:
        """At least: at the data sheet's speed, the slower of the two."""
        return max(self.flops / device.flops, self.bytes / device.bandwidth) / gpus


class StepCounts(NamedTuple):
    """A step's rows on all GPUs, `prompt` and `response` tokens each on average."""

    calls: int  # of the sampler
    proposals: int
    attempts: int  # that estimate solve rates; `samples` of them share a prompt
    answers: int  # that are trained on
    samples: int
    prompt: int
    response: int

    @property
    def generated(self) -> int:
        """Tokens."""
        return (self.proposals + self.attempts + self.answers) * self.response

    @property
    def trained(self) -> int:
        """Tokens, with their prompts."""
        return (self.proposals + self.answers) * (self.prompt + self.response)

    def sampling(self, layout: GpuLayout) -> Cost:
        """Each prompt is read once. A decoding step reads the base, the members, and the keys and
        values of up to `layout.sequences` rows."""
        a, rows = layout.architecture, self.generated // self.response
        groups = max(1, layout.ranks // layout.parallel)  # a dry run says what is refused, too
        prompts = self.prompt * (self.proposals + self.answers + self.attempts // self.samples)
        waves = math.ceil(rows / self.calls / groups / layout.sequences)
        steps = self.calls * waves * self.response * groups
        keys = self.generated * a.attended(self.prompt + self.response / 2) * a.cache
        flops = _forward(layout, prompts, rows, self.prompt / 2)
        flops += _forward(layout, self.generated, self.generated, self.prompt + self.response / 2)
        read = layout.weights + layout.slots * layout.member * layout.size
        return Cost(flops, steps * read + keys * layout.size)

    def update(self, layout: GpuLayout, kl: bool = False) -> Cost:
        """Forward (again where activations are not kept, and for the KL), backward through the
        frozen base, and the optimizer's step on every GPU."""
        row = self.prompt + self.response
        again = layout.checkpointing and row > layout.no_recompute_tokens
        passes, logits = 2 + again + kl, (self.proposals + self.answers) * self.response
        flops = passes * _forward(layout, self.trained, logits, row / 2)
        flops += 2 * self.trained * layout.member  # gradients of the members' factors
        pieces = math.ceil(self.trained / layout.micro_batch_tokens)
        optimizer = layout.ranks * layout.slots * layout.member * 4 * (3 + 2 * layout.moments)
        return Cost(flops, passes * pieces * layout.weights + optimizer)


def _forward(layout: GpuLayout, tokens: float, logits: float, past: float) -> float:
    """Operations of `tokens` through the base and their member, each attending to `past`."""
    a = layout.architecture
    blocks = a.layers * (a.block + 2 * a.heads * a.head * a.attended(past)) + layout.member
    return 2 * (tokens * blocks + logits * a.vocabulary * a.hidden)
