"""Seeded rows of vLLM drawn all at once.

vLLM's V1 sampler fills a seeded row's noise by a generator of its own, a kernel launch a row and
token. Here a row's token is where its cumulative distribution passes one uniform number, which is a
function of (the row's seed, its position) and of nothing else: Philox4x32-10, the counter-based
generator of Salmon et al. 2011 ("Parallel random numbers: as easy as 1, 2, 3"). So a row draws the
same in every batch, up to the rounding of its logits.

vLLM's newer model runner (V2, by Triton) already draws so; it is left alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from azr_population.engines.decoding import draw

_WORD = 0xFFFFFFFF
_MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
_KEY_STEPS = 0x9E3779B9, 0xBB67AE85
_OFFSET_STEP = 4
"""Step of a CUDA generator's offset for a draw; vLLM takes it back when it discards a draw."""


def philox(seeds: Tensor, counters: Tensor) -> Tensor:
    """Philox4x32-10: the first two of its four words of 32 bits, int64 [n, 2]. `seeds` are the
    64-bit keys, int64 [n], `counters` the low 64 bits of the counters; the high ones are 0."""
    words = [counters & _WORD, counters >> 32 & _WORD, *[torch.zeros_like(counters)] * 2]
    keys = [seeds & _WORD, seeds >> 32 & _WORD]
    for _ in range(10):
        # The product wraps at 64 bits, whose pattern is the unsigned one's.
        low, high = words[0] * _MULTIPLIERS[0], words[2] * _MULTIPLIERS[1]
        words = [
            (high >> 32 & _WORD) ^ words[1] ^ keys[0],
            high & _WORD,
            (low >> 32 & _WORD) ^ words[3] ^ keys[1],
            low & _WORD,
        ]
        keys = [key + step & _WORD for key, step in zip(keys, _KEY_STEPS, strict=True)]
    return torch.stack(words[:2], dim=-1)


def uniforms(seeds: Sequence[int], positions: Sequence[int]) -> Tensor:
    """One number in [0, 1) for each (seed, position): float64 [n] of 53 random bits."""
    words = philox(torch.tensor(seeds), torch.tensor(positions))
    return ((words[:, 0] << 21) | (words[:, 1] >> 11)).to(torch.float64) * 2.0**-53


class BatchedDraws:
    """Stands in for vLLM's `random_sample`."""

    def __init__(self, original: Any) -> None:
        self.original = original
        self._positions: WeakKeyDictionary[torch.Generator, int] = WeakKeyDictionary()

    def __call__(
        self, probs: Tensor, generators: Mapping[int, torch.Generator], *options: Any
    ) -> Tensor:
        """The sampled tokens, int64 [n], by `probs`, float32 [n, vocabulary], and the `generators`
        of the seeded rows, by their index; the others are vLLM's to draw."""
        if not generators:
            return self.original(probs, generators, *options)
        seeds = [generator.initial_seed() for generator in generators.values()]
        numbers = uniforms(seeds, [self._advance(each) for each in generators.values()])
        rows = torch.tensor(list(generators))
        if len(rows) == len(probs):
            return draw(probs, numbers[rows.argsort()].to(probs.device))
        rows = rows.to(probs.device)
        tokens = draw(probs[rows], numbers.to(probs.device))
        unseeded = self.original(probs, {}, *options)
        return unseeded.index_copy(0, rows, tokens.to(unseeded.dtype))

    def _advance(self, generator: torch.Generator) -> int:
        """How many draws the generator has made before this one. A CUDA generator's offset counts
        them, so that vLLM can take a draw back (of a prompt that was read in part). A CPU's has
        none."""
        if generator.device.type == "cpu":
            position = self._positions.get(generator, 0)
            self._positions[generator] = position + 1
            return position
        offset = generator.get_offset()
        generator.set_offset(offset + _OFFSET_STEP)
        return offset // _OFFSET_STEP


def install() -> None:
    """Puts `BatchedDraws` into this process's vLLM; before its engine is made."""
    from vllm.v1.sample.ops import topk_topp_sampler as sampler

    if isinstance(sampler.random_sample, BatchedDraws):
        return
    sampler.random_sample = BatchedDraws(sampler.random_sample)
    # On a CPU later versions have a way of their own, which goes row by row too.
    sampler.TopKTopPSampler.forward_cpu = sampler.TopKTopPSampler.forward_native
