"""Seconds of a step's phases, where the sums have an exact answer."""

import math
from dataclasses import replace

import pytest

from azr_population.engines.memory import Architecture, Load
from azr_population.engines.throughput import (
    DEVICES,
    Device,
    Work,
    device_of,
    execute_seconds,
    move_seconds,
    row_ends,
    step_seconds,
)

SMALL = Architecture(1000, 96, 200, 3, 6, 2, 16)


ROWS = Work(1, 0, 0, 0, 1, 100, 1000, 3000)


def decoded(load, work, cache):
    """Steps of decoding 100 rows: of a step nothing is left but what the host takes, a second."""
    device = Device(flops=math.inf, bandwidth=math.inf, overhead=1.0)
    return row_ends(load, 100, 100, work, cache, device)[-1]


def test_rows_that_do_not_fit_wait_for_others_and_the_longest_is_waited_for():
    load, rows = Load(SMALL, 8, 32, 100, 3000), ROWS
    room = 100 + 1000
    assert decoded(load, rows, 100 * room) == pytest.approx(3000)
    # One after the other they take as long as all of their tokens.
    assert decoded(load, rows, room) == pytest.approx(100 * 1000, rel=0.05)
    assert 10 * 1000 < decoded(load, rows, 10 * room) < 10 * 1000 + 3000
    longer = replace(rows, longest=8000)
    assert decoded(load, longer, 100 * room) == pytest.approx(8000)


def test_gpus_that_share_a_vllm_write_the_rows_of_all_of_them():
    load, rows = Load(SMALL, 8, 32, 100, 3000), ROWS
    two, cache = replace(load, parallel=2), 10 * (100 + 1000)
    assert decoded(two, rows, cache) == pytest.approx(2 * decoded(load, rows, cache), rel=0.1)
    assert decoded(two, rows, 2 * cache) == pytest.approx(decoded(load, rows, cache), rel=0.1)


def test_merged_calls_wait_for_fewer_tails_and_overlapped_executions_for_none():
    load = Load(SMALL, 8, 32, 100, 1000, ranks=8)
    work = Work(3, 512, 2731, 512, 8, 100, 300, 8000)
    two, beside = replace(work, merged=True), replace(work, merged=True, overlapped=True)
    nine, merged, overlapped = (
        step_seconds(load, each, 80e9, DEVICES["H100"]) for each in (work, two, beside)
    )
    assert set(merged) == {"propose, solve", "estimate", "update", "execute", "move"}
    assert merged["propose, solve"] < (nine["propose"] + nine["solve"]) / 2
    assert merged["estimate"] < nine["estimate"] / 2
    assert merged["update"] == nine["update"]
    assert overlapped["execute"] < 10 < merged["execute"]


def test_an_offloaded_learner_takes_its_moves():
    load, device = Load(SMALL, 8, 32, 100, 1000), DEVICES["H100"]
    bases, members = load.weights, 4 * load.slots * load.member
    resident, offloaded = (
        move_seconds(replace(load, offload=away), 80e9, device) for away in (False, True)
    )
    assert offloaded - resident == pytest.approx((2 * bases + 4 * members) / device.host)


@pytest.mark.parametrize(
    ("gib", "product", "name"),
    [
        (79.6, "NVIDIA H100 80GB HBM3", "H100"),
        (80, "", "H100"),
        (40, "NVIDIA A100-SXM4-40GB", "A100-40"),
        (80, "NVIDIA A100-SXM4-80GB", "A100"),
        (24, "NVIDIA GeForce RTX 4090", "4090"),
        (24, "a card nobody knows", "4090"),
        (140, "", "H200"),
    ],
)
def test_a_device_is_known_by_its_name_or_its_memory(gib, product, name):
    assert device_of(gib, product).name == name


def test_as_many_loops_wait_at_once_as_there_are_processes():
    work = Work(3, 512, 2731, 512, 8, 1500, 1000, 8096)
    assert execute_seconds(work) == pytest.approx(70.5, abs=0.1)
    assert execute_seconds(replace(work, timeout=5.0)) == pytest.approx(35.5, abs=0.1)
