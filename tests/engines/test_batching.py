"""Rows that go through the model together."""

import pytest

from azr_population.engines.engine import Sampling
from azr_population.engines.micro_batches import partition_rows, slot_batches


def test_batches_hold_one_run_of_each_member_and_no_more_than_they_may():
    lengths, slots = [5, 3, 9, 4, 4], [1, 0, 0, 1, 0]
    assert list(slot_batches(lengths, slots, max_tokens=100)) == [[1, 4, 2, 3, 0]]
    assert list(slot_batches(lengths, slots, 100, max_rows=2)) == [[1, 4], [2, 3], [0]]
    # 2 rows of 4, the row of 9 alone though it is too long, then 2 rows of 5.
    assert list(slot_batches(lengths, slots, max_tokens=10)) == [[1, 4], [2], [3, 0]]
    assert list(slot_batches([], [], 10)) == []


def test_copies_stay_together_and_long_rows_are_spread_in_a_snake():
    # Four prompts of one member with two copies each, longer and longer.
    prompts = [0, 1, 2, 3] * 2
    lengths = [10 * (prompt + 1) for prompt in prompts]
    assert partition_rows(lengths, [0] * 8, 2, prompts) == [[0, 4, 3, 7], [1, 5, 2, 6]]
    # The same prompt is another one's for another member.
    assert partition_rows([1, 1, 1, 1], [0, 1, 0, 1], 2, [5] * 4) == [[0, 2], [1, 3]]


@pytest.mark.parametrize("ranks", [1, 2, 4, 8])
def test_every_row_is_dealt_once_and_no_rank_has_far_more_than_its_share(ranks):
    slots = [row % 3 for row in range(48)]
    lengths = [(7 * row) % 41 + 1 for row in range(48)]
    dealt = partition_rows(lengths, slots, ranks, [row // 6 for row in range(48)])
    assert sorted(row for hand in dealt for row in hand) == list(range(48))
    assert max(map(len, dealt)) <= 48 // ranks + 2
    # More copies than a share are no reason for the others to wait.
    assert [len(hand) for hand in partition_rows([1] * 16, [0] * 16, ranks, [0] * 16)] == [
        16 // ranks
    ] * ranks


def test_the_same_prompts_draw_the_same_on_any_number_of_ranks(engine):
    """As the hosts deal them out: the rows' numbers go along, and the seed is the same."""
    rollout = engine.engine.rollout
    prompts = [[5 + row // 4, 7, 9] for row in range(16)]
    slots = [row // 4 % 3 for row in range(16)]
    by_ranks = []
    for ranks in (1, 2, 4, 8):
        rows = [None] * 16
        for hand in partition_rows([3] * 16, slots, ranks, [tuple(prompt) for prompt in prompts]):
            written = rollout.generate(
                [prompts[row] for row in hand], [slots[row] for row in hand], Sampling(10), 3, hand
            )
            for row, (completion,) in zip(hand, written, strict=True):
                rows[row] = completion.token_ids
        by_ranks.append(rows)
    assert by_ranks[0] == by_ranks[1] == by_ranks[2] == by_ranks[3]
    # And the copies of a prompt differ.
    assert len(set(by_ranks[0][:4])) > 1
