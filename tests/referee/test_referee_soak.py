"""A short soak; the long one is `benchmarks/referee_soak.py`."""

import pytest
import referee_soak


@pytest.mark.slow
@pytest.mark.parametrize("share", [1, 8])
def test_killed_workers_lose_nothing_and_nothing_leaks(share):
    figures = referee_soak.soak(4000, workers=2, kill_every=1.0, seed=3, share=share)
    assert (figures["lost"], figures["wrong"]) == (0, {})
    assert (figures["processes left"], figures["descriptors left"]) == (0, 0)
    assert figures["worker memory growth, percent"] < 5
    assert figures[referee_soak.RESIDENT_GROWTH] < 10  # so short a run is mostly warm-up
