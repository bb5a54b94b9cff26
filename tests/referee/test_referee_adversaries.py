"""A teacher that is paid when right answers fail: whatever its program tries, they do not fail."""

from __future__ import annotations

import random

import pytest
from adversaries import CHANCE, ORDERED, READERS, STATE, TELLS, WRITERS

from azr_population.referee import Program, Question, Reason, Referee, RefereeSettings
from azr_population.referee.jobs import Job, PendingWork
from azr_population.referee.sandbox import wire
from azr_population.referee.sandbox.wire import Call, SandboxWork

WRONG = ("4", "[9]", "'q'", "-7", "(1, 2)", "None", "[8, 8]", "88")
LIMITS = RefereeSettings(workers=2, timeout=10.0, cpu_seconds=1.0, memory_mb=64)
FAMILIES = {"tells": TELLS, "state": STATE, "chance": CHANCE}


@pytest.fixture(scope="module")
def referee():
    with Referee(LIMITS) as referee:
        yield referee


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("wrong", [(), WRONG], ids=["first", "after eight wrong ones"])
def test_the_right_answer_is_right_or_the_program_is_no_task(referee, family, wrong):
    programs = FAMILIES[family]
    judged = referee.judge(
        Question("code_i", program, (text,), (), (*wrong, right))
        for program, text, right in programs.values()
    )
    pairs = zip(programs, judged, strict=True)
    assert not [name for name, j in pairs if j.execution.valid and not j.grades[-1].solved]


@pytest.mark.parametrize("family", FAMILIES)
def test_so_it_is_where_they_are_judged_later(referee, family):
    programs = FAMILIES[family]
    checked = referee.check(
        Program(program, (text,), literal_inputs=True) for program, text, _ in programs.values()
    )
    tasks = {
        name: Question(
            "code_i", programs[name][0], e.inputs, e.outputs, (*WRONG, programs[name][2])
        )
        for name, e in zip(programs, checked, strict=True)
        if e.valid
    }
    assert len(tasks) > len(programs) // 4
    for _ in range(2):
        graded = zip(tasks, referee.grade(list(tasks.values())), strict=True)
        failed = {name: grades[-1] for name, grades in graded if not grades[-1].solved}
        # A task that has turned out to be none says so, and nobody is paid for it.
        assert {grade.reason for grade in failed.values()} <= {Reason.NONDETERMINISTIC}
        assert family == "chance" or not failed


def test_no_clock_and_no_chance_is_left(referee):
    programs = [Program(program, (text,)) for program, text, _ in CHANCE.values()]
    here, there = (referee.check(programs) for _ in range(2))
    differ = [
        name
        for name, a, b in zip(CHANCE, here, there, strict=True)
        if a.valid and b.valid and a.outputs != b.outputs and "ctypes" in CHANCE[name][0]
    ]
    assert not differ


def test_to_validate_and_to_judge_takes_the_same_bytes():
    program = "import random\ndef f(x, y=0): return x"
    for gold, answer in [
        ("[1,2]", " [ 1 , 2 ]\n"),
        ("{3, 1}, 'é'", "{1, 3}, '\\xe9'"),
        ("{8, 0}", "{0,8}"),
        ("0x10, y = 1.50", "16, y=1.5"),
        ("", " "),
        ("(1,)", "(1,),"),
    ]:
        calls = (Call(wire.LITERAL, gold), Call(wire.LITERAL, gold, True))
        validation = SandboxWork(program, calls, stop_at_failure=True)
        attempt = SandboxWork(program, (Call(wire.LITERAL, "5"), Call(wire.LITERAL, answer)))
        jobs = [
            Job(PendingWork(work), call)
            for work, call in ((validation, 0), (attempt, 1), (validation, 1))
        ]
        sent = [job.packed(RefereeSettings()) for job in jobs]
        assert sent[0] == sent[1] != sent[2]


def test_outputs_that_depend_on_the_order_of_calls_are_no_task(referee):
    for name, program in ORDERED.items():
        honest = [i for i in range(3, 9)]
        random.Random(name).shuffle(honest)
        (judged,) = referee.judge(
            [Question("code_f", program, tuple(map(str, honest)), (), (program + "\n",))]
        )
        if judged.execution.valid:  # each call was the first
            assert judged.grades[0].solved, name
            alone = [referee.check([Program(program, (str(i),))])[0].outputs[0] for i in honest]
            assert list(judged.execution.outputs) == alone, name


def test_no_reader_sees_a_writer():
    readers = [Program(source, ("3",)) for source in READERS.values()]
    with Referee(LIMITS) as referee:
        before = [referee.check([reader])[0] for reader in readers]
        assert any(execution.valid for execution in before)
        for writer in WRITERS.values():
            together = [p for reader in readers for p in (Program(writer, ("3",)), reader)]
            assert referee.check(together)[1::2] == before


def test_what_a_finaliser_prints_is_in_nobody_s_output():
    left = (
        "def g():\n    try: yield\n    finally: print('boo')\n"
        "h = g()\nnext(h)\na = [h]\na.append(a)\nprint('mine')"
    )
    busy = "b = [[i] for i in range(3000)]\nprint('own')"
    works = [SandboxWork(source, (Call(wire.SCRIPT, ""),)) for source in [left, busy] * 4]
    with Referee(RefereeSettings(workers=1)) as referee:
        assert [o.text.split() for (o,) in referee.run(works)] == [["mine"], ["own"]] * 4


def test_a_task_whose_own_answer_fails_is_void(referee):
    for question in [
        Question("code_i", "def f(x): return x", ("3",), ("4",), ("3", "4")),
        Question("code_f", "def f(x): return x", ("3",), ("4",), ("def f(x): return 4",)),
    ]:
        (grades,) = referee.grade([question])
        assert {grade.reason for grade in grades} == {Reason.NONDETERMINISTIC}
        assert not any(grade.solved for grade in grades)
