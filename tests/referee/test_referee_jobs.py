"""Which calls go where, and what a report makes of them; no process is started."""

import pytest

from azr_population.referee import Reason, RefereeSettings
from azr_population.referee.jobs import CallOutcome, Job, PendingWork, WorkSchedule
from azr_population.referee.sandbox import wire
from azr_population.referee.sandbox.wire import Call, SandboxWork
from azr_population.referee.zygote_handle import Report

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


def waiting(*tasks, workers=1, **settings):
    queue = WorkSchedule(RefereeSettings(**settings), workers)
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
    queue = waiting(work, workers=2)
    first = queue.next(HERE)
    assert [call for _, call in first.order] == [0, 1]
    assert queue.next(HERE) is None
    second = queue.next(THERE)
    assert [call for _, call in second.order] == [2, 3]
    assert queue.next(THERE) is None and len(queue) == 0
    assert wire.unpack(first.packed(RefereeSettings())[wire.JOB.size :])[0].stop_at_failure


def test_tasks_go_together_but_leave_something_for_others():
    queue = waiting(*(task() for _ in range(12)), workers=2, share=16)
    sizes = []
    while (job := queue.next(HERE)) is not None:
        sizes.append(len(job.tasks))
        assert job.resident
    assert sizes == [6, 3, 2, 1]
    assert [len(waiting(*(task() for _ in range(12)), share=5).next(HERE).tasks)] == [5]


def test_isolated_and_alone_share_with_nobody():
    apart, alone = PendingWork(SandboxWork("", BOTH, isolated=True)), task(alone=True)
    first, last = task(), task()
    queue = waiting(first, apart, alone, last, share=16)
    assert queue.next(HERE).tasks == [first, last]
    jobs = [queue.next(HERE), queue.next(HERE)]
    assert [(job.tasks, len(job.order), job.resident) for job in jobs] == [
        ([apart], 4, False),
        ([alone], 1, False),
    ]


def test_calls_without_a_result_in_a_shared_child_are_repeated_alone():
    tasks = [task(CHECK) for _ in range(4)]
    job = Job([(each, [0, 1]) for each in tasks], HERE, resident=True)
    statuses = [wire.OK, wire.OK, wire.ALONE, wire.ALONE, wire.OK]
    assert job.finish(report(*statuses, end=wire.END_TIMEOUT, code=-9))
    assert [each.done for each in tasks] == [True, False, False, False]
    assert [each.alone for each in tasks] == [False, True, True, False]
    assert tasks[2].outcomes == [OK, None]


@pytest.mark.parametrize(
    "data",
    [frames(0, 0, 0), b"x", frames(wire.ALONE + 1), frames(0)[:-1], frames(0) + b"\xff"],
)
def test_frames_that_are_not_ours_make_no_outcome(data):
    work = task(calls=CHECK)
    job = Job([(work, [0, 1])], HERE, resident=True)
    assert not job.finish(Report(wire.END_DONE, 0, data))
    assert work.alone and work.outcomes == [None, None] and not work.in_flight
    single = Job([(work, [0])], HERE, resident=False)
    assert not single.finish(Report(wire.END_DONE, 0, data))
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
        assert Job([(work, [0])], HERE, resident=False).finish(report(end=end, code=code))
    assert work.outcomes == [CallOutcome(reason)]


@pytest.mark.parametrize(("lost", "times"), [(None, 10), (report(end=wire.END_KILLED), 31)])
def test_a_call_that_ends_its_worker_again_and_again_is_lost(lost, times):
    work = task(calls=CHECK[:1])
    for _ in range(times):
        assert not work.done
        assert Job([(work, [0])], HERE, resident=False).finish(lost) is (lost is not None)
    assert work.outcomes == [CallOutcome(Reason.LOST)]
