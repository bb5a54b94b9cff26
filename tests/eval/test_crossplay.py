"""What a cross-play says, from made-up solve rates whose answer is known."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from azr_population.analysis import charts
from azr_population.eval.crossplay import CrossPlay, page_of
from azr_population.eval.members import StoredMember


def members(role, *steps):
    return tuple(
        StoredMember(f"{role}_{n}", Path(), Path(), step=step) for n, step in enumerate(steps)
    )


def outcome_of(rates, teachers=(10, 20), students=(10, 20)):
    return CrossPlay(
        members("teacher", *teachers),
        members("student", *students),
        tuple(rates),
        rates[0].shape[1],
    )


def test_slopes_are_against_the_earliest_of_the_other_side():
    rates = [np.tile([[0.2], [0.3]], 10), np.tile([[0.1], [0.25]], 10)]
    slopes = outcome_of(rates, (50, 100), (50, 100)).slopes()[""]
    assert slopes["student"] == pytest.approx(0.2) and slopes["teacher"] == pytest.approx(0.2)
    assert outcome_of(rates, (50, 50), (50, 50)).slopes() == {"": {}}


def test_the_earliest_are_the_earliest_in_whatever_order_members_are_named():
    rates = [np.tile([[0.2], [0.3]], 10), np.tile([[0.1], [0.25]], 10)]
    named_late_first = outcome_of([each[::-1] for each in rates[::-1]], (100, 50), (100, 50))
    slopes = named_late_first.slopes()[""]
    assert slopes["student"] == pytest.approx(0.2) and slopes["teacher"] == pytest.approx(0.2)
    assert "students of step 100 against those of step 50: +10.0" in named_late_first.sentences()[1]


def test_a_run_without_students_or_teachers_has_no_slopes():
    runs = {name: SimpleNamespace(path=Path(name)) for name in ("a", "b", "c")}
    teachers, students = (
        tuple(
            StoredMember(f"{role}_0", Path(), Path(), runs[run], step)
            for run, step in ((own, 10), ("c", 10), ("c", 20))
        )
        for role, own in (("teacher", "a"), ("student", "b"))
    )
    outcome = CrossPlay(teachers, students, (np.full((3, 4), 0.5),) * 3, 4)
    assert list(outcome.slopes()) == ["c"]
    assert outcome.sentences()[0] == "3 teachers of 4 proposals each, 3 students"


def test_a_teacher_without_a_valid_task_is_left_out():
    rates = [np.tile([[0.2], [0.3]], 10), np.zeros((2, 0))]
    outcome = outcome_of(rates, (50, 100), (50, 100))
    assert np.isnan(outcome.matrix[1]).all()
    assert list(outcome.slopes()[""]) == ["student"]


def test_a_task_that_could_not_be_judged_is_left_out_of_its_cell(monkeypatch):
    drawn = []
    heatmap = charts.heatmap
    monkeypatch.setattr(
        charts, "heatmap", lambda frame, **o: drawn.append(frame) or heatmap(frame, **o)
    )
    page_of(outcome_of([np.array([[1.0, 0.0, 1.0, np.nan]])], (10,), (10,)), [])
    assert drawn[0]["value"][0] == pytest.approx(2 / 3) and drawn[0]["count"][0] == 3
