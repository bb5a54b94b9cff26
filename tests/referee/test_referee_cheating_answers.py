"""No answer scores but the right literal; nothing an answer says is ever executed."""

from __future__ import annotations

import pytest
from cheating_answers import FUNCTIONS, NO_LITERALS, RIGHT_VALUES, TOO_LARGE, WRONG_VALUES

from azr_population.referee import Question, Reason, Referee, RefereeSettings

PAIRS = [(gold, answer) for gold, answers in WRONG_VALUES.items() for answer in answers]
RIGHT_PAIRS = [(gold, answer) for gold, answers in RIGHT_VALUES.items() for answer in answers]


def grade(referee, kind, answer, gold, program=""):
    question = Question(kind, program, (), (gold,), (answer,))
    ((grade,),) = referee.grade([question])
    return grade


@pytest.mark.parametrize("name", NO_LITERALS)
def test_as_an_output_only_a_literal_counts(referee, name):
    verdict = grade(referee, "code_o", NO_LITERALS[name], "4")
    assert (verdict.solved, verdict.accuracy) == (False, 0.0)
    assert verdict.reason is Reason.NOT_LITERAL


@pytest.mark.parametrize("name", NO_LITERALS)
def test_as_an_input_only_literals_count(referee, name):
    program = "def f(x=3, *more, **named): return 4"  # whatever it is given, the output is right
    answer = NO_LITERALS[name]
    verdict = grade(referee, "code_i", answer, "4", program)
    if answer.strip():
        assert (verdict.solved, verdict.reason) == (False, Reason.NOT_LITERAL)
    else:  # no arguments at all are arguments
        assert verdict.solved


@pytest.mark.parametrize("name", TOO_LARGE)
@pytest.mark.parametrize("kind", ["code_o", "code_i"])
def test_a_large_answer_is_refused_quickly(referee, kind, name):
    verdict = grade(referee, kind, TOO_LARGE[name], "4", "def f(*x): return 4")
    assert not verdict.solved
    assert verdict.reason in (Reason.TOO_LARGE, Reason.NOT_LITERAL)


@pytest.mark.parametrize(("gold", "answer"), PAIRS)
def test_another_value_is_wrong(referee, gold, answer):
    verdict = grade(referee, "code_o", answer, gold)
    assert not verdict.solved
    assert verdict.reason in (Reason.WRONG, Reason.NOT_LITERAL)
    program = f"def f(*x): return {answer}"
    assert not grade(referee, "code_i", "", gold, program).solved


@pytest.mark.parametrize(("gold", "answer"), RIGHT_PAIRS)
def test_the_same_value_is_right_however_it_is_written(referee, gold, answer):
    assert grade(referee, "code_o", answer, gold).solved
    question = Question("code_i", "def f(x): return x", (), (gold,), (f"({answer})",))
    assert referee.grade([question])[0][0].solved


@pytest.mark.parametrize(
    "answer", ["3)+(1", "3) #", "3), (4", "3);f(3", "3\n)\nf(3", "x=3, 4", "x=3, x=3", "=3"]
)
def test_an_input_cannot_leave_the_call(referee, answer):
    assert not grade(referee, "code_i", answer, "4", "def f(*x, **y): return 4").solved


def test_keyword_literals_are_an_input(referee):
    assert grade(referee, "code_i", "x = 3, y=[1]", "4", "def f(x, y): return x + y[0]").solved


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_that_computes_nothing_scores_nothing(referee, name):
    question = Question(
        "code_f", inputs=("1", "2", "3"), outputs=("2", "4", "6"), answers=(FUNCTIONS[name],)
    )
    ((verdict,),) = referee.grade([question])
    assert (verdict.solved, verdict.accuracy) == (False, 0.0)


def test_a_student_sees_neither_the_teacher_nor_another_student():
    spy = (
        "def f(x):\n    gc, sys = __import__('gc'), __import__('sys')\n"
        "    texts = [o for o in gc.get_objects() if type(o) in (list, tuple, dict)]\n"
        "    return ''.join(reversed('TERCES')) in repr(texts)"
    )
    honest = "def f(x): return ['SECRET', x]"
    naked = RefereeSettings(
        workers=1, timeout=60.0, modules=("gc", "sys"), banned_names=(), max_output_chars=1000
    )
    question = Question("code_f", honest, ("1", "2"), answers=(honest, spy, honest))
    with Referee(naked) as referee:
        (judgement,) = referee.judge([question])
        assert [grade.solved for grade in judgement.grades] == [True, False, True]
        # The spy finds the marker when it is there, so that its silence says something.
        beside = spy.replace("f(x)", "f(x, y)")
        seen = Question("code_f", inputs=("1, 'SECRET'",), outputs=("True",), answers=(beside,))
        assert referee.grade([seen])[0][0].solved
        spied = referee.grade(
            [Question("code_f", inputs=("1",), outputs=("False",), answers=(spy,))] * 3
        )
        assert all(grades[0].solved for grades in spied)


def test_the_gold_output_of_an_input_task_is_not_in_the_child():
    program = (
        "def f(x):\n    gc = __import__('gc')\n"
        "    texts = [o for o in gc.get_objects() if type(o) in (list, tuple, dict)]\n"
        "    return ''.join(reversed('nedlog')) in repr(texts)"
    )
    naked = RefereeSettings(workers=1, timeout=60.0, modules=("gc",), banned_names=())
    with Referee(naked) as referee:
        ((verdict,),) = referee.grade([Question("code_i", program, (), ("'golden'",), ("1",))])
        assert verdict.reason is Reason.WRONG
        ((verdict,),) = referee.grade([Question("code_i", program, (), ("False",), ("1",))])
        assert verdict.solved
