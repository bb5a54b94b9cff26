from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from azr_population.method.evolution.credit import OperatorCredit
from azr_population.runs.diagnostics import operator_credit
from azr_population.runs.directory import RunDirectory

Write = Callable[..., RunDirectory]


def birth(step: int, child: str, parent: str, operator: str, victim: float | None) -> dict:
    fitness = {"victim": victim, "parents": [None]}
    return {
        **{"step": step, "child": child, "parents": [parent], "operator": operator},
        "fitness": fitness,
    }


def ratings(step: int, mu: dict[str, float]) -> dict[str, Any]:
    members = {
        name: {"role": name.split("_")[0], "mu": value, "sigma": 1.0} for name, value in mu.items()
    }
    return {"step": step, "members": members}


def test_the_fate_of_children(write: Write) -> None:
    run = write(
        metrics=[
            ratings(5, {"student_0": 25.0, "student_1": 25.0, "student_2": 30.0}),
            ratings(10, {"student_0": 24.0, "student_1": 26.0, "student_2": 30.0}),
            ratings(12, {"student_0": 24.0, "student_1": 26.0, "student_2": 30.0}),
        ],
        lineage=[
            birth(5, "student_0", "student_2", "dare", 10.0),
            birth(10, "student_1", "student_2", "dare", 21.0),
        ],
    )
    # At 10: student_0 has 24 - 3 = 21, its parent 27, the other one 21 (the victim's): half and 0.
    assert operator_credit(run) == [
        {
            "operator": "dare",
            "born": 2,
            "alive": 2,
            "replaced": 0,
            "mean_life": 4.5,
            "judged": 1,
            "passed": 1,
            "mean_rank": 0.25,
            "mean_fitness": 21.0,
            "gain_over_victim": 11.0,
            "gain_over_parent": -6.0,
        }
    ]


def test_a_child_replaced_at_once_did_not_pass(write: Write) -> None:
    run = write(
        metrics=[ratings(step, {"teacher_0": 25.0, "teacher_1": 28.0}) for step in (5, 10)],
        lineage=[
            birth(5, "teacher_0", "teacher_1", "ties", 12.0),
            birth(10, "teacher_0", "teacher_1", "rank_drop", 14.0),
        ],
    )
    ties, rank_drop = sorted(operator_credit(run), key=lambda row: -row["judged"])
    assert (ties["passed"], ties["replaced"], ties["mean_life"]) == (0, 1, 5.0)
    assert (ties["gain_over_victim"], ties["gain_over_parent"]) == (2.0, -11.0)
    assert ties["mean_rank"] == 0.0
    assert (rank_drop["judged"], rank_drop["mean_rank"]) == (0, None)


@pytest.mark.parametrize("ready", [0, 4, 5])
@pytest.mark.parametrize("section", ["evolution: {%s}", "population: {evolution: {%s}}"])
def test_it_agrees_with_the_credit_that_a_run_keeps(write: Write, ready: int, section: str) -> None:
    """Random replacements, counted as they happen and from the records alone."""
    chance = random.Random(4)
    names = [f"student_{i}" for i in range(6)]
    born = dict.fromkeys(names, -ready)
    kept = OperatorCredit()
    metrics, lineage = [], []
    for step in range(2, 41, 2):
        mu = {name: chance.uniform(20, 30) for name in names}
        fitness = {name: value - 3.0 for name, value in mu.items()}
        kept.judge(step, fitness, ready)
        old = [name for name in names if step - born[name] >= ready]
        for child in chance.sample(old, min(2, max(0, len(old) - 1))):
            operator = chance.choice(["dare", "ties", "gauge"])
            parent = chance.choice([name for name in names if born[name] < step and name != child])
            lineage.append(birth(step, child, parent, operator, fitness[child]))
            kept.birth(step, operator, child, parent, fitness[child])
            mu[child], born[child] = 25.0, step  # as recorded: after the replacement
        metrics.append({**ratings(step, mu), "operators": {}})
    expected = kept.summary(40)
    config = section % f"ready: {ready}"
    for row in operator_credit(write(config=config, metrics=metrics, lineage=lineage)):
        for key, value in expected.pop(row["operator"]).items():
            assert row[key] == pytest.approx(value), (row["operator"], key)
    assert expected == {}


def test_another_fitness_is_taken_from_what_the_run_noted(write: Write) -> None:
    records: dict[str, Any] = {
        "metrics": [ratings(5, {"student_0": 25.0}), ratings(10, {"student_0": 25.0})],
        "lineage": [
            birth(5, "student_0", "student_1", "dare", 0.1),
            birth(10, "student_2", "student_1", "dare", 0.2),
        ],
    }
    config = "evolution: {fitness: mean_reward}"
    (row,) = operator_credit(write(config=config, **records))
    assert row["judged"] == 1 and row["gain_over_victim"] is None
    records["metrics"][1]["operators"] = {"dare": {"gain_over_victim": 0.07}}
    (row,) = operator_credit(write(config=config, **records))
    assert row["gain_over_victim"] == 0.07 and row["gain_over_parent"] is None


def test_what_the_run_noted_itself_goes_first(write: Write) -> None:
    records: dict[str, Any] = {
        "metrics": [ratings(5, {"student_0": 25.0}), ratings(10, {"student_0": 25.0})],
        "lineage": [birth(5, "student_0", "student_1", "dare", 0.1)],
    }
    noted = {"born": 1, "judged": 1, "passed": 0, "gain_over_victim": 0.81}
    records["metrics"][1]["operators"] = {"dare": noted}
    (row,) = operator_credit(write(**records))
    assert (row["judged"], row["passed"], row["gain_over_victim"]) == (1, 0, 0.81)
    noted["born"] = 7  # other children than those of the lineage
    (row,) = operator_credit(write(**records))
    assert (row["judged"], row["passed"], row["gain_over_victim"]) == (1, 1, 21.9)


def test_without_records_there_is_no_credit(write: Write) -> None:
    assert operator_credit(write()) == []
    odd = [{"step": 5}, {"child": "student_0"}, {"step": 5, "child": "student_0", "fitness": None}]
    (row,) = operator_credit(write(lineage=odd))
    assert (row["operator"], row["born"], row["mean_life"]) == ("?", 1, 0.0)
