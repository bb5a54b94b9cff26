from __future__ import annotations

import needs
import numpy as np
import pytest

from azr_population.measuring.evaluation.benchmark import chosen
from azr_population.measuring.evaluation.figures import (
    Column,
    average,
    columns,
    estimate,
    paired_difference,
    pass_at_k,
)


def test_pass_at_k_is_unbiased():
    right = [[True, False, False, False], [False] * 4, [True] * 4]
    assert pass_at_k(right, 1).tolist() == [0.25, 0.0, 1.0]
    assert pass_at_k(right, 2).tolist() == [0.5, 0.0, 1.0]  # 1 - C(3,2)/C(4,2)
    assert pass_at_k(right, 4).tolist() == [1.0, 0.0, 1.0]
    with pytest.raises(ValueError, match="pass@5 of 4 samples"):
        pass_at_k(right, 5)


def test_pass_at_k_is_evalplus_s():
    evaluator = needs.module("evalplus.eval", "-e '.[eval]'")
    draw = np.random.default_rng(0)
    right = draw.random((50, 20)) < draw.random((50, 1))
    for k in (1, 4, 16):
        theirs = evaluator.estimate_pass_at_k(20, right.sum(1), k)
        np.testing.assert_allclose(pass_at_k(right.tolist(), k), theirs)


def test_averages_are_azr_s():
    """The mean of an area is over its benchmarks, that of all over the two areas."""
    made = {
        c.title: c.weights for c in columns(chosen("mbpp_plus,humaneval_plus,gsm8k,aime24,amc23"))
    }
    assert made["code"] == {"mbpp_plus": 0.5, "humaneval_plus": 0.5}
    assert made["mathematics"] == pytest.approx(dict.fromkeys(("gsm8k", "aime24", "amc23"), 1 / 3))
    assert sum(made["all"].values()) == pytest.approx(1.0)
    assert made["all"]["mbpp_plus"] == 0.25
    assert made["all"]["gsm8k"] == pytest.approx(1 / 6)
    scores = {"mbpp_plus": np.ones(4), "humaneval_plus": np.zeros(9), "gsm8k": np.zeros(3),
              "aime24": np.zeros(5), "amc23": np.ones(2)}  # fmt: skip
    assert average(Column("all", made["all"]), scores) == pytest.approx((0.5 + 1 / 3) / 2)


def test_the_interval_covers_what_it_says():
    """Of intervals for a model that solves 30%, about 95% hold 0.3."""
    draw = np.random.default_rng(1)
    column = Column("b", {"b": 1.0})
    covered = 0
    for _ in range(300):
        found = estimate(column, [{"b": (draw.random(200) < 0.3).astype(float)}])
        covered += found.low <= 0.3 <= found.high
    assert 0.91 <= covered / 300 <= 0.98


def test_none_right_leaves_room_for_some():
    found = estimate(Column("b", {"b": 1.0}), [{"b": np.zeros(30)}])
    assert (found.mean, found.low) == (0.0, 0.0)
    assert found.high == pytest.approx(0.1157, abs=1e-4)  # Clopper and Pearson, 0 of 30


def test_best_and_weakest_are_of_members_and_not_of_problems():
    column = Column("b", {"b": 1.0})
    members = [{"b": np.array([1.0, 0, 0, 0])}, {"b": np.array([0, 1.0, 1, 0])}]
    assert estimate(column, members, np.max).mean == 0.5
    assert estimate(column, members, np.min).mean == 0.25
    assert estimate(column, members).mean == 0.375


def test_paired_difference_is_sharper_than_two_intervals():
    draw = np.random.default_rng(2)
    hard = draw.random(400)
    a = {"b": (hard < 0.50).astype(float)}
    b = {"b": (hard < 0.45).astype(float)}
    column = Column("b", {"b": 1.0})
    apart = paired_difference(column, [a], [b])
    assert apart.estimate.low > 0.0
    alone = estimate(column, [a]), estimate(column, [b])
    assert alone[0].low < alone[1].high  # which the intervals of the two do not tell
    # Twenty problems or so that only one solves: McNemar's exact test, 2 * 0.5^n.
    only = int((a["b"] - b["b"]).sum())
    assert apart.mcnemar == pytest.approx(2 * 0.5**only)


def test_no_mcnemar_for_a_mean_over_members():
    column = Column("b", {"b": 1.0})
    one = {"b": np.array([1.0, 0.0])}
    assert paired_difference(column, [one, one], [one]).mcnemar is None
    assert paired_difference(column, [one], [one]).mcnemar == 1.0
    with pytest.raises(ValueError, match="b: 2 and 3 problems"):
        paired_difference(column, [one], [{"b": np.zeros(3)}])
