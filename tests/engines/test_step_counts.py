"""Counts of a step where the sums have an exact answer."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from azr_population.engines.architecture import Architecture
from azr_population.engines.memory import GpuLayout
from azr_population.engines.step_counts import DEVICES, MEASURED_SHARES, Cost, StepCounts, device_of

SMALL = Architecture(1000, 96, 200, 3, 6, 2, 16)
STEP = StepCounts(2, proposals=8, attempts=16, answers=8, samples=4, prompt=100, response=10)
LAYOUT = GpuLayout(SMALL, 4, 2, 100, 10, sequences=8, micro_batch_tokens=2000, checkpointing=False)


def test_tokens_of_a_step():
    assert STEP.generated == 32 * 10
    assert STEP.trained == 16 * 110


def test_sampling_reads_the_base_once_a_step_of_decoding_and_each_prompt_once():
    cost = STEP.sampling(LAYOUT)
    # 16 rows a call, 8 at once: 2 calls of 2 waves of 10 steps.
    base = 40 * (LAYOUT.weights + 4 * LAYOUT.member * 2)
    keys = 320 * 105 * SMALL.cache * 2
    assert cost.bytes == base + keys
    products = SMALL.layers * SMALL.block + LAYOUT.member
    attention = SMALL.layers * 2 * SMALL.heads * SMALL.head
    prompts, head = 20 * 100, SMALL.vocabulary * SMALL.hidden
    read_in = prompts * (products + attention * 50) + 32 * head
    written = 320 * (products + attention * 105) + 320 * head
    assert cost.flops == 2 * (read_in + written)


def test_gpus_that_share_a_vllm_read_the_base_together():
    eight = replace(LAYOUT, ranks=4)
    apart, shared = (STEP.sampling(replace(eight, parallel=n)) for n in (1, 4))
    assert shared.flops == apart.flops
    # 4 rows a call on each of 4 are 1 wave; 16 on one group are 2.
    assert apart.bytes - shared.bytes == (4 - 2) * 20 * (LAYOUT.weights + 4 * LAYOUT.member * 2)


def test_an_update_is_a_forward_and_a_backward_more_where_it_recomputes_or_has_a_kl():
    plain = STEP.update(LAYOUT)
    optimizer = 4 * LAYOUT.member * 4 * 7
    assert plain.bytes == 2 * LAYOUT.weights + optimizer  # one piece
    products = SMALL.layers * (SMALL.block + 2 * SMALL.heads * SMALL.head * 55) + LAYOUT.member
    forward = 2 * (1760 * products + 160 * SMALL.vocabulary * SMALL.hidden)
    assert plain.flops == 2 * forward + 2 * 1760 * LAYOUT.member
    again, kl = STEP.update(replace(LAYOUT, checkpointing=True)), STEP.update(LAYOUT, kl=True)
    assert again == kl == Cost(plain.flops + forward, plain.bytes + LAYOUT.weights)


def test_a_roofline_is_the_slower_of_products_and_bytes():
    assert Cost(989e12, 0).seconds(DEVICES["H100"], 2) == 0.5
    assert Cost(989e12, 6.7e12).seconds(DEVICES["H100"], 2) == 1.0


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


def test_measured_shares_are_those_of_the_committed_figures():
    """Updates by products; sampling by bytes of a step: base, eight members, 256 rows' cache."""
    days = json.loads((Path(__file__).parents[2] / "perf/results/gpu.json").read_text())
    update = days[0]["figures"]["update"]["hardware TFLOP/s"] / 989
    assert update == pytest.approx(MEASURED_SHARES["updates"], abs=0.01)
    (step,) = [
        day["figures"][name]["ms a step"]
        for day in days
        for name in day["figures"]
        if "H100" in day["card"] and name == "decoding by graphs, 8 members, several lengths"
    ]
    seven = Architecture(152_064, 3584, 18_944, 28, 28, 4, 128)
    layout = GpuLayout(seven, 8, 32, 512, 41, sequences=256)
    read = layout.weights + 8 * layout.member * 2 + 256 * 505 * seven.cache * 2
    share = Cost(0, read).seconds(DEVICES["H100"], 1) / (step / 1e3)
    assert share == pytest.approx(MEASURED_SHARES["sampling"], abs=0.04)
