"""The seeded draws that vLLM is given, without vLLM."""

import pytest
import torch
from scipy.stats import chisquare

from azr_population.engines.decoding import draw
from azr_population.engines.vllm_draws import BatchedDraws, philox, uniforms

VOCABULARY = 50


@pytest.fixture
def probs():
    generator = torch.Generator().manual_seed(0)
    return torch.randn((6, VOCABULARY), generator=generator).mul(2).softmax(dim=-1)


def generators(seeds):
    return {row: torch.Generator().manual_seed(seed) for row, seed in seeds.items()}


def unused(probs, generators, *options):
    raise AssertionError("every row has a seed")


def test_philox_gives_the_published_words():
    """The known answer of Random123 for a key and a counter of zeros."""
    words = philox(torch.tensor([0]), torch.tensor([0]))
    assert words.tolist() == [[0x6627E8D5, 0xE169C58D]]


def test_a_row_draws_the_same_in_every_batch(probs):
    seeds = {row: 2**61 + row for row in range(len(probs))}
    together = BatchedDraws(unused)
    whole_batch, rows = generators(seeds), []
    for _ in range(20):
        rows.append(together(probs.clone(), whole_batch))
    for row, seed in seeds.items():
        alone, mine = BatchedDraws(unused), generators({0: seed})
        tokens = [alone(probs[row : row + 1].clone(), mine).item() for _ in range(20)]
        assert tokens == [batch[row].item() for batch in rows]


def test_rows_without_a_seed_are_drawn_by_vllm(probs):
    seeds = {1: 5, 4: 6}
    draws = BatchedDraws(lambda probs, generators, *options: torch.full((len(probs),), -1))
    tokens = draws(probs.clone(), generators(seeds), False)
    alone = BatchedDraws(unused)(probs[[1, 4]].clone(), generators({0: 5, 1: 6}))
    assert tokens.tolist() == [-1, alone[0], -1, -1, alone[1], -1]


class CudaGenerator:
    """As a CUDA generator counts: by an offset."""

    device = torch.device("cuda")

    def __init__(self, seed):
        self._seed, self._offset = seed, 0

    def initial_seed(self):
        return self._seed

    def get_offset(self):
        return self._offset

    def set_offset(self, offset):
        self._offset = offset


def test_a_draw_that_vllm_takes_back_is_drawn_again(probs):
    generator = CudaGenerator(3)
    draws = BatchedDraws(unused)
    first = draws(probs[:1].clone(), {0: generator})
    # As the V1 model runner does after a prompt that was read in part.
    generator.set_offset(generator.get_offset() - 4)
    assert draws(probs[:1].clone(), {0: generator}).equal(first)
    cpu = generators({0: 3})
    on_cpu = BatchedDraws(unused)
    expected = [on_cpu(probs[:1].clone(), cpu).item() for _ in range(5)]
    rest = [draws(probs[:1].clone(), {0: generator}).item() for _ in range(4)]
    assert [first.item(), *rest] == expected


def test_a_million_draws_follow_the_distribution(probs):
    """One seed each; a false alarm in a thousand."""
    count = 10**6
    numbers = uniforms(list(range(count)), [0] * count)
    expected = probs[0].double()
    parts = numbers.split(50_000)
    tokens = torch.cat([draw(probs[:1].repeat(len(part), 1), part) for part in parts])
    observed = tokens.bincount(minlength=VOCABULARY)
    assert chisquare(observed.numpy(), (expected / expected.sum() * count).numpy()).pvalue > 1e-3
    # The positions of one row too.
    numbers = uniforms([11] * count, list(range(count)))
    observed = (numbers * 100).long().bincount(minlength=100)
    assert chisquare(observed.numpy()).pvalue > 1e-3


def test_no_token_of_probability_zero_is_drawn():
    probs = torch.tensor([[0.0, 0.3, 0.0, 0.7, 0.0]])
    ends = torch.tensor([0.0, 0.299999, 0.3, 1 - 2.0**-53], dtype=torch.float64)
    assert draw(probs.repeat(4, 1), ends).tolist() == [1, 1, 3, 3]
