"""The eval: who sits it, when, and with how many attempts."""

import math
from dataclasses import replace

import pytest
import torch

from azr_population.config.load import load_config
from azr_population.domains.code.formats import ChatFormat
from azr_population.domains.code.task_types import Task, TaskType
from azr_population.hosts.local.run import _selfplay
from azr_population.method.held_out_eval import HeldOutEval, held_out_eval, pass_at


@pytest.fixture
def held_out():
    """Twenty tasks as the scripted engine understands them, two attempts at each."""
    tasks = [
        Task(TaskType.CODE_O, f"def f(a):\n    return a + {n}", ("3",), (str(n + 3),))
        for n in range(2, 22)
    ]
    return HeldOutEval(tasks, 2, 1)


@pytest.fixture
def populations(config):
    config.population.teachers = config.population.students = 2
    config.eval.every = 2
    config.run.steps = 5


def evals(game, steps):
    records = [game.play_step() for _ in range(steps)]
    return {played.metrics["step"]: played for played in records if played.evals}


def test_students_sit_it_and_their_scores_are_their_skills(play, held_out, populations):
    sitting = evals(play([1.0, 1.0, 1.0, 0.0], held_out), 1)[1]
    metrics = sitting.metrics
    assert (metrics["student_0/eval/greedy"], metrics["student_1/eval/greedy"]) == (1.0, 0.0)
    assert [metrics[f"eval/{name}"] for name in ("greedy", "best", "worst")] == [0.5, 1.0, 0.0]
    assert metrics["eval/greedy/code_o"] == 0.5
    assert [(row["member"], row["samples"], row["t1"]) for row in sitting.evals] == [
        ("student_0", 2, [1.0] * 20),
        ("student_1", 2, [0.0] * 20),
    ]
    for row in sitting.evals:
        assert row["greedy"] == row["t0.4"] == row["pass@2"] == row["t1"]
    assert {metrics[f"eval/{name}"] for name in ("t0.4", "t1", "pass@2")} == {0.5}
    # One solves every task and the other none: they differ by skill alone.
    assert metrics["eval/disagreement"] == metrics["eval/reliability"] == 1.0
    assert metrics["eval/member_std"] == pytest.approx(0.5**0.5)
    assert "eval/rating_corr" not in metrics, "two students"


def test_it_is_sat_at_the_start_every_so_often_and_at_the_end(play, held_out, populations):
    assert list(evals(play([1.0, 1.0, 0.5, 0.5], held_out), 5)) == [1, 2, 4, 5]


def test_the_first_and_the_last_sitting_are_equally_long(play, held_out, populations, config):
    config.eval.final_samples = 10
    sittings = evals(play([1.0, 1.0, 0.5, 0.5], held_out), 5)
    attempts = {step: played.metrics["eval/samples"] for step, played in sittings.items()}
    assert attempts == {1: 10, 2: 2, 4: 2, 5: 10}
    for step, played in sittings.items():
        for row in played.evals:
            for score in row["t1"]:
                assert score * attempts[step] == pytest.approx(round(score * attempts[step]))


def sit(held_out, game, members, run_seed=1, step=1, format=None):
    students = [game.population.roster[name] for name in members]
    tools = replace(game.tools, format=format) if format else game.tools
    marks = held_out.evaluate(tools, students, run_seed, step).marks
    return {name: of_member.warm for name, of_member in marks.items()}


def test_who_else_sits_changes_no_score_and_noise_is_not_shared(play, held_out, config):
    game = play([1.0] * 4 + [0.5] * 4)
    names = [f"student_{n}" for n in range(4)]
    together = sit(held_out, game, names)
    assert together == {name: sit(held_out, game, [name])[name] for name in reversed(names)}
    # Members of one skill, other steps and other runs of the same eval draw for themselves.
    draws = [
        *together.values(),
        *(sit(held_out, game, names[:1], 1, step)[names[0]] for step in (2, 3)),
    ]
    draws.append(sit(held_out, game, names[:1], 2, 1)[names[0]])
    assert len({tuple(scores) for scores in draws}) == len(draws)


def test_a_probability_that_is_known_is_not_sampled(play, held_out, config):
    class OneAnswer(ChatFormat):
        def gold_answer(self, task):
            return task.outputs[0]

    game = play([1.0] * 4 + [0.25] * 4)
    scores = sit(held_out, game, ["student_0"], format=OneAnswer())
    assert scores == {"student_0": [0.25] * 20}


def test_the_headline_is_greedy_and_each_decoding_has_its_own_temperature(play, held_out, config):
    game = play([1.0] * 4 + [0.5] * 4)
    asked, generate = [], game.tools.engine.generate

    def note(prompts, slots, sampling, seed):
        asked.append((sampling.temperature, sampling.n, len(prompts)))
        return generate(prompts, slots, sampling, seed)

    game.tools.engine.generate = note
    student = game.population.roster["student_0"]
    sitting = held_out.evaluate(game.tools, [student], 1, 1, attempts=8)
    assert asked == [(1.0, 8, 20), (0.0, 1, 20), (0.4, 8, 20)]
    marks = sitting.marks["student_0"]
    assert sitting.scores == {"student_0": marks.greedy} and set(marks.greedy) <= {0.0, 1.0}
    assert [one > 0 for one in marks.warm] == [one == 1.0 for one in marks.passed]


def test_pass_at_k_is_without_bias():
    assert [pass_at(1, 4, right) for right in range(5)] == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert pass_at(2, 4, 1) == pytest.approx(0.5) and pass_at(2, 4, 3) == 1.0


def test_strata_have_means_of_their_own(play, held_out, config):
    game = play([1.0] * 8)
    held_out = HeldOutEval(held_out.tasks, 2, 1, ["core"] * 12 + ["tail"] * 8)
    solve = game.tools.engine._solve
    game.tools.engine._solve = lambda prompt, good: solve(prompt, "return a + 2\n" in prompt)
    sitting = held_out.evaluate(game.tools, [game.population.roster["student_0"]], 1, 1)
    metrics = sitting.metrics([game.population.roster["student_0"]])
    assert metrics["eval/greedy/core"] == pytest.approx(1 / 12)
    assert metrics["eval/greedy/tail"] == 0.0 and "eval/member_std" not in metrics


def test_arms_of_one_seed_draw_alike_by_role_and_place(play, held_out, config):
    student = play([0.5] * 8).population.roster["student_0"]
    config.population.teachers = config.population.students = 0
    agent = play([0.5]).population.roster["agent_0"]
    assert student.place == agent.place == "student_0"
    assert (
        held_out._seed(student, 1, 1) == held_out._seed(agent, 1, 1) != held_out._seed(agent, 1, 2)
    )


def test_programs_of_the_eval_are_no_tasks(play, populations):
    proposed = Task(TaskType.CODE_O, "def f(a):\n    return a + 7  # held out", ("3",), ("10",))
    game = play([1.0] * 4, HeldOutEval([proposed], 1, 1))
    game.tools.engine._propose = lambda prompt, number, good: (
        f"```python\ndef f(a):\n  return a + {7 + number % 2}\n```\n```input\n{number % 5}\n```\n"
    )
    game.config.task.types = ["code_o"]
    metrics = game.play_step().metrics
    refused = metrics["reason/held_out"]
    assert 0 < refused < 24 and metrics["eval/near_copies"] == 24 - refused


def test_the_same_numbers_give_the_same_scores(play, held_out, config):
    game = play([1.0] * 4 + [0.5] * 4)
    assert sit(held_out, game, ["student_1"]) == sit(held_out, game, ["student_1"])


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_base_scores_the_same_in_every_layout():
    """Twenty streams of 1, 2, 4 and 8 members that are all the base: means within binomial error,
    where one shared stream once gave 21.1%, 18.9% and 19.6%."""
    config = load_config(
        [
            "population=8t8s",
            "task.types=[code_o,code_i]",
            "eval.tasks_per_type=6",
            "eval.samples=2",
        ]
    )
    torch.set_num_threads(1)
    with _selfplay(config) as game:
        students = game.population.roster.students
        held_out = held_out_eval(config)
        means, tasks = {}, len(held_out.tasks)
        for size in (1, 2, 4, 8):
            scores = [
                score
                for seed in range(20)
                for student in students[:size]
                for scores in [held_out.solve_rates(game.tools, student, seed, 1)]
                for score in scores
            ]
            means[size] = sum(scores) / len(scores)
    for size, mean in means.items():
        # Half of the eval's tasks are sampled, twice each; the rest is exact.
        error = math.sqrt(mean * (1 - mean) / (20 * size * tasks)) / 2
        pooled = math.hypot(error, error / math.sqrt(8 / size))
        assert abs(mean - means[8]) < 3.5 * pooled, means
