from __future__ import annotations

import json
import math

from azr_population.method.evolution.credit import OperatorCredit

INF = math.inf


def lived() -> OperatorCredit:
    """Four births: dare's children at 5 and 15 in the place of a; layer_wise's at 5 and 10."""
    credit = OperatorCredit()
    credit.score_children(5, {"a": 1.0, "b": -INF, "c": 9.0})
    credit.birth(5, "dare", "a", "c", 1.0)
    credit.birth(5, "layer_wise", "b", "c", -INF)
    credit.score_children(10, {"a": 3.0, "b": 4.0, "c": 7.0})
    credit.birth(10, "layer_wise", "b", "a", 4.0)
    credit.score_children(15, {"a": 0.0, "b": 6.0, "c": 7.0})
    credit.birth(15, "dare", "a", "c", 0.0)
    return credit


def test_children_are_counted_and_judged_once() -> None:
    summary = lived().summary(20)
    assert summary["dare"] == {
        "born": 2,
        "alive": 1,
        "replaced": 1,
        "mean_life": 7.5,  # 5..15 and 15..20
        "judged": 1,
        "passed": 1,  # at 10; replaced at 15
        "mean_rank": 0.0,
        "mean_fitness": 3.0,
        "gain_over_victim": 2.0,  # 3 at step 10 after 1 at step 5
        "gain_over_parent": -4.0,  # 3 beside 7 at step 10
    }
    assert summary["layer_wise"] == {
        "born": 2,
        "alive": 1,
        "replaced": 1,
        "mean_life": 7.5,  # 5..10 and 10..20
        "judged": 2,
        "passed": 1,  # the first was replaced when it was judged
        "mean_rank": 0.5,  # 4 between 3 and 7, 6 between 0 and 7
        "mean_fitness": 5.0,
        "gain_over_victim": 2.0,  # nobody knows the first one's
        "gain_over_parent": (-3.0 + 6.0) / 2,
    }


def test_nothing_is_said_of_what_nobody_knows() -> None:
    credit = OperatorCredit()
    assert credit.summary(3) == {}
    credit.birth(3, "dare", "a", "c", -INF)
    assert credit.summary(3)["dare"]["gain_over_parent"] is None
    credit.score_children(6, {"a": -INF, "c": 2.0})
    assert (credit.summary(6)["dare"]["judged"], credit.summary(6)["dare"]["passed"]) == (1, 1)
    assert credit.summary(6)["dare"]["gain_over_victim"] is None


def test_it_survives_a_checkpoint() -> None:
    credit = lived()
    again = OperatorCredit.from_json(json.loads(json.dumps(credit.to_json(), allow_nan=False)))
    for one in (credit, again):
        one.score_children(20, {"a": 1.25, "b": 2.5, "c": 7.0})
        one.birth(20, "svd_structured", "c", "b", 7.0)
    assert again.summary(25) == credit.summary(25)
    assert again.to_json() == credit.to_json()


def test_a_child_is_judged_when_it_can_be_replaced_and_beside_a_parent_that_lives() -> None:
    credit = OperatorCredit()
    credit.birth(5, "dare", "a", "c", 1.0)
    credit.score_children(10, {"a": 3.0, "b": 1.0, "c": 2.0}, ready=10)
    assert credit.summary(10)["dare"]["judged"] == 0
    credit.birth(10, "dare", "c", "b", 2.0)
    credit.score_children(15, {"a": 4.0, "b": 1.0, "c": 9.0}, ready=10)
    summary = credit.summary(15)["dare"]
    assert (summary["born"], summary["judged"], summary["passed"]) == (2, 1, 1)
    assert summary["gain_over_victim"] == 3.0
    assert summary["gain_over_parent"] is None  # c is another one now
