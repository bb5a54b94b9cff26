"""Random streams that belong to a run: one per step and purpose, derived from the run's seed.

Because a stream depends on (seed, step, purpose) alone, a resumed run draws what an uninterrupted
one would have drawn, and no generator state has to be saved.
"""

import zlib

import numpy as np
import torch


class Streams:
    """Generators of one run."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def numpy(self, purpose: str, step: int = 0) -> np.random.Generator:
        """A NumPy generator for this purpose at this step, always the same."""
        return np.random.default_rng(self._sequence(purpose, step))

    def torch(self, purpose: str, step: int = 0) -> torch.Generator:
        """A torch generator on the CPU for this purpose at this step, always the same."""
        return torch.Generator().manual_seed(self.integer(purpose, step))

    def integer(self, purpose: str, step: int = 0) -> int:
        """A seed in [0, 2^63) for this purpose at this step, always the same."""
        return int(self._sequence(purpose, step).generate_state(1, np.uint64)[0]) >> 1

    def _sequence(self, purpose: str, step: int) -> np.random.SeedSequence:
        return np.random.SeedSequence([self._seed, step, zlib.crc32(purpose.encode())])
