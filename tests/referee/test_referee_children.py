"""Which calls share a child, and what replaces a child that is lost."""

import os
import signal

import pytest
from processes import children_of

from azr_population.referee import Program, Question, Reason, Referee, RefereeSettings
from azr_population.referee.jobs import Job

SPIN = "def f(x):\n    while True: pass"


@pytest.fixture
def jobs(monkeypatch):
    """The number of calls in every job that goes to a worker."""
    sent = []
    packed = Job.packed

    def noting(job, settings):
        sent.append(len(job.calls))
        return packed(job, settings)

    monkeypatch.setattr(Job, "packed", noting)
    return sent


def constant(n):
    return Program(f"def f(x): return {n}", ("0",))


def children(referee):
    return [pid for worker in referee._workers for pid in children_of(worker.process.pid)]


def test_the_calls_of_a_plain_program_share_a_child_and_others_have_one_each(jobs):
    with Referee(RefereeSettings(workers=1)) as referee:
        assert all(e.valid for e in referee.check([constant(n) for n in range(3)]))
        assert jobs == [2] * 3
        jobs.clear()
        chance = Program("import random\ndef f(x): return random.Random(x).random()", ("0", "1"))
        assert referee.check([chance])[0].valid
        assert jobs == [4, 1, 1, 1, 1]


def test_answers_to_a_plain_program_are_executed_beside_it(jobs):
    with Referee(RefereeSettings(workers=1)) as referee:
        question = Question(
            "code_i", "def f(x): return x % 3", ("4",), answers=("1", "2", "7", "1")
        )
        assert [g.solved for g in referee.judge([question])[0].grades] == [True, False, True, True]
    assert jobs == [2, 4]  # three answers, and the task's own input after them


def test_functions_of_students_share_with_nobody(jobs):
    plain, other = "def f(x): return x", "import random\ndef f(x): return x"
    with Referee(RefereeSettings(workers=1)) as referee:
        question = Question("code_f", plain, ("1", "2", "3"), answers=(plain, other))
        assert all(g.solved for g in referee.judge([question])[0].grades)
    # The teacher's six runs, the plain answer's three, and the other answer's three: first together
    # without a result, then each alone.
    assert sorted(jobs) == [1, 1, 1, 3, 3, 6]


def test_one_that_hangs_goes_alone(jobs):
    programs = [constant(1), Program(SPIN, ("0",)), constant(2)]
    with Referee(RefereeSettings(workers=1, timeout=8.0)) as referee:
        executions = referee.check(programs)
    assert [e.reason for e in executions] == [Reason.OK, Reason.TIMEOUT, Reason.OK]
    assert sorted(jobs) == [1, 2, 2, 2]


def test_a_child_that_is_killed_while_it_waits_is_replaced():
    with Referee(RefereeSettings(workers=1, timeout=20.0)) as referee:
        for _ in range(3):
            for pid in children(referee):
                os.kill(pid, signal.SIGKILL)
            verdicts = referee.check([constant(n) for n in range(20)])
            assert [(e.reason, e.outputs) for e in verdicts] == [
                (Reason.OK, (str(n),)) for n in range(20)
            ]


def test_a_child_that_is_too_slow_to_read_its_job_answers_for_no_other():
    """As on a busy machine: its job is still in the socket, where the next child would read it."""

    def question(n):
        answers = (f"def f(x): return {n} + x", "def f(x): return 0", f"def f(y): return y + {n}")
        return Question("code_f", f"def f(x): return x + {n}", ("1", "2", "3"), answers=answers)

    with Referee(RefereeSettings(workers=1, timeout=10.0, cpu_seconds=0.1)) as referee:
        referee.check([constant(0)])
        for pid in children(referee):
            os.kill(pid, signal.SIGSTOP)
        for judgement in referee.judge([question(n) for n in range(1, 9)]):
            assert [grade.solved for grade in judgement.grades] == [True, False, True]
