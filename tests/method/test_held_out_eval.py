"""The evals: who takes them, when, with how many samples; and what scores say of members."""

from dataclasses import replace

import pytest
from refusals import refuses

from azr_population.domains.code.domain import Code
from azr_population.domains.code.formats import ChatFormat
from azr_population.domains.code.task_types import Task, TaskType
from azr_population.method.callbacks import EvalCallback
from azr_population.method.held_out_eval import (
    EvalResult,
    HeldOutEval,
    held_out_eval,
    pass_at,
    reliability,
)
from azr_population.method.members import Rating, Roster
from azr_population.method.record import StepRecords


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
    result = evals(play([1.0, 1.0, 1.0, 0.0], held_out), 1)[1]
    metrics = result.metrics
    assert (metrics["student_0/eval/greedy"], metrics["student_1/eval/greedy"]) == (1.0, 0.0)
    assert [metrics[f"eval/{name}"] for name in ("greedy", "best", "worst")] == [0.5, 1.0, 0.0]
    assert metrics["eval/greedy/code_o"] == 0.5
    assert [(row["member"], row["samples"], row["t1"]) for row in result.evals] == [
        ("student_0", 2, [1.0] * 20),
        ("student_1", 2, [0.0] * 20),
    ]
    for row in result.evals:
        assert row["greedy"] == row["pass@2"] == row["t1"]
    assert {metrics[f"eval/{name}"] for name in ("t1", "pass@2")} == {0.5}
    # One solves every task and the other none: they differ by skill alone.
    assert metrics["eval/disagreement"] == metrics["eval/reliability"] == 1.0
    assert metrics["eval/member_std"] == pytest.approx(0.5**0.5)
    assert "eval/rating_corr" not in metrics, "two students"


def scores_of(held_out, game, members, run_seed=1, step=1, format=None):
    students = [game.population.roster[name] for name in members]
    context = replace(game.context, format=format) if format else game.context
    scores = held_out.evaluate(context, students, run_seed, step).scores
    return {name: of_member["t1"] for name, of_member in zip(members, scores, strict=True)}


def test_who_else_sits_changes_no_score_and_noise_is_not_shared(play, held_out, config):
    game = play([1.0] * 4 + [0.5] * 4)
    names = [f"student_{n}" for n in range(4)]
    together = scores_of(held_out, game, names)
    assert together == {name: scores_of(held_out, game, [name])[name] for name in reversed(names)}
    # Members of one skill, other steps and other runs of the same held_out draw for themselves.
    draws = [
        *together.values(),
        *(scores_of(held_out, game, names[:1], 1, step)[names[0]] for step in (2, 3)),
    ]
    draws.append(scores_of(held_out, game, names[:1], 2, 1)[names[0]])
    assert len({tuple(scores) for scores in draws}) == len(draws)


def test_a_probability_that_is_known_is_not_sampled(play, held_out, config):
    class OneAnswer(ChatFormat):
        def gold_answer(self, task):
            return task.outputs[0]

    game = play([1.0] * 4 + [0.25] * 4)
    scores = scores_of(held_out, game, ["student_0"], format=OneAnswer())
    assert scores == {"student_0": [0.25] * 20}
    context = replace(game.context, format=OneAnswer())
    result = held_out.evaluate(context, game.population.roster.students[:1], 1, 1)
    assert result.scores[0]["pass@2"] == [1 - 0.75**2] * 20


def test_the_single_agent_draws_what_the_first_student_draws(play, held_out, config):
    student = scores_of(held_out, play([1.0] * 4 + [0.5] * 4), ["student_0"])
    config.population.teachers = config.population.students = 0
    agent = scores_of(held_out, play([0.5]), ["agent_0"])
    assert agent["agent_0"] == student["student_0"]


def test_it_is_held_after_the_first_step_the_last_and_at_its_interval(play, held_out, populations):
    game = play([1.0] * 4, HeldOutEval(held_out.tasks[:1], 1, 1))
    (callback,) = (each for each in game.callbacks if isinstance(each, EvalCallback))
    steps = []
    for step in range(1, 6):
        game.population.step, records = step, StepRecords({}, [], [], [], [])
        callback.recorded(game.population, [], records)
        steps += [step] if records.evals else []
    assert steps == [1, 2, 4, 5]


def test_metrics_are_those_of_a_known_table(held_out):
    held_out = HeldOutEval(held_out.tasks[:4], 2, 1, ["deep/a", "deep/b", "core/c", "core/c"])
    greedy = [[1.0, 1.0, 1.0, 1.0], [1.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 1.0]]
    t1 = [[0.5, 0.5, 0.0, 0.0], [0.5, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]
    members = Roster.make(1, 3).students
    for member, mu in zip(members, (24.0, 26.0, 28.0), strict=True):
        member.rating = Rating(mu, 1.0)
    scores = [{"greedy": g, "t1": t} for g, t in zip(greedy, t1, strict=True)]
    metrics = EvalResult(held_out, members, scores).metrics()
    named = ("greedy/deep", "worst/deep", "worst/core", "greedy/deep/b", "best", "worst")
    assert [metrics[f"eval/{name}"] for name in named] == [0.5, 0.0, 1.0, 1 / 3, 1.0, 0.5]
    assert metrics["eval/rating_corr"] == pytest.approx(-1.0)
    # Of three pairs: 0.5 at the second task, 0.5 at the first, and both.
    assert metrics["eval/disagreement"] == pytest.approx(2.0 / 12)
    # A task that could not be judged for one counts for nobody.
    scores[2]["greedy"][0] = None
    metrics = EvalResult(held_out, members, scores).metrics()
    assert [metrics[f"eval/{name}"] for name in ("best", "worst", "greedy/deep", "unjudged")] == [
        1.0, pytest.approx(2 / 3), pytest.approx(1 / 3), 1.0,
    ]  # fmt: skip


def test_the_tasks_are_those_of_the_evals_seed_whatever_the_runs(config):
    config.eval.tasks_per_type, config.task.types = 12, ["code_o", "code_i"]
    first = held_out_eval(Code(), config)
    assert [int(name[-13:-11]) for name in first.strata] == [
        task.program.count(" = ") for task in first.tasks
    ]
    config.seed += 1
    assert held_out_eval(Code(), config).tasks == first.tasks
    config.eval.seed += 1
    assert held_out_eval(Code(), config).tasks != first.tasks


def test_the_headline_is_greedy_and_each_decoding_has_its_own_temperature(play, held_out, config):
    game = play([1.0] * 4 + [0.5] * 4)
    asked, generate = [], game.context.engine.generate

    def note(prompts, slots, sampling, seed):
        asked.append((sampling.temperature, sampling.n, len(prompts)))
        return generate(prompts, slots, sampling, seed)

    game.context.engine.generate = note
    student = game.population.roster["student_0"]
    held_out.samples = 8
    result = held_out.evaluate(game.context, [student], 1, 1)
    assert asked == [(1.0, 8, 20), (0.0, 1, 20)]
    (scores,) = result.scores
    assert set(scores["greedy"]) <= {0.0, 1.0}
    assert [score > 0 for score in scores["t1"]] == [score == 1.0 for score in scores["pass@8"]]


def test_pass_at_k_is_without_bias():
    assert [pass_at(1, 4, right) for right in range(5)] == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert pass_at(2, 4, 1) == pytest.approx(0.5) and pass_at(2, 4, 3) == 1.0


def test_strata_have_means_of_their_own(play, held_out, config):
    game = play([1.0] * 8)
    held_out = HeldOutEval(held_out.tasks, 2, 1, ["core"] * 12 + ["tail"] * 8)
    solve = game.context.engine._solve
    game.context.engine._solve = lambda prompt, good: solve(prompt, "return a + 2\n" in prompt)
    result = held_out.evaluate(game.context, [game.population.roster["student_0"]], 1, 1)
    metrics = result.metrics()
    assert metrics["eval/greedy/core"] == pytest.approx(1 / 12)
    assert metrics["eval/greedy/tail"] == 0.0 and "eval/member_std" not in metrics


def test_an_eval_may_have_some_strata_only(config):
    config.eval.tasks_per_type, config.task.types = 24, ["code_o"]
    complete = held_out_eval(Code(), config)
    config.eval.strata = ["07_statements", "deep/09_statements"]
    part = held_out_eval(Code(), config)
    assert part.strata == ("deep/07_statements",) * 2 + ("deep/09_statements",) * 2
    assert [task.program.count(" = ") for task in part.tasks] == [7, 7, 9, 9]
    assert set(part.tasks) <= set(complete.tasks)
    config.eval.strata = ["deep"]
    assert len(held_out_eval(Code(), config).tasks) == 12
    config.eval.strata = ["deap"]
    with refuses("eval.strata"):
        held_out_eval(Code(), config)


def test_programs_of_the_exam_are_no_tasks(play, populations):
    proposed = Task(TaskType.CODE_O, "def f(a):\n    return a + 7  # held out", ("3",), ("10",))
    game = play([1.0] * 4, HeldOutEval([proposed], 1, 1))
    game.context.engine._propose = lambda prompt, number, good: (
        f"```python\ndef f(a):\n  return a + {7 + number % 2}\n```\n```input\n{number % 5}\n```\n"
    )
    game.config.task.types = ["code_o"]
    assert 0 < game.play_step().metrics["reason/held_out"] < 24


def test_reliability_and_spread_are_those_of_a_known_table():
    # Means .75, .5, .25: a mean square of 1/4. Residuals' squares add up to 5/6, for 6 degrees of
    # freedom.
    table = [[1, 1, 1, 0], [1, 1, 0, 0], [1, 0, 0, 0]]
    reliable, spread = reliability(table)
    assert reliable == pytest.approx(1 - (5 / 36) / 0.25)
    assert spread == pytest.approx(((0.25 - 5 / 36) / 4) ** 0.5)


def test_where_there_is_no_telling_there_is_no_number():
    assert reliability([]) is reliability([[1.0, 0.0]]) is reliability([[1.0], [0.0]]) is None
    assert reliability([[1.0, 0.0], [1.0]]) is None


def test_equal_scores_have_no_spread_instead_of_an_unknown_one(play, held_out, populations):
    # The mean over runs would otherwise leave out the runs whose spread is smallest.
    assert reliability([[1.0, 0.0], [0.0, 1.0]]) == (None, -(0.5**0.5))
    metrics = evals(play([1.0, 1.0, 1.0, 1.0], held_out), 1)[1].metrics
    assert metrics["eval/member_std"] == 0.0
    assert "eval/reliability" not in metrics


def test_an_eval_that_nothing_could_judge_has_no_score(play, held_out):
    class Broken(ChatFormat):
        def parse_answer(self, type, text):
            raise IndexError("our fault")

    game = play([1.0] * 8)
    held_out = HeldOutEval(held_out.tasks, 2, 1, ["deep"] * len(held_out.tasks))
    context = replace(game.context, format=Broken())
    metrics = held_out.evaluate(context, game.population.roster.students[:2], 1, 1).metrics()
    assert metrics == {"eval/samples": 2.0, "eval/unjudged": len(held_out.tasks)}


def test_a_fault_of_ours_at_an_answer_ends_no_run_and_is_nobodys_score(play, held_out, caplog):
    class Broken(ChatFormat):
        def parse_answer(self, type, text):
            if "4" in text:  # the answer to the first task
                raise IndexError("our fault")
            return super().parse_answer(type, text)

    game = play([1.0] * 8)
    students = game.population.roster.students[:2]
    context = replace(game.context, format=Broken())
    result = held_out.evaluate(context, students, 1, 1)
    unjudged = [task.outputs[0] for task in held_out.tasks if "4" in task.outputs[0]]
    for scores in result.scores:
        assert scores["greedy"].count(None) == len(unjudged) and set(scores["t1"]) == {None, 1.0}
    metrics = result.metrics()
    assert metrics["eval/greedy"] == 1.0 and metrics["eval/unjudged"] == len(unjudged)
    assert None in result.records(1)[0]["pass@2"] and "our fault" in caplog.text
