import json
import re

import pytest

from azr_population.config.schema import EvolutionConfig
from azr_population.domains.code.task_types import Task, TaskType
from azr_population.method.held_out_eval import HeldOutEval
from azr_population.method.members import Rating
from azr_population.streams import Streams

SKILLS = [1.0, 1.0, 1.0, 0.2, 0.9, 0.9, 0.9, 0.1]
"""Four teachers, the last of whom proposes mostly nonsense, and four students, the last weak."""


@pytest.fixture
def population(config):
    config.population.teachers = config.population.students = 4


def test_ratings_find_the_weak_members_and_evolution_replaces_them(play, config, population):
    game = play(SKILLS)
    records = [game.play_step() for _ in range(3)]
    (metrics, births) = records[-1].metrics, records[-1].lineage
    assert [birth["child"] for birth in births] == ["teacher_3", "student_3"]
    assert game.population.roster["teacher_3"].generation == 1
    assert all(birth["child"] not in birth["parents"] for birth in births)
    assert all(birth["parents"][0][:7] == birth["child"][:7] for birth in births)
    assert metrics["student_3/generation"] == 1
    assert [r.lineage for r in records[:2]] == [[], []]
    before = {f"student_{n}": records[1].metrics[f"student_{n}/mu"] for n in range(4)}
    assert min(before, key=before.get) == "student_3"
    assert metrics["evolution/replaced"] == 2


def test_every_match_is_recorded_with_what_came_of_it(play, config, population):
    record = play(SKILLS).play_step()
    assert len(record.matches) == 4
    for match in record.matches:
        assert match["proposed"] == 12
        games = ("student_wins", "teacher_wins", "draws", "invalid")
        assert sum(match[game] for game in games) == 12
        assert match["invalid"] == 12 - match["valid"]
        assert match["teacher_mu"][0] == 25.0 != match["teacher_mu"][1]
        assert match["win_probability"] == 0.5, "before the match"
        rates = [task["solve_rate"] for task in record.tasks if task["teacher"] == match["teacher"]]
        assert match["solve_rate"] == pytest.approx(sum(rates) / len(rates)), "of valid tasks"
    assert len(record.tasks) == sum(match["valid"] for match in record.matches)
    json.dumps([record.metrics, record.matches, record.lineage, record.tasks])


def test_the_budget_of_every_member_is_recorded(play, config, population):
    metrics = play([1.0] * 8).play_step().metrics
    assert {metrics[f"teacher_{n}/rollouts"] for n in range(4)} == {12}
    assert {metrics[f"student_{n}/rollouts"] for n in range(4)} == {24}
    assert {v for key, v in metrics.items() if re.match(r"\w+_\d/updates", key)} == {1.0}
    assert (metrics["teacher/rollouts"], metrics["student/rollouts"]) == (48, 96)


def test_the_single_agent_plays_itself_and_is_never_rated_or_replaced(play, config):
    config.population.teachers = config.population.students = 0
    game = play([0.6])
    records = [game.play_step() for _ in range(3)]
    assert all(record.lineage == [] for record in records)
    assert game.population.roster["agent_0"].rating == Rating()
    assert records[0].metrics["agent/rollouts"] > 6
    assert "agent_0/mu" not in records[0].metrics


def test_going_on_from_a_saved_state_gives_the_same_run(play, config, population):
    evolution = config.evolution
    evolution.operators = {"full_gaussian": 1.0, "layer_wise+svd_structured": 1.0}
    evolution.options = {"svd_structured": {"eps": 0.2}}
    evolution.interval, evolution.grace_period = 2, 0
    uninterrupted = play(SKILLS)
    expected = [uninterrupted.play_step() for _ in range(6)]
    first = play(SKILLS)
    for _ in range(4):
        first.play_step()
    second = play(SKILLS)
    second.population.load_state(json.loads(json.dumps(first.population.state())))
    second.context.engine.load_state_dict(first.context.engine.state_dict())
    again = [second.play_step() for _ in range(2)]
    assert uninterrupted.context.engine.digest() == second.context.engine.digest()
    assert uninterrupted.population.state() == second.population.state()
    for first, other in zip(expected[4:], again, strict=True):
        assert (first.matches, first.lineage) == (other.matches, other.lineage)
        assert first.tasks == other.tasks
    born = [birth for record in expected for birth in record.lineage]
    made = {birth["operator"]: birth["options"] for birth in born}
    assert made["layer_wise+svd_structured"]["svd_structured.eps"] == 0.2
    assert len(born) == 6


def test_students_attempt_tasks_of_earlier_steps_and_train_on_as_many_rows(play, config):
    def game(fraction):
        config.population.teachers = config.population.students = 2
        config.population.replay_fraction = fraction
        return play([1.0, 1.0, 0.5, 0.5])

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


def test_random_streams_keep_their_names(play, config, monkeypatch):
    """Under another name the seed of a published run would play another run."""
    config.population.teachers = config.population.students = 2
    config.population.replay_fraction = 0.5
    evolving = {
        "operators": {"full_gaussian": 1.0},
        "hyperparameters": {"lr": {"init": [1e-4, 1e-3]}},
    }
    config.evolution = EvolutionConfig(interval=1, **evolving)
    config.eval.every, names, derive = 1, set(), Streams._sequence

    def note(streams, purpose, step):
        names.add(re.sub(r"_\d$", "_N", purpose))
        return derive(streams, purpose, step)

    monkeypatch.setattr(Streams, "_sequence", note)
    tasks = [Task(TaskType.CODE_O, "def f(a):\n    return a + 7", ("3",), ("10",))]
    play([1.0, 1.0, 0.5, 0.5], HeldOutEval(tasks, 1, 1)).play_step()
    assert names == {
        *("match", "references", "propose", "replay_N", "solve", "attempts", "completions"),
        *("select teacher", "breed teacher_N", "select student", "breed student_N"),
        *("lr student_N", "exam 1 student_N"),
    }
    assert Streams(1).integer("solve", 3) == 1493473208893527227
