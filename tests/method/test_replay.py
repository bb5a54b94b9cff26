"""Replay: students attempt tasks of earlier steps again."""

import pytest

SKILLS = [1.0, 1.0, 0.5, 0.5]
"""Two teachers and two students."""


@pytest.fixture
def game(play, config):
    def make(fraction):
        config.population.teachers = config.population.students = 2
        config.population.replay_fraction = fraction
        return play(SKILLS)

    return make


def test_students_attempt_tasks_of_earlier_steps_and_train_on_as_many_rows(game, config):
    plain = game(0.0)
    _, without = plain.play_step(), plain.play_step()
    replaying = game(0.5)
    first, second = replaying.play_step(), replaying.play_step()
    assert "student_0/replay_solve_rate" not in first.metrics  # there is no earlier task
    assert 0 <= second.metrics["student_0/replay_solve_rate"] <= 1
    for student in ("student_0", "student_1"):
        trained = f"{student}/trained_samples"
        assert second.metrics[trained] == without.metrics[trained] == config.population.batch_size
        replayed = round(0.5 * config.population.batch_size) * config.population.samples_per_task
        assert second.metrics[f"{student}/rollouts"] == replayed + sum(
            len(task["answers"]) for task in second.tasks if task["student"] == student
        )
