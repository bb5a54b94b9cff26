import time

from azr_population.referee import Program, Question, Reason, Referee, RefereeSettings

ENDLESS = "def f(n):\n    while True:\n        n += 1"


def test_an_endless_loop_ends_with_its_cpu_time_long_before_the_deadline():
    settings = RefereeSettings(workers=1, deadline=60.0, cpu_seconds=0.2, accept_unconfined=True)
    with Referee(settings) as referee:
        start = time.monotonic()
        (looped, fine) = referee.check(
            [Program(ENDLESS, ("1",)), Program("def f(n):\n    return n + 1", ("1",))]
        )
        assert (looped.valid, looped.reason) == (False, Reason.TIMEOUT)
        assert fine.outputs == ("2",)
        assert time.monotonic() - start < 30


def test_answers_behind_one_that_hangs_are_still_graded():
    settings = RefereeSettings(workers=1, deadline=60.0, cpu_seconds=0.2, accept_unconfined=True)
    program = "def f(n):\n    while n == 1:\n        pass\n    return n * 2"
    with Referee(settings) as referee:
        (grades,) = referee.grade([Question("code_i", program, ("3",), ("6",), ("1", "3", "4"))])
    assert [grade.reason for grade in grades] == [Reason.TIMEOUT, Reason.SOLVED, Reason.WRONG]
