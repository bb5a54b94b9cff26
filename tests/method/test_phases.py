from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from azr_population.domains.code.domain import Code
from azr_population.domains.code.formats import ChatFormat
from azr_population.domains.code.task_types import Task, TaskType
from azr_population.domains.domain import Verdict
from azr_population.method import phases
from azr_population.method.training import (
    ScoredCompletion,
    choose_attempts,
    scored_attempts,
    scored_proposals,
    training_samples,
)


def credited(rows, config):
    trained = scored_attempts(rows, [], config.population, np.random.default_rng(0))
    return training_samples([*scored_proposals(rows), *trained])


def played(play, config, skill, teachers, students):
    """One step's rows, up to the rewards."""
    config.population.teachers, config.population.students = teachers, students
    game = play(skill)
    population = game.population
    population.begin_step(1)
    rows = phases.propose(game.context, population, config.task, config.engine)
    phases.verify(rows, game.context, config.task)
    phases.solve(rows, game.context, 1, config.population.samples_per_task)
    phases.grade(rows, game.context)
    population.reward(rows)
    return rows


def every(rows):
    """All attempts as candidates, by task; `value` is the task's number."""
    return [
        [ScoredCompletion(attempt, number) for attempt in row.attempts]
        for number, row in enumerate(rows)
    ]


@pytest.mark.parametrize(("teachers", "students"), [(1, 1), (2, 2), (2, 3), (4, 2), (0, 0)])
def test_every_member_has_the_same_number_of_rows(play, config, teachers, students):
    rows = played(play, config, [1.0] * max(1, teachers + students), teachers, students)
    proposed = Counter(row.match.teacher.name for row in rows)
    samples = credited(rows, config)
    if teachers == 0:
        # The single agent splits its rows between proposing and solving.
        assert proposed == {"agent_0": 6}
        return
    assert set(proposed.values()) == {12}
    # Everything is solved here, so no advantage is left; the drawn attempts are counted instead.
    counts = Counter()
    for match in {id(row.match): row.match for row in rows}.values():
        of_match = [row for row in rows if row.match is match]
        share = 12 * students // len({id(row.match) for row in rows})
        chosen = choose_attempts(every(of_match), share, np.random.default_rng(0))
        counts[match.student.name] += len(chosen)
    assert set(counts.values()) == {12} and len(counts) == students
    assert set(samples) == set(range(teachers + students))


def test_a_budget_that_the_types_do_not_divide_is_kept(play, config):
    config.population.batch_size = 11
    rows = played(play, config, [1.0] * 2, 1, 1)
    assert sorted(Counter(row.type for row in rows).values()) == [3, 4, 4]


def test_limits_of_the_run_hold_and_proposers_see_earlier_tasks_of_their_type(play, config):
    config.population.teachers = config.population.students = 1
    config.engine.max_proposal_tokens, config.engine.max_answer_tokens = 77, 55
    config.task.example_tasks = 2
    game, limits, shown = play([1.0] * 2), set(), []

    class Noting(ChatFormat):
        def propose_prompt(self, type, tasks=()):
            shown.append((type, [task.type for task in tasks]))
            return super().propose_prompt(type, tasks)

    generate = game.context.engine.generate

    def note(prompts, slots, sampling, seed):
        proposing = prompts[0].startswith("Design")
        limits.update((proposing, limit) for limit in sampling.limits(len(prompts)))
        return generate(prompts, slots, sampling, seed)

    game.context.engine.generate = note
    game.context = replace(game.context, format=Noting())
    game.play_step()
    assert limits == {(True, 77), (False, 55)}
    assert all(types == [] for _, types in shown[:12])
    game.play_step()
    assert all(types == [type, type] for type, types in shown[12:])


def test_each_student_draws_tasks_of_its_own(play, config):
    config.population.teachers, config.population.students = 1, 2
    config.population.replay_fraction = 0.5
    population = play([1.0] * 3).population
    for number in range(60):
        program = f"def f(a):\n    return a + {number}"
        population.buffer.add(Task(TaskType.CODE_O, program, ("1",), (str(number + 1),)))
    drawn = phases.draw_replay(population)
    assert len({replay.task.program for replay in drawn if replay.student.slot == 1}) == 6
    first, second = ([r.task for r in drawn if r.student.slot == slot] for slot in (1, 2))
    assert first != second and phases.draw_replay(population) == drawn


def test_a_task_whose_own_answer_fails_pays_its_teacher_as_an_invalid_one(play, config):
    config.population.teachers = config.population.students = 1
    game = play([1.0, 0.0])
    game.population.begin_step(1)
    rows = phases.propose(game.context, game.population, config.task, config.engine)
    phases.verify(rows, game.context, config.task)
    phases.solve(rows, game.context, 1, config.population.samples_per_task)
    void = [row for row in rows if row.type != TaskType.CODE_O]
    for row in void:  # as if its outputs had come from a run that no later one repeats
        row.task = replace(row.task, outputs=("'another'",) * len(row.task.outputs))
    phases.grade(rows, game.context)
    game.population.reward(rows)
    assert void and all((row.task, row.attempts) == (None, []) for row in void)
    assert {row.reason for row in void} == {"nondeterministic"}
    assert {row.reward for row in void} == {-1.0}
    assert {row.reward for row in rows if row not in void} == {1.0}


def test_right_and_wrong_answers_are_told_apart_for_every_type(play, config):
    right = played(play, config, [1.0, 1.0], 1, 1)
    wrong = played(play, config, [1.0, 0.0], 1, 1)
    assert all(row.solve_rate == 1.0 and row.reward == 0.0 for row in right)
    assert all(row.solve_rate == 0.0 and row.reward == 1.0 for row in wrong)
    assert {answer.reward for row in wrong for answer in row.attempts} == {-0.5}


def test_programs_that_fail_are_no_tasks_and_cost_the_teacher(play, config):
    rows = played(play, config, [0.0, 1.0], 1, 1)
    assert all(row.task is None and row.reward == -1.0 and not row.attempts for row in rows)
    assert {row.reason for row in rows} == {"error"}


def test_training_rows_take_one_attempt_of_every_task_before_a_second_of_any(play, config):
    rows = played(play, config, [1.0, 0.5], 1, 1)
    chosen = choose_attempts(every(rows), 14, np.random.default_rng(0))
    per_task = Counter(attempt.value for attempt in chosen)
    assert len(per_task) == 12 and sorted(per_task.values()) == [1] * 10 + [2] * 2
    # No attempt is taken twice, and there are never more than there are.
    everything = choose_attempts(every(rows), 99, np.random.default_rng(0))
    assert len({id(attempt.sample) for attempt in everything}) == len(everything) == 24


def test_teachers_train_on_proposals_and_students_on_attempts(play, config):
    rows = played(play, config, [0.7, 0.5], 1, 1)
    samples = credited(rows, config)
    proposals = {id(row.completion) for row in rows}
    assert {id(s.completion) in proposals for s in samples[0]} == {True}
    assert {id(s.completion) in proposals for s in samples[1]} == {False}
    assert sum(s.advantage for s in samples[0]) == pytest.approx(0, abs=1e-9)


def test_the_single_agent_has_separate_baselines_for_both_roles(play, config):
    config.population.batch_size = 48
    rows = played(play, config, [0.7], 0, 0)
    assert all(row.match.teacher is row.match.student for row in rows)
    samples = credited(rows, config)[0]
    proposals = {id(row.completion) for row in rows}
    for kind in (True, False):
        advantages_of = [s.advantage for s in samples if (id(s.completion) in proposals) is kind]
        assert advantages_of and sum(advantages_of) == pytest.approx(0, abs=1e-9)


def test_right_answers_alone_are_learned_where_not_all_agree(play, config):
    config.population.batch_size = 48
    config.population.samples_per_task = 4
    config.population.student_advantage = "positive_only"
    rows = played(play, config, [1.0, 0.5], 1, 1)
    samples = credited(rows, config)[1]
    learned = {id(sample.completion): sample.advantage for sample in samples}
    mixed = [r for r in rows if len({answer.solved for answer in r.attempts}) > 1]
    right = [(r, a) for r in mixed for a in r.attempts if a.solved]
    assert len(learned) == 48 < len(right)  # its rows and no more
    for _, answer in right:
        assert learned.pop(id(answer.completion), 1.0) == 1.0
    assert not learned


def refuse_some(texts):
    if any("+ 1" in text for text in texts):
        raise ArithmeticError("ours")


class FailsToJudge(Code):
    def judge(self, proposals, referee, rules):
        refuse_some(proposal.program for proposal in proposals)
        return super().judge(proposals, referee, rules)


class FailsToGrade(Code):
    def grade(self, asked, referee):
        refuse_some(task.program for task, _ in asked)
        return super().grade(asked, referee)


class FailsToAsk(ChatFormat):
    def solve_prompt(self, task):
        refuse_some([task.program])
        return super().solve_prompt(task)


class FailsToRead(ChatFormat):
    def parse_proposal(self, type, text):
        refuse_some([text])
        return super().parse_proposal(type, text)


@pytest.mark.parametrize(
    "failing",
    [
        *({"domain": FailsToJudge()}, {"domain": FailsToGrade()}),
        *({"format": FailsToAsk()}, {"format": FailsToRead()}),
    ],
)
def test_what_we_cannot_read_pays_and_rates_nobody_and_is_logged_and_the_run_continues(
    play, config, caplog, failing
):
    config.population.teachers = config.population.students = 1
    game = play([1.0, 1.0])
    game.context = replace(game.context, **failing)
    records = game.play_step()
    failed = records.metrics["reason/internal_error"]
    assert 0 < failed < 12 and records.metrics["reason/ok"] == 12 - failed
    assert len(records.tasks) == 12 - failed
    assert records.metrics["teacher/valid_frac"] == 1.0
    assert records.metrics["teacher/proposal_reward"] == 0.0 == records.metrics["teacher/reward"]
    assert records.metrics["teacher_0/trained_samples"] == 0  # the others' rewards are equal
    (match,) = records.matches
    assert (match["proposed"], match["invalid"]) == (12 - failed, 0)
    assert match["student_wins"] == 12 - failed
    assert all(record["solve_rate"] == 1.0 for record in records.tasks)
    raised = [record.exc_info[0] for record in caplog.records]
    assert set(raised) == {ArithmeticError} and len(raised) in (failed, failed + 1)


def test_a_program_that_we_cannot_measure_is_a_task_all_the_same(play, config, caplog):
    class FailsToMeasure(Code):
        def measure(self, program):
            refuse_some([program])
            return super().measure(program)

    config.population.teachers = config.population.students = 1
    game = play([1.0, 1.0])
    game.context = replace(game.context, domain=FailsToMeasure())
    records = game.play_step()
    assert records.metrics["reason/ok"] == 12 == len(records.tasks)
    assert 0 < sum("lines" not in task for task in records.tasks) < 12
    assert records.metrics["teacher/lines"] == 2.0
    assert {record.exc_info[0] for record in caplog.records} == {ArithmeticError}


@pytest.mark.parametrize(
    ("reason", "paid", "outcome"),
    [("lost", 0.0, None), ("malformed", -1.0, "invalid"), ("nondeterministic", -1.0, "invalid")],
)
def test_a_task_that_cannot_be_graded_is_no_students_failure(play, config, reason, paid, outcome):
    class Ungraded(Code):
        def grade(self, answered, referee):
            return [[Verdict(False, reason) for _ in answers] for _, answers in answered]

    config.population.teachers = config.population.students = 1
    config.population.teacher_reward = "adversarial"
    game = play([1.0, 1.0])
    game.context = replace(game.context, domain=Ungraded())
    records = game.play_step()
    assert records.metrics[f"reason/{reason}"] == 12 and not records.tasks
    assert records.metrics.get("teacher/proposal_reward", 0.0) == paid
    assert "student/answer_reward" not in records.metrics
    assert [match[outcome] for match in records.matches] == ([12] if outcome else [])


def test_a_fault_of_the_machine_ends_the_step(play, config):
    class Full(Code):
        def judge(self, proposals, referee, rules):
            raise OSError("no space left")

    game = play([1.0] * 8)
    game.context = replace(game.context, domain=Full())
    with pytest.raises(OSError):
        game.play_step()
