"""Matches, ratings and births of a population that AZR's loop drives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from azr_population.azr.population import Population
from azr_population.azr.settings import PopulationSettings
from azr_population.conf.schema import EvolutionConfig
from azr_population.engines.engine import Completion
from azr_population.errors import UserError
from azr_population.selfplay.rows import Answer, Row
from azr_population.tasks.task import Task, TaskType


def population(teachers: int = 2, students: int = 2, **more: Any) -> Population:
    evolution = EvolutionConfig(interval=2, operators={"full_gaussian": 1.0, "dare": 1.0})
    settings = PopulationSettings(teachers=teachers, students=students, evolution=evolution, **more)
    return Population(settings, learning_rate=1e-6)


def rows(of: Population, solved: dict[str, bool]) -> list[Row]:
    """Two proposals per match, which the student solves or not."""
    written = Completion(0, (), (1, 2), (), "", True)
    made = []
    for match in of.matches:
        for _ in range(2):
            row = Row(match, TaskType.CODE_O, written, None)
            row.task = Task(TaskType.CODE_O, "def f(a):\n    return a", ("1",), ("1",))
            row.answers = [Answer(written, "1", solved[match.student.name])]
            made.append(row)
    return made


def test_rows_are_shared_out_over_a_teachers_matches() -> None:
    one = population(teachers=1, students=3)
    one.begin_step(1)
    assert len(one.matches) == 3
    met = [match.student.name for match in one.opponents([0] * 7)]
    assert sorted(Counter(met).values()) == [2, 2, 3] and met == sorted(met, key=met.index)


def test_the_single_agent_meets_itself_and_is_not_rated() -> None:
    one = population(0, 0)
    one.begin_step(1)
    assert [match.student.slot for match in one.opponents([0, 0])] == [0, 0]
    agent = one.roster["agent_0"]
    before = agent.rating
    (record,) = one.rate(rows(one, {"agent_0": True}))
    assert agent.rating == before and record["proposed"] == 2
    assert one.learning_rates() == {0: pytest.approx(1e-5)}


def test_ratings_follow_the_games_and_the_best_student_sits_validation() -> None:
    one = population()
    one.begin_step(1)
    one.rate(rows(one, {"student_0": False, "student_1": True}))
    assert one.best_student().name == "student_1"
    assert one.roster["student_0"].rating.mu < 25 < one.roster["student_1"].rating.mu
    assert one.learning_rates()[0] == pytest.approx(0.3 * one.learning_rates()[2])


def test_the_worst_of_each_role_are_replaced_at_the_interval() -> None:
    one = population()
    asked: list[tuple[int, list[int], int]] = []

    def breed(
        slot: int, parents: Sequence[int], recipe: dict[str, Any], seed: int
    ) -> tuple[str, dict[str, Any], dict[str, float]]:
        assert recipe["mix"] == one.settings.evolution.operators and recipe["adapt"] == 0.0
        asked.append((slot, list(parents), seed))
        return "full_gaussian", {"eps": 0.15}, {"full_gaussian.eps": 0.15}

    one.begin_step(1)
    one.rate(rows(one, {"student_0": False, "student_1": True}))
    assert one.evolve(breed) == []
    one.begin_step(2)
    births = one.evolve(breed)
    assert [birth["child"] for birth in births][-1] == "student_0" and len(births) == 2
    assert asked[-1][:2] == (2, [3])
    assert births[-1]["parents"] == ["student_1"] and births[-1]["seed"] == asked[-1][2]
    assert one.roster["student_0"].generation == 1 and one.roster["student_0"].born == 2


def test_a_state_brings_back_ratings_and_draws_go_on() -> None:
    one, other = population(4, 4), population(4, 4)
    one.begin_step(1)
    one.rate(rows(one, {f"student_{n}": n < 2 for n in range(4)}))
    other.load_state(one.state())
    one.begin_step(2)
    other.begin_step(2)
    drawn = [[(m.teacher.name, m.student.name) for m in p.matches] for p in (one, other)]
    assert drawn[0] == drawn[1] and other.roster.to_json() == one.roster.to_json()
    with pytest.raises(UserError, match="resume with the same population"):
        population(2, 2).load_state(one.state())
