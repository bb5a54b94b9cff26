"""Replacement as a run does it, without an engine: adapters are never looked at."""

from __future__ import annotations

import json

import pytest
from refusals import refuses

from azr_population.config.schema import EvolutionConfig
from azr_population.method.members import Rating, Roster
from azr_population.method.turnover import Evolution
from azr_population.runs.streams import Streams
from azr_population.weights.breeding import Breeding


def turnover(**settings):
    config = EvolutionConfig(
        interval=2, grace_period=0, operators={"full_gaussian": 1.0}, **settings
    )
    return Evolution(config, Streams(1), Rating())


def rated():
    """Three teachers and three students, the first the best; fitness is mu - 3 sigma."""
    roster = Roster.make(3, 3)
    for member in roster:
        member.rating = Rating(26.0 - member.slot % 3, 1.0)
    return roster


class Nursery:
    """Makes children by the recipe's own account: every step size twice the parent's."""

    def __init__(self):
        self.asked = []

    def __call__(self, replacement, recipe, seed):
        self.asked.append((replacement.victim.name, recipe, seed))
        eps = 2 * recipe["inherited"].get("full_gaussian.eps", 0.1)
        return Breeding("full_gaussian", {"eps": eps}, {"full_gaussian.eps": eps})


def test_nobody_is_replaced_between_the_intervals():
    one, nursery = turnover(), Nursery()
    assert one.replace(1, rated(), nursery) == [] == nursery.asked
    assert one.metrics(1, 0) == {"evolution/replaced": 0}


def test_the_recipe_holds_what_the_run_was_told():
    one, nursery = turnover(options={"full_gaussian": {"eps": 0.1}}, adaptive=True), Nursery()
    one.replace(2, rated(), nursery)
    assert [victim for victim, _, _ in nursery.asked] == ["teacher_2", "student_2"]
    assert nursery.asked[0][1] == {
        "mix": {"full_gaussian": 1.0},
        "options": {"full_gaussian": {"eps": 0.1}},
        "adapt": 0.3,
        "inherited": {},
    }
    json.dumps(nursery.asked)
    turnover().replace(2, rated(), nursery)
    assert nursery.asked[-1][1]["adapt"] == 0.0


def test_step_sizes_go_from_parent_to_child_and_into_the_lineage():
    one, nursery, roster = turnover(adaptive=True), Nursery(), rated()
    births = one.replace(2, roster, nursery)
    assert [birth["step_sizes"] for birth in births] == [{"full_gaussian.eps": 0.2}] * 2
    assert roster["teacher_2"].step_sizes == {"full_gaussian.eps": 0.2}
    assert roster["teacher_0"].step_sizes == {}
    roster["teacher_2"].rating = Rating(40.0, 1.0)
    roster["teacher_0"].rating = Rating(10.0, 1.0)
    assert roster.to_json() == Roster.from_json(json.loads(json.dumps(roster.to_json()))).to_json()
    births = one.replace(4, roster, nursery)
    heirs = [birth for birth in births if birth["parents"] == ["teacher_2"]]
    assert [heir["options"] for heir in heirs] == [{"eps": 0.4}]


def test_credit_of_a_step_compares_child_victim_and_parent():
    one, nursery, roster = turnover(), Nursery(), rated()
    one.replace(2, roster, nursery)
    roster["teacher_2"].rating = Rating(27.0, 1.0)  # its victim had 24, its parent less than 26
    roster["student_2"].rating = Rating(24.0, 1.0)
    one.replace(4, roster, nursery)
    metrics = one.metrics(4, 2)
    credit = {
        key.rpartition("/")[2]: value
        for key, value in metrics.items()
        if key.startswith("evolution/full_gaussian/")
    }
    assert (credit["born"], credit["alive"], credit["judged"], credit["passed"]) == (4, 3, 2, 1)
    assert credit["gain_over_victim"] == pytest.approx((3.0 + 0.0) / 2)
    assert credit["mean_life"] == 1.0


def test_an_old_checkpoint_without_credit_is_taken():
    one = turnover()
    one.load_state({"rewards": {"teacher_0": [0.5]}})
    assert one.rewards == {"teacher_0": [0.5]}
    assert one.metrics(2, 1) == {"evolution/replaced": 1}


def test_wrong_names_are_refused_when_a_run_is_put_together():
    with refuses("evolution.selection"):
        turnover(selection="lottery")


def test_births_leave_the_students_mean_where_it_began_and_change_no_odds():
    one, roster = turnover(), rated()
    before = {member.name: member.rating.mu for member in roster}
    births = one.replace(2, roster, Nursery())
    after = {member.name: member.rating.mu for member in roster}
    assert sum(student.rating.mu for student in roster.students) / 3 == pytest.approx(25.0)
    replaced = {birth["child"]: birth["mu"] for birth in births}
    moved = {before[name] - after[name] for name in after if name not in replaced}
    assert len({round(shift, 9) for shift in moved}) == 1 and min(moved) > 0
    assert replaced == pytest.approx({name: after[name] for name in replaced})


def test_without_births_no_rating_moves():
    roster = rated()
    before = roster.to_json()
    assert turnover().replace(1, roster, Nursery()) == [] and roster.to_json() == before
