"""Figure 6: what is known of made-up births comes out."""

import pytest

from azr_population.analysis.children import ALL, child_gaps, children_by_operator, recovery
from azr_population.runs.records import Birth

BORN = {"step": 10, "child": "student_0", "operator": "dare"}


def lines(steps=40):
    """The child rises from .2 below the others to their level; they rise as well."""
    for step in range(1, steps + 1):
        common = step / 100
        behind = 0.3 if step <= 10 else 0.2 if step <= 15 else 0.1 if step <= 20 else 0.0
        others = {f"student_{i}/solve_rate": common + shift for i, shift in ((1, 0.02), (2, -0.02))}
        yield {"step": step, "student_0/solve_rate": common - behind, **others}


def test_a_child_is_held_against_the_others_of_its_role_in_the_same_steps(write):
    run = write(metrics=lines(), lineage=[BORN])
    gaps = child_gaps(run, "solve_rate", "student")
    assert gaps["step"].tolist() == [0, 5, 10, 15, 20]
    assert gaps["gap"].tolist() == pytest.approx([-0.3, -0.2, -0.1, 0.0, 0.0])
    assert not len(child_gaps(run, "solve_rate", "teacher"))


def test_children_of_the_last_ten_steps_are_not_held_against_and_end_with_their_life(write):
    births = [BORN, {**BORN, "step": 12, "child": "student_1"}, {**BORN, "step": 17}]
    gaps = child_gaps(write(metrics=lines(), lineage=births), "solve_rate", "student")
    of = {born: frame.set_index("step")["gap"] for born, frame in gaps.groupby("born")}
    # Of steps 11 and 12 student_1 is old, and then student_2 alone.
    assert of[10][5] == pytest.approx(-(2 * 0.2 + 3 * 0.18) / 5)
    assert list(of[10].index) == [0, 5, 10], "replaced at step 17"
    assert of[10][10] == pytest.approx(-0.08) and of[17][0] == pytest.approx(-(3 * 0.18 + 0.16) / 5)


def test_nobody_is_held_against_newborns_alone(write):
    births = [BORN, *({**BORN, "child": f"student_{i}"} for i in (1, 2))]
    gaps = child_gaps(write(metrics=lines(), lineage=births), "solve_rate", "student")
    assert gaps.groupby("child")["step"].unique().map(list).tolist() == [[0, 15, 20]] * 3


def test_a_seed_is_one_observation(write):
    def seed(i):
        made = [dict(line) for line in lines()]
        for line in made:
            line["student_0/solve_rate"] -= i / 100
        births = [{**BORN, "operator": ("dare", "layer_wise")[i % 2]}]
        return write(name=f"seed_{i}", metrics=made, lineage=births * (1 + (i == 0)))

    table = recovery([seed(i) for i in range(4)], "solve_rate", "student")
    at = table[table["step"] == 5].set_index("operator")
    assert at.loc[ALL, "value"] == pytest.approx(-0.2 - 0.015), "not weighed by births"
    assert at.loc[ALL, ["births", "seeds"]].tolist() == [5, 4]
    assert at.loc[ALL, "low"] < -0.215 < at.loc[ALL, "high"]
    assert at.loc["dare", ["births", "seeds"]].tolist() == [3, 2]
    assert at.loc["dare", "low"] != at.loc["dare", "low"], "two seeds have no interval"


def test_a_run_s_page_has_a_row_for_each_operator_and_role(write):
    births = [BORN, {**BORN, "step": 12, "child": "student_1"}, {**BORN, "step": 17}]
    births += [{**BORN, "child": "teacher_0", "operator": "layer_wise"}]
    students, teachers = children_by_operator(write(metrics=lines(), lineage=births))
    counts = {"role": "student", "operator": "dare", "born": 3, "alive": 2}
    assert students.items() >= counts.items() and students["replaced"] < students["last"]
    assert teachers["operator"] == "layer_wise" and teachers["replaced"] is None


def test_a_runs_births_are_read_once_whatever_their_lines_lack(write):
    lineage = [{"step": 3}, {"step": 5, "child": "student_0", "parents": ["student_1"],
               "options": {"eps": 0.1}, "fitness": {"victim": 2}}]  # fmt: skip
    run = write(lineage=lineage)
    (birth,) = run.births
    assert birth == Birth(5, "student_0", ("student_1",), "?", "eps=0.1", 0, 2.0)
    assert run.births is run.births
