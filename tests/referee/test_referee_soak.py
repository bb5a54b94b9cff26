"""A short soak; the long one is `benchmarks/referee_soak.py`."""

import importlib.util
import sys
from pathlib import Path

import pytest

SOAK = Path(__file__).parents[2] / "benchmarks" / "referee_soak.py"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is Linux's")
@pytest.mark.parametrize("share", [1, 8])
def test_killed_workers_lose_nothing_and_nothing_leaks(share):
    spec = importlib.util.spec_from_file_location("referee_soak", SOAK)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    figures = module.soak(4000, workers=2, kill_every=1.0, seed=3, share=share)
    assert (figures["lost"], figures["wrong"]) == (0, {})
    assert (figures["processes left"], figures["descriptors left"]) == (0, 0)
    assert figures["worker memory growth, percent"] < 5
    assert figures[module.RESIDENT_GROWTH] < 10  # so short a run is warm-up for the most part
