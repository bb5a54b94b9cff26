import pytest

from azr_population.config.schema import TaskConfig
from azr_population.domains.code.domain import Code
from azr_population.domains.code.rules import reason_to_refuse, task_or_reason
from azr_population.domains.code.source import NOT_FINITE
from azr_population.domains.code.task_types import ParsedProposal, Task, TaskType

RULES = TaskConfig(max_output_chars=50)


def proposal(program, *inputs, type=TaskType.CODE_O):
    return ParsedProposal(type, program, inputs)


def verdict(program, inputs, outputs, type=TaskType.CODE_O, rules=RULES):
    return task_or_reason(proposal(program, *inputs, type=type), outputs, rules)


def refused(*parts, **options):
    return reason_to_refuse(proposal(*parts, **options), RULES)


@pytest.mark.parametrize(
    ("program", "inputs", "outputs", "rule"),
    [
        ("def f(n):\n    return n > 3", ["5"], ("True",), "boolean"),
        ("def f(n):\n    n.sort()", ["[1]"], ("None",), "boolean"),
        ("def f(n):\n    return 7", ["5"], ("7",), "constant"),
        ("def f(n):\n    return n", ["5"], ("5",), "identity"),
        ("def f(a, b):\n    return b", ["1, 'x'"], ("'x'",), "identity"),
        ("def f(a):\n    return a", ["[1,2]"], ("[1, 2]",), "identity"),
        # Sets as the referee writes them, sorted by text, and not by the hashes of this process.
        ("def f(a):\n    return a", ["{9, 10, 'b', 'a'}"], ("{'a', 'b', 10, 9}",), "identity"),
        ("def f(n):\n    return n * 2", ["5"], ("9" * 60,), "output_too_long"),
    ],
)
def test_guessable_answers_are_refused_by_name(program, inputs, outputs, rule):
    assert verdict(program, inputs, outputs) == rule


def test_a_function_that_is_no_top_level_def_is_not_called_constant():
    for program in ("f = lambda n: n + 1", "if True:\n    def f(n):\n        return n + 1"):
        assert isinstance(verdict(program, ["5"], ("6",)), Task)


def test_of_several_functions_the_last_is_called():
    constant, other = "def f(n):\n    return 6", "def f(n):\n    return n + 1"
    assert isinstance(verdict(f"{constant}\n{other}", ["5"], ("6",)), Task)
    assert verdict(f"{other}\n{constant}", ["5"], ("6",)) == "constant"


def test_a_sound_proposal_becomes_a_task_and_rules_can_be_switched_off():
    task = verdict("def f(n):\n    return n + 1", ["5"], ("6",))
    assert (task.inputs, task.outputs) == (("5",), ("6",))
    rules = TaskConfig(reject=[])
    assert isinstance(verdict("def f(n):\n    return n > 3", ["5"], ("True",), rules=rules), Task)


def test_code_f_with_equal_outputs_is_constant_and_one_identity_is_not():
    inputs = ["1", "2", "3"]
    program = "def f(n):\n    return abs(n)"
    assert verdict(program, inputs, ("4", "4", "4"), type=TaskType.CODE_F) == "constant"
    assert isinstance(verdict(program, inputs, ("1", "2", "4"), type=TaskType.CODE_F), Task)
    assert verdict(program, inputs, ("1", "2", "3"), type=TaskType.CODE_F) == "identity"
    assert verdict(program, inputs, ("4", "5", "True"), type=TaskType.CODE_F) == "boolean"


def test_refused_unexecuted(referee):
    program = "def f(n): ..."
    assert refused(program, "1", "1", "2", "3", type=TaskType.CODE_F) == "too_few_inputs"
    assert refused(program, "1", "2", "3", "4", type=TaskType.CODE_F) == ""
    twice = [f"{n}{blank}" for blank in ("", " ") for n in (1, 2, 3)]
    assert refused(program, *twice, type=TaskType.CODE_F) == "too_few_inputs"
    assert refused(program, "1") == refused(program, "1e99", type=TaskType.CODE_I) == ""
    rules = TaskConfig(max_program_chars=10)
    assert Code().judge([proposal("x" * 11, "1")], referee, rules) == ["program_too_long"]


def test_an_input_with_an_infinite_number_is_no_answer_and_no_task(referee):
    program = "def f(x):\n    return x > 10 ** 300"
    assert refused(program, "1e999", type=TaskType.CODE_I) == NOT_FINITE
    task = Task(TaskType.CODE_I, program, ("1e301",), ("True",))
    answers = ("1e999", "1e301", "[-1e999]", "1e999 - 1e999", "0", "float('nan')")
    (verdicts,) = Code().grade([(task, answers)], referee)
    assert [verdict.reason for verdict in verdicts] == [
        *(NOT_FINITE, "solved", NOT_FINITE, NOT_FINITE, "wrong", "not_literal")
    ]


def test_a_program_of_code_i_gets_what_an_answer_can_give_it(referee):
    """A literal: no list that stands in another twice."""
    program = "def f(x):\n    x[0].append(1)\n    return x"
    proposals = [proposal(program, "[[0]] * 2", type=type) for type in ("code_i", "code_o")]
    outputs = [task.outputs for task in Code().judge(proposals, referee, RULES)]
    assert outputs == [("[[0, 1], [0]]",), ("[[0, 1], [0, 1]]",)]


def test_the_hidden_pairs_decide_about_a_program(referee):
    inputs, outputs = ("1", "2", "3", "4"), ("1", "4", "9", "16")
    task = Task(TaskType.CODE_F, "def f(n):\n    return n * n", inputs, outputs)
    by_heart = "def f(n):\n    return {1: 1, 2: 4}.get(n, 0)"
    (verdicts,) = Code().grade([(task, (task.program, by_heart))], referee)
    assert [verdict.solved for verdict in verdicts] == [True, False]


PROGRAM = "def f(a):\n    return a[2:] + [1, 3]"
IS_COPY = Code().copies_of([PROGRAM, "def f(s):\n    return s.upper()"])


def test_copies_are_told_however_they_are_laid_out():
    assert IS_COPY(PROGRAM)
    assert IS_COPY("def f( a ):  # mine\n\n  return (a[2:]+[1,3])\n")
    assert not IS_COPY("def f(a):\n    return a[2:] + [1, 4]")
