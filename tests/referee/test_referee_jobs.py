"""Which calls go where, and what a report makes of them; no process is started."""

import pytest

from azr_population.referee import Reason
from azr_population.referee.jobs import CallOutcome, Job, PendingWork, WorkSchedule
from azr_population.referee.procedures import check, grade
from azr_population.referee.sandbox import wire
from azr_population.referee.sandbox.wire import Call, Report, SandboxWork
from azr_population.referee.verdicts import Program, Question

OK, ERROR = CallOutcome(Reason.OK, "1"), CallOutcome(Reason.ERROR, "E")
HERE, THERE = "a worker", "another worker"
CHECK = (Call(wire.LITERAL, "1"), Call(wire.LITERAL, "2"))
BOTH = tuple(call._replace(again=again) for again in (False, True) for call in CHECK)


def task(calls=BOTH, stop=True, **more):
    return PendingWork(SandboxWork("def f(x): return x", calls, stop_at_failure=stop), **more)


def frame(status, text=b"1"):
    return wire.FRAME.pack(status, len(text)) + text


def waiting(*tasks, **settings):
    queue = WorkSchedule(**settings)
    for each in tasks:
        queue.add(each)
    return queue


def test_the_first_call_goes_ahead():
    work = task()
    assert work.next_call(HERE) == 0
    work.in_flight.add(0)
    assert work.next_call(HERE) is None
    work.in_flight.clear()
    work.book(0, OK)
    for call in (1, 2, 3):
        assert work.next_call(HERE) == call
        work.in_flight.add(call)
    assert work.next_call(HERE) is None


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
    queue = waiting(task(two_workers=True))
    for call in (0, 1):
        job = queue.next(HERE)
        assert job.call == call and job.finish(Report(wire.END_DONE, 0, frame(wire.OK)))
    assert queue.next(HERE) is None
    assert [queue.next(THERE).call, queue.next(THERE).call] == [2, 3]
    assert queue.next(THERE) is None and len(queue) == 0


def test_no_second_run_goes_to_the_worker_of_the_same_call():
    """Also where several workers make the first runs, and where one of them is lost."""
    queue = waiting(task(two_workers=True))
    assert queue.next(HERE).finish(Report(wire.END_DONE, 0, frame(wire.OK)))
    lost = queue.next(HERE)
    assert lost.call == 1 and not lost.finish(None)
    queue.add(lost.task)
    assert queue.next(THERE).call == 1
    # Calls 2 and 3 are the second runs of 0 and 1.
    assert [queue.next(HERE).call, queue.next(THERE).call] == [3, 2]


LATE, LOST = CallOutcome(Reason.TIMEOUT), CallOutcome(Reason.LOST)


@pytest.mark.parametrize(
    ("again", "reasons"),
    [
        (OK, ["solved", "wrong"]),
        (LATE, ["nondeterministic"] * 2),
        (ERROR, ["nondeterministic"] * 2),
    ],
)
@pytest.mark.parametrize("kind", ["code_i", "code_f"])
@pytest.mark.parametrize("first", [LATE, LOST])
def test_a_gold_answer_that_runs_out_of_time_is_judged_once_more(first, kind, again, reasons):
    program = "def f(x): return 1"
    answers = ("1", "2") if kind == "code_i" else ("def f(x): return 1 ", "def f(x): return 2")
    asked = grade(Question(kind, program, ("3",), ("1",), answers))
    other = CallOutcome(Reason.OK, "2")
    works = asked.send(None)
    outcomes = [[OK, other, first]] if kind == "code_i" else [[OK], [other], [first]]
    assert [len(work.calls) for work in works] == list(map(len, outcomes))
    (work,) = asked.send(outcomes)
    assert work.source == program and len(work.calls) == 1
    with pytest.raises(StopIteration) as end:
        asked.send([[again]])
    assert [verdict.reason for verdict in end.value.value] == reasons


@pytest.mark.parametrize("kind", ["code_i", "code_f"])
def test_an_answer_that_is_the_gold_one_has_its_second_verdict(kind):
    program = "def f(x): return 1"
    answers = ("3", "2") if kind == "code_i" else (program, "def f(x): return 2")
    asked = grade(Question(kind, program, ("3",), ("1",), answers))
    other = CallOutcome(Reason.OK, "2")
    asked.send(None)
    # What is equal is executed once, the gold input behind the others.
    asked.send([[other, LATE]] if kind == "code_i" else [[LATE], [other]])
    with pytest.raises(StopIteration) as end:
        asked.send([[OK]])
    assert [verdict.reason for verdict in end.value.value] == ["solved", "wrong"]


@pytest.mark.parametrize(
    ("again", "reason"), [(LATE, "timeout"), (LOST, "lost"), (ERROR, "nondeterministic")]
)
def test_a_second_run_that_says_nothing_of_the_program_is_called_so(again, reason):
    for expression, first in (("1", OK), ("1 + 1", CallOutcome(Reason.OK, "2"))):
        asked = check(Program("def f(x): return x", (expression,), literal_inputs=True))
        asked.send(None)
        with pytest.raises(StopIteration) as end:
            asked.send([[first, again]])
        assert end.value.value.reason == reason, expression


@pytest.mark.parametrize("at_first", [LATE, LOST])
@pytest.mark.parametrize(
    ("at_last", "reason"), [(LATE, "malformed"), (LOST, "lost"), (OK, "solved")]
)
def test_a_gold_input_that_is_an_expression_is_evaluated_once_more(at_first, at_last, reason):
    asked = grade(Question("code_i", "def f(x): return 1", ("1 + 1",), ("1",), ("1",)))
    asked.send(None)
    (work,) = asked.send([[at_first, at_first]])
    assert len(work.calls) == 2
    try:
        asked.send([[at_last, at_last]])  # it is the literal 1, and so is the answer
        asked.send([[OK]])
    except StopIteration as end:
        assert [verdict.reason for verdict in end.value] == [reason]
    else:
        raise AssertionError("not graded")


NOT_UTF_8 = frame(wire.OK, b"\xff\xfe")
TWO = frame(wire.OK) * 2


@pytest.mark.parametrize(
    "data", [TWO, b"x", frame(len(wire.STATUSES)), frame(0)[:-1], frame(0) + b"\xff", NOT_UTF_8]
)
def test_a_frame_that_is_not_ours_is_tampered_with(data):
    work = task(calls=CHECK)
    assert not Job(work, 0).finish(Report(wire.END_DONE, 0, data))
    assert work.outcomes[0].reason is Reason.TAMPERED and not work.in_flight


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
        assert Job(work, 0).finish(Report(end, code, b""))
    assert work.outcomes == [CallOutcome(reason)]


@pytest.mark.parametrize(("lost", "times"), [(None, 10), (Report(wire.END_KILLED, 0, b""), 31)])
def test_a_call_that_ends_its_worker_again_and_again_is_lost(lost, times):
    work = task(calls=CHECK[:1])
    for _ in range(times):
        assert not work.done
        assert Job(work, 0).finish(lost) is (lost is not None)
    assert work.outcomes == [CallOutcome(Reason.LOST)]
