"""How many children there are, and what replaces one that is lost."""

import os
import signal

import pytest
from processes import children_of

from azr_population.referee import Program, Question, Reason, Referee, RefereeSettings
from azr_population.referee.jobs import Job


@pytest.fixture
def jobs(monkeypatch):
    """The jobs that go to a worker."""
    sent = []
    packed = Job.packed

    def noting(job, settings):
        sent.append(job)
        return packed(job, settings)

    monkeypatch.setattr(Job, "packed", noting)
    return sent


def constant(n):
    return Program(f"def f(x): return {n}", ("0",))


def children(referee):
    return [pid for worker in referee._workers for pid in children_of(worker.process.pid)]


def test_each_call_has_a_child_of_its_own_and_equal_answers_one_call(jobs):
    with Referee(RefereeSettings(workers=1)) as referee:
        question = Question(
            "code_i", "def f(x): return x % 3", ("4",), answers=("1", "2", "7", "1")
        )
        assert [g.solved for g in referee.judge([question])[0].grades] == [True, False, True, True]
    assert len(jobs) == 2 + 4  # three answers, and the task's own input after them


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
