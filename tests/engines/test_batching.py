"""Rows that go through the model together."""

from azr_population.engines.batching import slot_batches


def test_batches_hold_one_run_of_each_member_and_no_more_than_they_may():
    lengths, slots = [5, 3, 9, 4, 4], [1, 0, 0, 1, 0]
    assert list(slot_batches(lengths, slots, max_tokens=100)) == [[1, 4, 2, 3, 0]]
    assert list(slot_batches(lengths, slots, 100, max_rows=2)) == [[1, 4], [2, 3], [0]]
    # 2 rows of 4, the row of 9 alone though it is too long, then 2 rows of 5.
    assert list(slot_batches(lengths, slots, max_tokens=10)) == [[1, 4], [2], [3, 0]]
    assert list(slot_batches([], [], 10)) == []
