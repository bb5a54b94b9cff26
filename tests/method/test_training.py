from functools import partial

import numpy as np
import pytest

from azr_population.engines.engine import Completion, TrainingSample
from azr_population.method.proposals import Attempt
from azr_population.method.training import (
    ScoredCompletion,
    attempt_values,
    choose_attempts,
    task_relative,
    training_samples,
)


def test_each_group_has_its_own_baseline_and_scale():
    rewards = [1.0, 0.0, 10.0, 30.0, 20.0]
    groups = ["a", "a", "b", "b", "b"]
    assert task_relative(rewards, groups) == pytest.approx(
        [1.0, -1.0, -1.2247449, 1.2247449, 0.0], abs=1e-6
    )


def test_groups_whose_rewards_do_not_differ_are_left_out():
    assert task_relative([0.3, 0.3, 1.0], ["a", "a", "b"]) == [None, None, None]


def test_rows_that_count_by_their_tokens():
    # The mean of (1, 1, 1, 0) is 0.75, their sample variance (3 * 0.0625 + 0.5625) / 3 = 0.25.
    assert task_relative([1.0, 0.0], ["a", "a"], [3, 1]) == pytest.approx([0.5, -1.5], abs=1e-6)
    assert task_relative([1.0, 0.0], ["a", "a"], [1, 0]) == [None, None]


def test_right_answers_alone_count():
    right = partial(attempt_values, compared_with="positive_only")
    assert right([1.0, -0.5, -0.5, -1.0]) == [1.0, None, None, None]
    # Nothing is right here, though one answer is better than the others; and there all are.
    assert right([-0.5, -1.0, -1.0]) == [None, None, None]
    assert right([1.0, 1.0]) == [None, None]


def test_equal_rewards_at_a_task_teach_nothing_where_they_are_compared_with_each_other():
    for equal in ([0.5, 0.5], [0.3], []):
        assert attempt_values(equal, "rloo") == [None] * len(equal)
    values = attempt_values([1.0, -0.5, -0.5, -1.0], "rloo")
    assert values == pytest.approx([5 / 3, -1 / 3, -1 / 3, -1.0])
    assert attempt_values([1.0, 0.0], "rloo") == [1.0, -1.0]
    assert attempt_values([0.5, 0.5], "batch") == [0.5, 0.5]


def test_rows_that_teach_nothing_are_left_out_unless_a_kl_term_is_on_all():
    written = [Completion(slot, (1,), (2,), (-1.0,), True) for slot in (0, 0, 1)]
    rows = [ScoredCompletion(Attempt(completion, "1"), 1.0) for completion in written]
    assert training_samples(rows) == {0: [], 1: []}
    zero = [TrainingSample(completion, 0.0) for completion in written]
    assert training_samples(rows, hold_all=True) == {0: zero[:2], 1: zero[2:]}


def test_which_tasks_are_trained_on_is_drawn():
    written = Completion(0, (1,), (2,), (-1.0,), True)
    rows = [[ScoredCompletion(Attempt(written, "1"), float(task))] for task in range(9)]
    chosen = {
        tuple(row.value for row in choose_attempts(rows, 3, np.random.default_rng(seed)))
        for seed in range(9)
    }
    assert len(chosen) > 1
