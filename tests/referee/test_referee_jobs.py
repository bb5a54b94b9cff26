"""Which calls go where, and what a report makes of them; no process is started."""

import pytest

from azr_population.referee import Reason, RefereeSettings
from azr_population.referee.jobs import CallOutcome, Job, PendingWork, WorkSchedule
from azr_population.referee.sandbox import wire
from azr_population.referee.sandbox.wire import Call, Report, SandboxWork

OK, ERROR = CallOutcome(Reason.OK, "1"), CallOutcome(Reason.ERROR, "E")
HERE, THERE = "a worker", "another worker"
CHECK = (Call(wire.LITERAL, "1"), Call(wire.LITERAL, "2"))
BOTH = tuple(call._replace(again=again) for again in (False, True) for call in CHECK)


def task(calls=BOTH, stop=True, **more):
    return PendingWork(SandboxWork("def f(x): return x", calls, stop_at_failure=stop), **more)


def frames(*statuses):
    return b"".join(wire.FRAME.pack(status, 1) + b"1" for status in statuses)


def report(*statuses, end=wire.END_DONE, code=0):
    return Report(end, code, frames(*statuses))


def waiting(*tasks, **settings):
    queue = WorkSchedule(**settings)
    for each in tasks:
        queue.add(each)
    return queue


def test_alone_the_first_call_goes_ahead():
    work = task(alone=True)
    assert work.next_calls(HERE) == [0]
    work.in_flight.add(0)
    assert work.next_calls(HERE) == []
    work.in_flight.clear()
    work.book(0, OK)
    for call in (1, 2, 3):
        assert work.next_calls(HERE) == [call]
        work.in_flight.add(call)
    assert work.next_calls(HERE) == []


@pytest.mark.parametrize("order", [(2, 1), (1, 2)])
def test_of_two_failures_the_first_in_order_counts(order):
    work = task()
    work.book(0, OK)
    failures = {1: ERROR, 2: CallOutcome(Reason.TIMEOUT)}
    for call in order:
        work.book(call, failures[call])
    assert work.outcomes[:2] == [OK, ERROR] and work.done
    assert next(o for o in work.outcomes if o is not OK) == ERROR


def test_a_failure_among_answers_settles_nothing_else():
    work = task(stop=False)
    for call, outcome in ((0, OK), (2, ERROR)):
        work.book(call, outcome)
    assert work.outcomes == [OK, None, ERROR, None]


def test_a_second_run_goes_to_another_worker_where_addresses_are_random():
    work = task(two_workers=True)
    queue = waiting(work)
    first = queue.next(HERE)
    assert first.calls == [0, 1]
    assert queue.next(HERE) is None
    second = queue.next(THERE)
    assert second.calls == [2, 3]
    assert queue.next(THERE) is None and len(queue) == 0
    assert wire.unpack(first.packed(RefereeSettings())[wire.JOB.size :]).stop_at_failure


def test_a_job_has_the_calls_of_one_task_or_one_call_of_one_that_is_alone():
    alone, other = task(alone=True), task()
    queue = waiting(alone, other)
    jobs = [queue.next(HERE), queue.next(HERE)]
    assert [(job.task, len(job.calls)) for job in jobs] == [(alone, 1), (other, 4)]


def test_calls_without_a_result_in_a_batch_are_repeated_alone():
    work = task(BOTH, stop=False)
    job = Job(work, [0, 1, 2, 3])
    assert job.finish(report(wire.OK, wire.ALONE, wire.OK, end=wire.END_TIMEOUT, code=-9))
    assert work.alone and work.outcomes == [OK, None, OK, None]
    ended = task(CHECK)
    assert Job(ended, [0, 1]).finish(report(wire.OK, wire.OK))
    assert ended.done and not ended.alone


NOT_UTF_8 = wire.FRAME.pack(wire.OK, 2) + b"\xff\xfe"


@pytest.mark.parametrize(
    "data",
    [frames(0, 0, 0), b"x", frames(wire.ALONE + 1), frames(0)[:-1], frames(0) + b"\xff", NOT_UTF_8],
)
def test_frames_that_are_not_ours_make_no_outcome(data):
    work = task(calls=CHECK)
    assert not Job(work, [0, 1]).finish(Report(wire.END_DONE, 0, data))
    assert work.alone and work.outcomes == [None, None] and not work.in_flight
    assert not Job(work, [0]).finish(Report(wire.END_DONE, 0, data))
    assert work.outcomes[0].reason is Reason.TAMPERED


@pytest.mark.parametrize(
    ("end", "code", "reason"),
    [
        (wire.END_TIMEOUT, -9, Reason.TIMEOUT),
        (wire.END_SIGNAL, -31, Reason.FORBIDDEN),
        (wire.END_SIGNAL, -11, Reason.CRASHED),
        (wire.END_DONE, 0, Reason.CRASHED),
    ],
)
def test_why_a_call_made_alone_has_no_frame(end, code, reason):
    work = task(calls=CHECK[:1])
    for _ in range(3 if end == wire.END_SIGNAL else 1):  # a single fault may come from outside
        assert not work.done
        assert Job(work, [0]).finish(report(end=end, code=code))
    assert work.outcomes == [CallOutcome(reason)]


@pytest.mark.parametrize(("lost", "times"), [(None, 10), (report(end=wire.END_KILLED), 31)])
def test_a_call_that_ends_its_worker_again_and_again_is_lost(lost, times):
    work = task(calls=CHECK[:1])
    for _ in range(times):
        assert not work.done
        assert Job(work, [0]).finish(lost) is (lost is not None)
    assert work.outcomes == [CallOutcome(Reason.LOST)]
