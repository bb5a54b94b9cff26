"""Seconds of a step's phases, where the sums have an exact answer."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from azr_population.engines.costs import Architecture, Load
from azr_population.engines.pace import Device, Rows, generate_seconds

SMALL = Architecture(1000, 96, 200, 3, 6, 2, 16)


def test_gpus_that_share_a_vllm_write_the_rows_of_all_of_them() -> None:
    load, rows = Load(SMALL, 8, 32, 100, 1000), Rows(100, 100, 1000, 1000)
    # Of a decoding step nothing is left but what the host takes: seconds are steps.
    device = Device(flops=math.inf, bandwidth=math.inf, overhead=1.0)
    cache = 10 * (100 + 1000)
    alone = generate_seconds(load, rows, cache, device)
    assert alone == pytest.approx(100 * 1000 / 10)
    two = replace(load, parallel=2)
    assert generate_seconds(two, rows, cache, device) == pytest.approx(2 * alone)
    assert generate_seconds(two, rows, 2 * cache, device) == pytest.approx(alone)
