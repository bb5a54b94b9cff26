import needs
import pytest

from azr_population.evals.benchmarks import FunctionProblem, last_boxed
from azr_population.evals.prompts import (
    boxed_or_last_number,
    last_fence,
    last_python_block,
    sanitized,
    tagged,
)

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
    assert tagged(None, text) == answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (r"first \boxed{1}, finally \boxed{2}", "2"),
        ("The answer is 18.", "18"),
        ("so the final answer is: 7\nDone, see 99", "7"),
        ("She has 3 apples and 4,000 pears", "4000"),
        ("no number at all", ""),
    ],
)
def test_the_usual_rule(text, answer):
    assert boxed_or_last_number(None, text) == answer


def test_programs():
    text = (
        "<think>```python\nno\n```</think><answer>```python\nx = 1\n```\nor\n```python\ny = 2\n```"
    )
    assert last_python_block(None, text) == "y = 2\n"
    assert last_python_block(None, "x = 3") == "x = 3"
    assert last_fence(None, "a\n```python\nx = 1\n```\nb\n```\ny = 2\n```") == "y = 2"
    assert last_fence(None, "no fence") == ""


def test_evalplus_rule_takes_what_the_function_needs():
    needs.module("evalplus", "-e '.[eval]'")
    problem = FunctionProblem("p", "", "f", "")
    needed = "import math\ndef g():\n    return 1\ndef f(x):\n    return g()"
    assert sanitized(problem, f"Sure!\n```python\n{needed}\nf(1)\n```") == needed
