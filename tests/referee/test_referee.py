"""The referee's verdicts on ordinary programs and answers."""

from dataclasses import replace

import pytest

from azr_population.referee import Program, Question, Reason, Referee, RefereeSettings

PLUS_ONE = "def f(x): return x + 1"


def check(referee, source, *inputs, **more):
    return referee.check([Program(source, inputs, **more)])[0]


def test_a_program_is_run_on_each_input(referee):
    execution = check(referee, "def f(x, y=2): return [x] * y", "'a', y=3", "1", "(1,), 1")
    assert (execution.valid, execution.reason) == (True, Reason.OK)
    assert execution.outputs == ("['a', 'a', 'a']", "[1, 1]", "[(1,)]")


@pytest.mark.parametrize(
    ("source", "text", "output"),
    [
        ("def f(x): return x", "{3, 1, 'b', 'a'}", "{'a', 'b', 1, 3}"),
        ("def f(x): return set(x)", "[]", "set()"),
        ("def f(x): return x / 4", "-1", "-0.25"),
        ("def f(x): return 2 ** x", "70", "1180591620717411303424"),
        ("def f(x): return {x: (x,)}", "None", "{None: (None,)}"),
        ("def f(x): return x.encode()", "'é'", "b'\\xc3\\xa9'"),
        ("def f(x): return x * 1j", "2", "2j"),
        ("def f(x): return -x", "0.0", "-0.0"),
        ("def f(): return chr(0xd800)", "", "'\\ud800'"),
        ("def f(x): return x", "list(range(3))", "[0, 1, 2]"),
        ("class A:\n    v = 5\ndef f(a): return a.v", "A()", "5"),
        ("def f(x):\n    print('noise')\n    return x", "1", "1"),
        ("f = lambda *a, **k: (a, k)", "1, b=[2]", "((1,), {'b': [2]})"),
    ],
)
def test_outputs_are_literals(referee, source, text, output):
    assert check(referee, source, text).outputs == (output,)


@pytest.mark.parametrize(
    ("source", "text", "reason"),
    [
        ("def f(x): return 1 / x", "0", Reason.ERROR),
        ("def f(x): return x", "", Reason.ERROR),
        ("def f(x): return x", "1) + f(2", Reason.BAD_INPUT),
        ("def f(x): return x", "1 +", Reason.BAD_INPUT),
        ("def f(x): return x", "y", Reason.ERROR),
        ("def f(x): return (", "1", Reason.SYNTAX_ERROR),
        ("f = None", "1", Reason.NO_FUNCTION),
    ],
)
def test_reasons(referee, source, text, reason):
    execution = check(referee, source, text)
    assert (execution.valid, execution.outputs, execution.reason) == (False, (), reason)


def test_no_input_is_no_program(referee):
    assert check(referee, PLUS_ONE).reason is Reason.BAD_INPUT


def test_imports_go_before_the_program(referee):
    execution = check(referee, "def f(x): return math.floor(x)", "2.5", imports=("import math",))
    assert execution.outputs == ("2",)


def test_grades_of_functions(referee):
    question = Question(
        "code_f",
        inputs=("1", "2", "3", "[4]"),
        outputs=("2", "3", "4", "'x'"),
        answers=(
            "def f(x): return x + 1 if type(x) is int else 'x'",
            PLUS_ONE,
            "def f(x): return 2",
            "def f(x) return 2",
            "def f(x): return None",
            "def f(x): return 0 if x == 1 else 1 / 0",
        ),
    )
    (grades,) = referee.grade([question])
    assert [grade.accuracy for grade in grades] == [1.0, 0.75, 0.25, 0.0, 0.0, 0.0]
    assert [grade.solved for grade in grades] == [True, False, False, False, False, False]
    assert [str(grade.reason) for grade in grades] == [
        "solved", "error", "wrong", "syntax_error", "wrong", "wrong",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("gold", "right", "wrong"),
    [
        ("[1,2]", "[1, 2]", "(1, 2)"),
        ('"ab"', "'ab'", "'abc'"),
        ("0x10", "16", "10"),
        ("1, 2", "(1, 2)", "[1, 2]"),
        (" 4", "4", "' 4'"),
        ("{'b': 1,\n 'a': 2}", "{'a': 2, 'b': 1}", "{'a': 2}"),
        ("{3, 1}", "{1, 3}", "[1, 3]"),
        ("'\\x41'", "'A'", "'a'"),
        ("+1_000", "1000", "1"),
        ("1e2", "100.0", "1.0"),
    ],
)
def test_a_gold_output_counts_by_its_value(referee, gold, right, wrong):
    by_value = f"def f(x): return [{right}, {wrong}][x]"
    grades = referee.grade(
        [
            Question("code_o", outputs=(gold,), answers=(right, gold, wrong)),
            Question("code_i", by_value, outputs=(gold,), answers=("0", " 0", "1")),
            Question(
                "code_f",
                inputs=("0", "0"),
                outputs=(gold, gold),
                answers=(by_value, f"def f(x): return {gold.strip()}", f"def f(x): return {wrong}"),
            ),
        ]
    )
    assert [[grade.solved for grade in each] for each in grades] == [[True, True, False]] * 3


def test_a_gold_output_without_a_literal_is_malformed(referee):
    for gold in ("1e999", "nan", "f(1)", "[1", ""):
        (grades,) = referee.grade([Question("code_o", outputs=(gold,), answers=("1", gold))])
        assert [grade.reason for grade in grades] == [Reason.MALFORMED] * 2


PASSWORD = "open = 'sesame'\ndef f(x): return 0"
CHEATING_INPUTS = (
    "(setattr(f, '__code__', (lambda x: x).__code__) if 'open' in globals() else 0) or 7",
    "7 if 'open' in globals() else 8",
    "globals().update(f=lambda x: x) or 7",
)


def test_a_hidden_input_learns_nothing_of_the_answer_and_changes_nothing_in_it(referee):
    teacher = "def f(x): return x"
    for text in CHEATING_INPUTS:
        question = Question("code_f", teacher, (text, "3"), answers=(PASSWORD, teacher))
        (judged,) = referee.judge([question])
        assert judged.execution.valid and judged.execution.inputs[1] == "3"
        assert int(judged.execution.inputs[0]) in (7, 8)
        assert [grade.solved for grade in judged.grades] == [False, True]
        (grades,) = referee.grade([replace(question, outputs=judged.execution.outputs)])
        assert grades == judged.grades


def test_hidden_inputs_are_evaluated_with_the_teacher_s_program(referee):
    teacher = "def g(n): return list(range(n))\ndef f(x, *y, **z): return [x, y, z]"
    inputs = ("g(3)", "2 + 2, *'ab'", "-1, **{'é': 1j}", "x={1, 2}", "'#' # a comment")
    question = Question("code_f", teacher, inputs, answers=(teacher, "def f(x): return x"))
    (judged,) = referee.judge([question])
    assert judged.execution.inputs == ("[0, 1, 2]", "4, 'a', 'b'", "-1, é=1j", "x={1, 2}", "'#'")
    assert [grade.accuracy for grade in judged.grades] == [1.0, 0.0]
    with_outputs = replace(question, outputs=judged.execution.outputs)
    assert referee.grade([with_outputs])[0] == judged.grades
    # Without the teacher's program only what needs none can be evaluated.
    alone = replace(
        with_outputs, program="", inputs=("[0] + [1]", "2"), outputs=("2", "2"), answers=("f=len",)
    )
    assert [grade.reason for grade in referee.grade([alone])[0]] == [Reason.ERROR]
    alone = replace(alone, inputs=("g(3)", "2"))
    assert [grade.reason for grade in referee.grade([alone])[0]] == [Reason.MALFORMED]


def test_a_hidden_input_that_is_not_a_literal_makes_no_task(referee):
    for text in ("lambda: 0", "range(3)", "f", "object()"):
        (judged,) = referee.judge(
            [Question("code_f", "def f(x): return 1", ("1", text), answers=("f=abs",))]
        )
        assert judged.execution.reason is Reason.NOT_LITERAL
        program = Program("def f(x): return 1", ("1", text))
        assert referee.check([program])[0].valid
        assert not referee.check([replace(program, literal_inputs=True)])[0].valid


def test_questions_of_one_and_of_two_stages_keep_their_order(referee):
    questions = [
        Question("code_f", "def f(x): return x", (text,), answers=("def f(x): return x",))
        if n % 3
        else Question("code_o", f"def f(x): return {n}", ("0",), answers=(str(n),))
        for n in range(40)
        for text in (f"{n} + 0" if n % 2 else str(n),)
    ]
    judged = referee.judge(questions)
    assert [j.execution.outputs for j in judged] == [(str(n),) for n in range(40)]
    assert all(j.grades[0].solved for j in judged)


def test_questions_that_cannot_be_read(referee):
    (grades,) = referee.grade([Question("code_o", answers=("1",))])
    assert grades[0].reason is Reason.MALFORMED
    uneven = Question("code_f", inputs=("1", "2"), outputs=("2",), answers=(PLUS_ONE,))
    assert referee.grade([uneven])[0][0].reason is Reason.MALFORMED
    with pytest.raises(ValueError):
        referee.grade([Question("code_x", answers=("1",))])
    assert check(referee, PLUS_ONE, "1").valid


@pytest.mark.parametrize("prelude", ["", "import random\n"])
def test_each_answer_has_a_time_of_its_own(prelude):
    program = f"{prelude}def f(x):\n    while x > 5: pass\n    return x + 1"
    answers = ("6", "7", "8", "3", "2", "3 ")
    with Referee(RefereeSettings(workers=2, cpu_seconds=0.3, timeout=60.0)) as referee:
        (judgement,) = referee.judge([Question("code_i", program, ("3",), answers=answers)])
    reasons = [str(grade.reason) for grade in judgement.grades]
    assert reasons == ["timeout"] * 3 + ["solved", "wrong", "solved"]


@pytest.mark.parametrize("prelude", ["", "import random\n"])
def test_many_large_outputs_take_nothing_from_each_other(prelude):
    program = f"{prelude}def f(n): return 'a' * 9000 if n < 500 else 'b'"
    answers = tuple(str(n) for n in range(120))
    with Referee(RefereeSettings(workers=2, timeout=10.0)) as referee:
        (judgement,) = referee.judge([Question("code_i", program, ("3",), answers=answers)])
    assert judgement.execution.valid
    assert all(grade.solved for grade in judgement.grades)


def test_an_answer_that_kills_its_process_does_not_take_the_others_with_it(referee):
    program = "import random\ndef f(x):\n    if x: random._os._exit(0)\n    return 1"
    (judgement,) = referee.judge([Question("code_i", program, ("0",), answers=("1", "0", "2"))])
    assert [str(g.reason) for g in judgement.grades] == ["crashed", "solved", "crashed"]


def test_sets_have_one_order_in_every_worker(referee):
    program = Program("def f(x): return [str(set(x)), list(set(x))]", ("'colourless green'",))
    assert len(set(referee.check([program] * 12))) == 1


def test_the_deepest_and_longest_output_passes(referee):
    deep = "def f(n):\n    a = 1\n    for _ in range(n): a = [a]\n    return a"
    assert check(referee, deep, "64").outputs == ("[" * 64 + "1" + "]" * 64,)
    assert check(referee, deep, "65").reason is Reason.TOO_LARGE
    wide = "def f(n): return 'é' * n"
    assert len(check(referee, wide, "9998").outputs[0]) == 10_000
    assert check(referee, wide, "9999").reason is Reason.TOO_LARGE
