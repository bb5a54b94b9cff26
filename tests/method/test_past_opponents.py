"""Past opponents: who gets which tasks, who is paid, who is not trained or rated."""

import pytest

from azr_population.method.callbacks import PastOpponents
from azr_population.runs.records import grouped
from azr_population.weights.peft_folder import save_adapter

SKILLS = [1.0, 1.0, 1.0, 1.0, 0.0]
"""Two teachers, always valid, two students, always right, and a past one, never right."""


@pytest.fixture
def game(play, config, tmp_path):
    """Half of the tasks of 2T+2S go to the past."""
    config.population.teachers = config.population.students = 2
    config.evolution.interval = 0
    game = play(SKILLS)
    game.callbacks.append(PastOpponents(tmp_path / "snapshots", 4, 0.5, game.context.engine))
    return game


def store(game, folder, step):
    for name, slot in (("student_1", 3), ("teacher_0", 0)):
        place = folder / f"snapshots/step_{step}" / name
        save_adapter(game.context.engine.read(slot), place, "base", {})


def test_before_the_first_snapshot_everything_is_as_without_them(game, play):
    without = play(SKILLS[:4]).play_step()
    records = game.play_step()
    assert "past" not in records.metrics
    assert records.tasks == without.tasks and records.matches == without.matches


def test_a_share_of_every_match_goes_to_an_earlier_student_and_pays_the_teacher(game, tmp_path):
    game.play_step()
    store(game, tmp_path, 1)
    store(game, tmp_path, 2)  # of the step being played: not yet past
    records = game.play_step()
    assert grouped(records.metrics)["past"] == {
        "student": "student_1@1",
        "tasks": 12,
        "solve_rate": 0.0,
    }
    by_student = [(task["teacher"], task["student"]) for task in records.tasks]
    for teacher in ("teacher_0", "teacher_1"):
        assert by_student.count((teacher, "student_1@1")) == 6
        # Half of its tasks are solved by nobody (1), half by everybody (0).
        assert records.metrics[f"{teacher}/proposal_reward"] == pytest.approx(0.5, abs=0.1)
    assert (
        game.context.engine.weights[4]
        .factors["layer"]
        .B.equal(game.context.engine.weights[3].factors["layer"].B)
    )


def test_past_opponents_are_neither_trained_nor_rated(game, tmp_path):
    game.play_step()
    store(game, tmp_path, 1)
    records = game.play_step()
    samples, _ = game.context.engine.updates[-1]
    assert set(samples) == {0, 1, 2, 3}
    assert {match["student"] for match in records.matches} == {"student_0", "student_1"}
    assert [match["proposed"] for match in records.matches] == [6, 6]
    assert [match["teacher_wins"] for match in records.matches] == [0, 0]
    assert records.metrics["student/solve_rate"] == 1.0
