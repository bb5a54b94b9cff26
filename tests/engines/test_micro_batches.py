"""Samples of one prompt behind it, several such units in a row, and what that must not change."""

import random

import pytest
import torch

from azr_population.engines.engine import Completion, TrainingSample
from azr_population.engines.micro_batches import collate, length, pieces, tokens_of

CPU = torch.device("cpu")


def sample(prompt, tokens, advantage=1.0):
    done = Completion(
        0, tuple(prompt), tuple(tokens), tuple(-0.1 * token for token in tokens), finished=True
    )
    return TrainingSample(done, advantage)


def drawn(seed, prompts=7, samples=40):
    random.seed(seed)
    prompt_ids = [
        [random.randrange(9) for _ in range(random.randint(1, 30))] for _ in range(prompts)
    ]
    return [
        sample(
            random.choice(prompt_ids), [random.randrange(9) for _ in range(random.randint(1, 12))]
        )
        for _ in range(samples)
    ]


def flat(piece):
    return [each for group in piece for each in group]


@pytest.mark.parametrize("share", [False, True])
@pytest.mark.parametrize("most", [8, 60, 200, 10_000])
def test_every_sample_is_in_one_piece_of_at_most_so_many_tokens(share, most):
    samples = drawn(1)
    cut = list(pieces(samples, most, share))
    assert sorted(map(id, (each for piece in cut for each in flat(piece)))) == sorted(
        map(id, samples)
    )
    for piece in cut:
        tokens = sum(map(tokens_of, piece))
        if not share:
            tokens = len(piece) * max(map(tokens_of, piece))
        assert tokens <= most or len(flat(piece)) == 1
    if share and most == 10_000:
        assert sum(len(piece) for piece in cut) == len({s.completion.prompt_ids for s in samples})


@pytest.mark.parametrize("share", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_pieces_put_together_and_cut_again_are_the_same_pieces(share, seed):
    cut = list(pieces(drawn(seed), 120, share))
    random.seed(seed)
    some = [piece for piece in cut if random.random() < 0.5]
    again = list(pieces([each for piece in some for each in flat(piece)], 120, share))
    assert again == some


def test_a_plain_batch_is_padded_on_the_right():
    batch = collate([[sample([1, 2], [3], 2.0)], [sample([4], [5, 6, 7], -1.0)]], CPU)
    assert batch.input_ids.tolist() == [[1, 2, 3, 0], [4, 5, 6, 7]]
    # No token sees the padding behind it.
    assert batch.mask is None
    assert batch.completion.tolist() == [[False, False, True, False], [False, True, True, True]]
    assert batch.advantages.tolist() == [2, -1, -1, -1]
    assert batch.old_logprobs.tolist() == pytest.approx([-0.3, -0.5, -0.6, -0.7])
    assert batch.positions is None


def test_a_shared_prompt_stands_once_before_its_completions():
    group = [sample([1, 2, 3], [4], 2.0), sample([1, 2, 3], [5, 6], -1.0)]
    batch = collate([[sample([7], [8])], group], CPU, share=True)
    assert batch.input_ids.tolist() == [[1, 2, 3, 4, 3, 5, 6, 7, 8]]
    assert batch.positions.tolist() == [[0, 1, 2, 3, 2, 3, 4, 0, 1]]
    assert batch.completion[0].nonzero().flatten().tolist() == [3, 5, 6, 8]
    assert batch.advantages.tolist() == [2, -1, -1, 1]
    seen = {row: batch.mask[0, 0, row].nonzero().flatten().tolist() for row in range(9)}
    assert seen == {
        0: [0],
        1: [0, 1],
        2: [0, 1, 2],
        3: [0, 1, 2, 3],
        4: [0, 1, 4],
        5: [0, 1, 4, 5],
        6: [0, 1, 4, 5, 6],
        7: [7],
        8: [7, 8],
    }


def test_long_completions_of_a_short_prompt_do_not_make_long_rows():
    samples = [sample([1], [2] * 40) for _ in range(30)]
    (piece,) = pieces(samples, 10_000, share=True)
    batch = collate(piece, CPU, share=True)
    assert batch.input_ids.shape[1] <= 96
    padding = batch.input_ids.numel() - sum(map(length, samples))
    assert padding < 0.2 * batch.input_ids.numel()
