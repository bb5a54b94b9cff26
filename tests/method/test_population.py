"""A population without an engine: matches, rewards, ratings, births, state."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from refusals import refuses

from azr_population.config.schema import Config, EvolutionConfig, PopulationConfig
from azr_population.domains.code.domain import Code
from azr_population.domains.code.task_types import ParsedProposal, Task, TaskType
from azr_population.engines.engine import Completion, Generated, Hyperparameters
from azr_population.errors import UserError
from azr_population.method.members import Rating
from azr_population.method.population import Population
from azr_population.method.proposals import Attempt, PlayedStep, Proposal
from azr_population.method.record import check_budget, nothing_valid_notes, win_rates
from azr_population.method.training import advantage
from azr_population.runs.records import metrics_of_members
from azr_population.weights.breeding import Breeding

WRITTEN = Completion(0, (), (1, 2), (-0.5, -1.0), True)


def population(teachers=2, students=2):
    evolution = EvolutionConfig(interval=2, operators={"full_gaussian": 1.0, "dare": 1.0})
    config = PopulationConfig(teachers=teachers, students=students)
    return Population(Config(population=config, evolution=evolution), Code())


def rows(pop, solved):
    """Two proposals per match, which the student solves or not; rewarded."""
    proposals = []
    for match in pop.matches:
        for number in range(2):
            program = f"def f(a):\n    return a + {number}"
            row = Proposal(
                match, TaskType.CODE_O, WRITTEN, ParsedProposal(TaskType.CODE_O, program, ("1",))
            )
            row.task = Task(TaskType.CODE_O, program, ("1",), (str(number + 1),))
            row.attempts = [Attempt(WRITTEN, "1", solved[match.student.name])]
            proposals.append(row)
    pop.reward(proposals)
    return proposals


def finish(pop, made, updates=(), replayed=()):
    """The end of a step."""
    matches = pop.rate(made)
    generated = {1: Generated(4, 8)}
    played = PlayedStep(made, dict(updates), generated, replayed)
    return pop.record(
        played, matches, pop.evolve(lambda *_: Breeding("full_gaussian", {"eps": 0.15}))
    )


def rates(pop):
    return {slot: settings.lr for slot, settings in pop.hyperparameters().items()}


def test_ratings_follow_the_games_and_the_best_student_is_known():
    pop = population()
    pop.begin_step(1)
    finish(pop, rows(pop, {"student_0": False, "student_1": True}))
    assert pop.best_student().name == "student_1"
    assert pop.roster["student_0"].rating.mu < 25 < pop.roster["student_1"].rating.mu
    assert rates(pop) == {0: 1.5e-4, 1: 1.5e-4, 2: 1e-3, 3: 1e-3}
    pop.roster["student_0"].rating = Rating(pop.roster["student_1"].rating.mu + 5, 25 / 3)
    assert pop.best_student().name == "student_1", "of the other little is known"


def test_updates_get_the_learning_rate_of_the_role_and_the_kl_term():
    config = PopulationConfig(teachers=0, students=0, agent_lr=0.5, kl_loss_coef=0.25)
    pop = Population(Config(population=config), Code())
    assert pop.hyperparameters() == {0: Hyperparameters(0.5, 0.25)}


@pytest.mark.parametrize(("kl", "held"), [(0.0, 0), (0.25, 4)])
def test_a_kl_term_is_on_rows_that_teach_nothing_too(kl, held):
    pop = population(1, 1)
    pop.config.kl_loss_coef = kl
    pop.begin_step(1)
    assert len(advantage(rows(pop, {"student_0": True}), pop)[0]) == held


def test_replay_counts_as_written_and_not_as_played():
    pop = population(1, 1)
    pop.begin_step(1)
    played = rows(pop, {"student_0": False})
    replayed = [
        Attempt(replace(WRITTEN, slot=1), None, solved, reason, reward, type="code_o")
        for solved, reason, reward in ((True, "solved", 1.0), (False, "wrong", -0.5))
    ]
    metrics = finish(pop, played, {1: {"rows": 2.0, "tokens": 4.0}}, replayed).metrics
    student, teacher = (metrics_of_members(metrics)[name] for name in ("student_0", "teacher_0"))
    assert (student["rollouts"], student["generated_tokens"]) == (4, 8)
    assert (student["trained_samples"], student["trained_tokens"]) == (2.0, 4.0)
    assert (student["replay_solve_rate"], student["replay_reward"]) == (0.5, 0.25)
    assert student["solve_rate"] == 0.0 and student["reward"] == -0.5
    assert (teacher["rollouts"], "replay_reward" in teacher) == (0, False)
    surprise = -sum(WRITTEN.logprobs) / len(WRITTEN.logprobs)
    assert (teacher["proposal_entropy"], student["answer_entropy"]) == (surprise, surprise)
    assert "answer_entropy" not in teacher and "proposal_entropy" not in student
    assert (student["win_rate"], teacher["win_rate"]) == (0.0, 1.0)


def test_metrics_of_what_was_written():
    pop = population()
    pop.begin_step(1)
    played = rows(pop, {"student_0": True, "student_1": True})
    played[0].attempts.append(Attempt(replace(WRITTEN, token_ids=(1,) * 5), None))
    far = {"mismatch_kl": 0.5, "loss": 2.0}
    metrics = finish(pop, played, {2: far, 3: {"mismatch_kl": 0.25}}).metrics
    solver = played[0].match.student.name
    assert metrics[f"{solver}/parsed_frac"] == pytest.approx(2 / 3)
    assert metrics[f"{solver}/answer_tokens"] == 3.0
    assert metrics["teacher/unique_frac"] == 0.0, "both wrote the same two programs"
    assert metrics["student_0/engine/mismatch_kl"] == 0.5 and metrics["student_0/loss"] == 2.0
    assert metrics["student/engine/mismatch_kl"] == metrics["engine/mismatch_kl"] == 0.375
    assert finish_alone().metrics["teacher/unique_frac"] == 1.0


def finish_alone():
    """A step of one pair."""
    pop = population(1, 1)
    pop.begin_step(1)
    return finish(pop, rows(pop, {"student_0": True}))


def test_a_draw_is_half_a_win_and_an_invalid_proposal_a_teachers_loss():
    games = {"student_wins": 1, "teacher_wins": 2, "draws": 2, "invalid": 3}
    match = {"teacher": "teacher_0", "student": "student_0", **games}
    assert win_rates([match]) == {"student_0": 0.625, "teacher_0": 0.375}


def test_what_was_generated_and_is_not_held_is_refused():
    held = [WRITTEN, replace(WRITTEN, slot=1)]
    check_budget({0: Generated(1, 2), 1: Generated(1, 2), 2: Generated(0, 0)}, held)
    for generated in ({0: Generated(1, 2)}, {0: Generated(1, 2), 1: Generated(1, 3)}):
        with pytest.raises(RuntimeError, match="the engine generated"):
            check_budget(generated, held)


def test_a_state_of_another_population_is_refused():
    with refuses("population="):
        population(2, 2).load_state(population(4, 4).state())


def test_a_step_without_a_valid_proposal_says_so_with_an_example():
    pop = population()
    pop.begin_step(1)
    proposals = rows(pop, {"student_0": True, "student_1": True})
    assert finish(pop, proposals).notes == []
    pop.begin_step(2)
    texts = ["deff(a):returna", "deff(b)", "def f(a):\n return " + "a" * 300, ""]
    broken = [
        Proposal(row.match, row.type, Completion(0, (), (1,), (), True, text), None)
        for row, text in zip(proposals, texts, strict=True)
    ]
    broken[0].reason = "error"
    pop.matches = [row.match for row in proposals[::2]]
    pop.reward(broken)
    (note,) = finish(pop, broken).notes
    writer = broken[1].match.teacher.name
    for part in ("3 unparsable", "1 error", writer, "code_o", repr("deff(b)")):
        assert part in note
    (note,) = nothing_valid_notes(broken[2:])
    assert note.endswith(repr(texts[2][:200]) + "...") and "\n" not in note
    assert nothing_valid_notes([]) == []


def test_rows_are_split_over_a_teachers_matches_and_what_is_left_over_goes_to_who_had_least():
    pop = population(1, 3)
    pop.begin_step(1)
    met = [match.student.name for match in pop.assign_matches([0] * 7)]
    assert met == ["student_0"] * 3 + ["student_1"] * 2 + ["student_2"] * 2
    met += [match.student.name for match in pop.assign_matches([0] * 5)]
    assert sorted(met.count(f"student_{n}") for n in range(3)) == [4, 4, 4]
    for step in (2, 3):  # each step counts from nothing
        pop.begin_step(step)
        assert [match.student.name for match in pop.assign_matches([0])] == ["student_0"]


def hyper(teachers, students, **how):
    evolving = {"lr": {"init": [1e-5, 1e-2], **how}}
    evolution = EvolutionConfig.checked(
        {"interval": 2, "operators": {"dare": 1.0}, "hyperparameters": evolving},
        "evolution.",
    )
    config = PopulationConfig(teachers=teachers, students=students)
    return Population(Config(population=config, evolution=evolution), Code())


def test_founders_rates_are_log_uniform_and_teachers_keep_the_runs():
    pop = hyper(2, 100)
    settings = [pop.hyperparameters()[member.slot] for member in pop.roster.students]
    logs = np.log10([values.lr for values in settings])
    assert logs.min() >= -5 and logs.max() <= -2
    assert np.quantile(logs, [0.25, 0.5, 0.75]) == pytest.approx([-4.25, -3.5, -2.75], abs=0.3)
    assert rates(pop)[0] == 1.5e-4
    assert rates(hyper(2, 100)) == rates(pop)


def test_without_inheritance_weights_alone_evolve():
    pop = hyper(2, 4, inherit=False)
    before = rates(pop)
    for step in (1, 2):
        pop.begin_step(step)
        solved = {student.name: False for student in pop.roster.students}
        births = finish(pop, rows(pop, solved)).lineage
    assert births and rates(pop) == before


@pytest.mark.parametrize(
    ("resample", "roles"), [(0.0, ["student"]), (1.0, ["student"]), (0.0, ["teacher", "student"])]
)
def test_a_child_has_its_first_parents_rate_perturbed_or_drawn_anew(resample, roles):
    pop = hyper(2, 4, resample=resample, roles=roles)
    before = {member.name: member.hyperparameters.get("lr") for member in pop.roster}
    pop.begin_step(1)
    finish(pop, rows(pop, {m.name: True for m in pop.roster.students}))
    pop.begin_step(2)
    solved = {member.name: number > 1 for number, member in enumerate(pop.roster.students)}
    births = finish(pop, rows(pop, solved)).lineage
    born = {birth["child"]: birth for birth in births}
    assert any(name.startswith("student") for name in born)
    for name, birth in born.items():
        parent = before[birth["parents"][0]]
        if parent is None:
            assert "hyperparameters" not in birth
            continue
        lr = birth["hyperparameters"]["lr"]
        assert lr == pop.roster[name].hyperparameters["lr"] == rates(pop)[pop.roster[name].slot]
        perturbed = any(lr == pytest.approx(parent * factor) for factor in (0.8, 1.25))
        assert perturbed if resample == 0 else not perturbed and 1e-5 <= lr <= 1e-2
    other = hyper(2, 4, resample=resample, roles=roles)
    other.load_state(json.loads(json.dumps(pop.state())))
    assert rates(other) == rates(pop)


@pytest.mark.parametrize(
    "how",
    [{"init": [1e-2, 1e-5]}, {"init": [0.0, 1.0]}, {"init": [1.0]}, {"perturb": []}, {"x": 1}],
)
def test_what_cannot_evolve_is_refused(how):
    with refuses(f"evolution.hyperparameters.lr.{next(iter(how))}"):
        hyper(1, 2, **how)
    with refuses("evolution.hyperparameters.weight_decay"):
        EvolutionConfig.checked({"hyperparameters": {"weight_decay": {}}}, "evolution.")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("roster/0/mu", float("nan")),
        ("roster/0/mu", 1e300),
        ("roster/0/sigma", 0.0),
        ("roster/0/sigma", 1e308),
        ("roster/0/sigma", "wide"),
        ("roster/0/slot", -1),
        ("roster/0/slot", 0.5),
        ("roster/0/name", "../teacher_0"),
        ("roster/0/name", 5),
        ("roster/0/role", "judge"),
        ("roster/0/born", None),
        ("roster/2/hyperparameters/lr", float("nan")),
        ("roster/2/hyperparameters/lr", 461.0),
        ("roster/2/hyperparameters/lr", 0.0),
        ("roster/2/hyperparameters/weight", 1.0),
        ("buffer", [{"type": "code_o"}]),
        ("buffer", "none"),
    ],
)
def test_a_damaged_state_is_refused(path, value):
    pop = hyper(2, 4)
    state = json.loads(json.dumps(pop.state()))
    pop.load_state(state)
    *parents, last = path.split("/")
    node = state
    for part in parents:
        node = node[int(part) if part.isdigit() else part]
    node[last] = value
    with pytest.raises((ValueError, TypeError, LookupError, UserError)):
        hyper(2, 4).load_state(state)
