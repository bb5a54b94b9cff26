import needs
import pytest

from azr_population.eval.benchmark.contests import ContestProblem
from azr_population.eval.benchmark.functions import FunctionProblem
from azr_population.eval.benchmark.mathematics import MathProblem, last_boxed

BOXES = [
    (r"\boxed{5}", "5"),
    (r"so $\boxed{\frac{1}{2}}$.", r"\frac{1}{2}"),
    (r"\boxed{1} then \boxed{2}", "2"),
    (r"\boxed{\sqrt{\frac{a}{b}}} units", r"\sqrt{\frac{a}{b}}"),
    (r"\fbox{7}", "7"),
    (r"\boxed 7$", "7"),
    (r"\boxed{never closed", ""),
    ("no box", ""),
    (r"\boxed{}", ""),
    (r"\boxed{ 3 }", "3"),
    (r"\boxed{\{1,2\}}", r"\{1,2\}"),
]


@pytest.mark.parametrize(("text", "answer"), BOXES)
def test_the_last_box(text, answer):
    assert last_boxed(text) == answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (r"<think>\boxed{9}</think> <answer>\boxed{4}</answer>", "4"),
        ("<think>x</think><answer> 12 </answer>", "12"),
        ("<answer>1</answer> no, <answer>2</answer>", "2"),
        (r"<answer>it is \boxed{3}", "3"),
        (r"no tag but \boxed{8}", "8"),
        (r"only \[ x+1 \] here", "x+1"),
        ("nothing of the kind, 42", ""),
        ("", ""),
    ],
)
def test_azr_s_rule(text, answer):
    assert MathProblem("p", "", "").read(text) == answer


def test_programs():
    text = (
        "<think>```python\nno\n```</think><answer>```python\nx = 1\n```\nor\n```python\ny = 2\n```"
    )
    problem = ContestProblem("p", "", "", "", lambda: ())
    assert problem.read(text) == "y = 2\n"
    assert problem.read("x = 3") == "x = 3"


def test_evalplus_rule_takes_what_the_function_needs():
    needs.module("evalplus", "-e '.[eval]'")
    problem = FunctionProblem("p", "", "f", "")
    needed = "import math\ndef g():\n    return 1\ndef f(x):\n    return g()"
    assert problem.read(f"Sure!\n```python\n{needed}\nf(1)\n```") == needed
