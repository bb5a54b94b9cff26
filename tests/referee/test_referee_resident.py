"""The resident child: which programs it runs, when it ends, and what replaces it."""

import os
import signal

import pytest
from processes import children_of

from azr_population.referee import Program, Question, Reason, Referee, RefereeSettings
from azr_population.referee.jobs import Job, PendingWork
from azr_population.referee.sandbox import child, wire

SPIN = "def f(x):\n    while True: pass"


@pytest.fixture
def jobs(monkeypatch):
    """(resident, calls) of every job that goes to a worker."""
    sent = []
    packed = Job.packed

    def noting(job, settings):
        sent.append((job.resident, len(job.order)))
        return packed(job, settings)

    monkeypatch.setattr(Job, "packed", noting)
    return sent


def constant(n):
    return Program(f"def f(x): return {n}", ("0",))


def residents(referee):
    """The children of the workers that have done something."""
    return {pid for worker in referee._workers for pid in children_of(worker.process.pid)}


def test_plain_programs_go_to_it_together_and_others_one_by_one(jobs):
    with Referee(RefereeSettings(workers=1, share=8)) as referee:
        assert all(e.valid for e in referee.check([constant(n) for n in range(24)]))
        assert jobs == [(True, 16)] * 3
        jobs.clear()
        chance = Program("import random\ndef f(x): return random.Random(x).random()", ("0", "1"))
        assert referee.check([chance])[0].valid
        assert jobs == [(True, 4), *[(False, 1)] * 4]


def test_answers_to_a_plain_program_are_executed_beside_it(jobs):
    with Referee(RefereeSettings(workers=1)) as referee:
        question = Question(
            "code_i", "def f(x): return x % 3", ("4",), answers=("1", "2", "7", "1")
        )
        assert [g.solved for g in referee.judge([question])[0].grades] == [True, False, True, True]
    assert jobs == [(True, 2), (True, 4)]  # three answers, and the task's own input after them


def test_functions_of_students_share_with_nobody(jobs):
    plain, other = "def f(x): return x", "import random\ndef f(x): return x"
    with Referee(RefereeSettings(workers=1, share=8)) as referee:
        questions = [Question("code_f", plain, ("1", "2", "3"), answers=(plain, other))] * 4
        assert all(g.solved for j in referee.judge(questions) for g in j.grades)
    # The teachers' six runs, the plain answer's three, and the other answer's three: first together
    # without a result, then each alone.
    assert sorted(jobs) == sorted(
        [(True, 24)] + [(False, 3)] * 4 + [(False, 3), *[(False, 1)] * 3] * 4
    )


def test_sharing_can_be_switched_off(jobs):
    with Referee(RefereeSettings(workers=1, share=1)) as referee:
        assert all(e.valid for e in referee.check([constant(n) for n in range(3)]))
    with Referee(RefereeSettings(workers=1, child_per_call=True)) as referee:
        assert all(e.valid for e in referee.check([constant(n) for n in range(3)]))
    assert jobs == [(False, 2)] * 3 + [(False, 1)] * 6


def test_one_that_hangs_goes_alone_and_the_others_stay_together(jobs):
    programs = [constant(n) for n in range(16)]
    programs[5] = Program(SPIN, ("0",))
    with Referee(RefereeSettings(workers=1, timeout=8.0)) as referee:
        executions = referee.check(programs)
    assert executions[5].reason is Reason.TIMEOUT
    assert [e.outputs for n, e in enumerate(executions) if n != 5] == [
        (str(n),) for n in range(16) if n != 5
    ]
    assert jobs == [(True, 32), (False, 1), (True, 20)]


def test_a_task_that_is_too_large_for_it_has_a_child_of_its_own(jobs):
    text = "'" + "é" * 60_000 + "'"
    inputs = tuple(f"{text}, {n}" for n in range(5))
    with Referee(RefereeSettings(workers=1)) as referee:
        execution = referee.check([Program("def f(x, n): return len(x) + n", inputs)])[0]
    assert execution.outputs == tuple(str(60_000 + n) for n in range(5))
    assert jobs == [(False, 10)]


def test_it_stays_for_many_tasks_and_then_another_takes_over():
    with Referee(RefereeSettings(workers=1)) as referee:
        referee.check([constant(0)])
        before = residents(referee)
        for n in range(20):
            referee.check([constant(n)])
        assert residents(referee) == before
        for n in range(0, child._LIFE, 128):
            referee.check([constant(n + i) for i in range(64)])
        assert len(before - residents(referee)) == 1


def test_it_does_not_stay_when_memory_ran_out():
    flood = Program("def f(x):\n    a = []\n    while True: a.append('x' * 10 ** 6)", ("0",))
    with Referee(RefereeSettings(workers=1, memory_mb=64, timeout=20.0)) as referee:
        referee.check([constant(0)])
        before = residents(referee)
        verdicts = referee.check([constant(1), flood, constant(2)])
        assert [e.reason for e in verdicts] == [Reason.OK, Reason.MEMORY, Reason.OK]
        assert not before & residents(referee)


@pytest.mark.parametrize("share", [1, 16])
def test_a_child_that_is_killed_while_it_waits_is_replaced(share):
    with Referee(RefereeSettings(workers=1, share=share, timeout=20.0)) as referee:
        for _ in range(3):
            for pid in residents(referee):
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
        for pid in residents(referee):
            os.kill(pid, signal.SIGSTOP)
        for judgement in referee.judge([question(n) for n in range(1, 9)]):
            assert [grade.solved for grade in judgement.grades] == [True, False, True]


def test_an_inbox_is_never_asked_to_hold_more_than_it_does():
    assert wire.INBOX_BYTES >= 1 << 16
    work = wire.SandboxWork(
        "é\ud800" * 1000, (wire.Call(wire.LITERAL, "'𝄞'" * 50),) * 3, ("import é",)
    )
    assert len(wire.pack([work], 1.0, 1.0)) <= PendingWork(work).size
