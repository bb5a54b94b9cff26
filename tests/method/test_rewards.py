from dataclasses import replace

import pytest

from azr_population.config.schema import PopulationConfig
from azr_population.domains.code.domain import Code
from azr_population.domains.code.task_types import Task, TaskType
from azr_population.domains.task import TaskBuffer
from azr_population.method.matchmaking import Match
from azr_population.method.members import Roster
from azr_population.method.proposals import Attempt, Proposal, Replay
from azr_population.method.rewards import (
    TEACHER_REWARDS,
    count_copies,
    reward_attempts,
    reward_proposals,
    student_reward,
)
from azr_population.method.training import scored_proposals
from azr_population.registry import trust


@pytest.mark.parametrize(
    ("name", "rewards"),
    [
        ("adversarial", [1.0, 0.75, 0.0]),
        ("learnability", [0.0, 0.75, 0.0]),
        ("stock", [-0.5, 0.75, -0.5]),
    ],
)
def test_teacher_reward_by_solve_rate(name, rewards):
    function = TEACHER_REWARDS.find(name)
    assert [function(rate) for rate in (0.0, 0.25, 1.0)] == rewards


def test_students_get_what_azr_gives():
    assert student_reward(parsed=True, solved=True) == 1.0
    assert student_reward(parsed=True, solved=False) == -0.5
    assert student_reward(parsed=False, solved=False) == -1.0


@pytest.mark.parametrize(
    ("solved", "copies", "reward"), [(None, 0, -1.0), (1, 0, 0.75), (1, 2, 0.15), (1, 50, -1.0)]
)
def test_invalid_proposals_and_the_price_of_copies(solved, copies, reward):
    parsed = Task(TaskType.CODE_O, "def f(a):\n    return a", ("1",), ("1",))
    row = Proposal(None, TaskType.CODE_O, None, parsed, copies=copies)
    if solved is not None:
        row.task = parsed
        row.attempts = [Attempt(None, "1", number < solved) for number in range(4)]
    unparsable = Proposal(None, TaskType.CODE_O, None, None)
    reward_proposals([row, unparsable], PopulationConfig(duplicate_penalty=0.3))
    assert (row.reward, unparsable.reward) == (pytest.approx(reward), -1.0)


def test_a_copy_is_the_same_program_whoever_wrote_it_and_with_whatever_input():
    roster = Roster.make(2, 2)
    matches = [
        Match(teacher, student)
        for teacher, student in zip(roster.teachers, roster.students, strict=True)
    ]

    def row(match, number, value):
        task = Task(TaskType.CODE_O, f"def f(a):\n    return a + {number}", (value,), ("9",))
        return Proposal(match, TaskType.CODE_O, None, None, task)

    rows = [row(matches[0], 1, "1"), row(matches[1], 1, "1"), row(matches[1], 1, "2")]
    rows += [row(matches[0], 2, "1"), row(matches[0], 3, "1")]
    rows[1].task = replace(rows[1].task, program=rows[1].task.program + "  # mine")
    buffer = TaskBuffer(10)
    buffer.add(replace(rows[4].task, program=rows[4].task.program + "\n"))
    buffer.add(replace(rows[3].task, inputs=("2",)))
    count_copies(rows, buffer, Code().fingerprint)
    assert [row.copies for row in rows] == [2, 2, 2, 0, 1]


def test_what_could_not_be_judged_costs_nothing_and_trains_nobody():
    lost = Proposal(None, TaskType.CODE_O, None, None, reason="lost")
    refused = Proposal(None, TaskType.CODE_O, None, None, reason="error")
    reward_proposals([lost, refused], PopulationConfig())
    assert (lost.reward, refused.reward) == (0.0, -1.0)
    assert [scored.sample for scored in scored_proposals([lost, refused])] == [refused]


def test_every_attempt_is_paid_by_its_answer():
    attempts = [Attempt(None, "1", True), Attempt(None, "2"), Attempt(None, None)]
    reward_attempts([Replay(None, TaskType.CODE_O, None, attempts)])
    assert [attempt.reward for attempt in attempts] == [1.0, -0.5, -1.0]


def fewest_solved(proposal, attempts, buffer):
    """A teacher's reward of a user's own that sees what happened."""
    seen = proposal.task in buffer
    return sum(not attempt.solved for attempt in attempts) / len(attempts) - 10.0 * seen


def test_a_teachers_reward_may_see_the_proposal_the_attempts_and_the_buffer():
    name = f"{__name__}.fewest_solved"
    trust(name)
    config = PopulationConfig(teacher_reward=name, duplicate_penalty=0.0)
    rows = []
    for solved in ((True, False, False, False), (False, False)):
        attempts = [Attempt(None, "1", value, "solved", 0.0) for value in solved]
        task = Task(TaskType.CODE_O, f"def f(a):\n    return a + {len(rows)}", ("1",), ("2",))
        row = Proposal(None, TaskType.CODE_O, None, task)
        row.task, row.attempts = task, attempts
        rows.append(row)
    reward_proposals(rows, config, [rows[1].task])
    assert [row.reward for row in rows] == [0.75, -1.0]
