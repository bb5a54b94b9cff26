"""Replacement as a run does it, without an engine: adapters are never looked at."""

import json

import pytest

from azr_population.config.schema import EvolutionConfig
from azr_population.method.evolution import Evolution
from azr_population.method.members import Rating, Roster
from azr_population.streams import Streams
from azr_population.weights.breeding import Breeding


def evolution(**settings):
    settings = {"interval": 2, "grace_period": 0, "operators": {"full_gaussian": 1.0}, **settings}
    config = EvolutionConfig(**settings)
    return Evolution(config, Streams(1))


def rated():
    """Three teachers and three students, the first the best; fitness is mu - 3 sigma."""
    roster = Roster.make(3, 3)
    for member in roster:
        member.rating = Rating(26.0 - member.slot % 3, 1.0)
    return roster


class Nursery:
    """Makes children by word only."""

    def __init__(self):
        self.asked = []

    def __call__(self, replacement, config, seed):
        self.asked.append((replacement.victim.name, config.operators, config.options))
        return Breeding("full_gaussian", {"eps": 0.2})


def test_children_are_made_by_the_operators_and_options_of_the_run():
    options = {"full_gaussian": {"eps": 0.1}}
    evolved, nursery, roster = evolution(options=options), Nursery(), rated()
    births = evolved.replace(2, roster, nursery)
    mix = {"full_gaussian": 1.0}
    assert nursery.asked == [("teacher_2", mix, options), ("student_2", mix, options)]
    assert [(birth["operator"], birth["options"]) for birth in births] == [
        ("full_gaussian", {"eps": 0.2})
    ] * 2
    assert roster.to_json() == Roster.from_json(json.loads(json.dumps(roster.to_json()))).to_json()


def test_births_leave_the_students_mean_where_it_began_and_change_no_odds():
    evolved, roster = evolution(), rated()
    before = {member.name: member.rating.mu for member in roster}
    births = evolved.replace(2, roster, Nursery())
    after = {member.name: member.rating.mu for member in roster}
    assert sum(student.rating.mu for student in roster.students) / 3 == pytest.approx(25.0)
    replaced = {birth["child"]: birth["mu"] for birth in births}
    moved = {before[name] - after[name] for name in after if name not in replaced}
    assert len({round(shift, 9) for shift in moved}) == 1 and min(moved) > 0
    assert replaced == pytest.approx({name: after[name] for name in replaced})


@pytest.mark.parametrize(("bounds", "limits"), [(None, (1e-6, 0.1)), ([5e-5, 2e-3], (5e-5, 2e-3))])
@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_a_learning_rate_that_evolves_stays_within_its_bounds(bounds, limits, factor):
    lr = {"init": [1e-4, 1e-3], "perturb": [factor], "resample": 0.0, "bounds": bounds}
    evolved, roster = evolution(hyperparameters={"lr": lr}), rated()
    for member in roster:
        evolved.draw_hyperparameters(member)
    for step in range(2, 2000, 2):
        births = evolved.replace(step, roster, Nursery())
        for member in roster:  # the child of a child of a child
            newest = member.name in [birth["child"] for birth in births]
            member.rating = Rating(26.0 if newest else 24.0, 1.0)
    rates = [member.hyperparameters["lr"] for member in roster.students]
    assert all(limits[0] <= rate <= limits[1] for rate in rates)
    assert limits[factor > 1] in rates


@pytest.mark.parametrize("bounds", [[1e-3, 1e-2], [1e-5, 5e-4], [1, 0.5], [0, 1], [1e-4]])
def test_bounds_that_leave_out_a_founder_s_rate_are_refused(bounds):
    with pytest.raises(ValueError):
        evolution(hyperparameters={"lr": {"init": [1e-4, 1e-3], "bounds": bounds}})
