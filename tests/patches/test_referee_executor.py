"""The stand-in for AZR's executor: AZR's calls and return values, without AZR's holes."""

import inspect
import os

import needs
import numpy as np
import pytest

from azr_population.patches.referee_executor import RefereeExecutor

TWICE = "def f(x): return x * 2"
EQUAL_TO_ALL = "type('X', (), {'__eq__': lambda s, o: True})()"
MULTIPLIES = "type('X', (), {'__mul__': lambda s, o: 14})()"


@pytest.fixture(scope="module")
def executor():
    executor = RefereeExecutor(timeout_length=1, max_workers=2)
    yield executor
    executor.cleanup()


def test_run_and_validate(executor):
    assert executor.run_code(TWICE, "7") == ("14", "Done")
    assert executor.run_code("def f(x): return math.pi > x", "3", ["import math"]) == (
        "True",
        "Done",
    )
    assert executor.run_code(TWICE, "{}")[1].startswith("TypeError: ")


ASSERTING = "def f(x):\n    assert x\n    return 1"
BANNED = {"banned_keywords_for_errors_and_exceptions": ["assert", "try"]}
ERROR = {"check_error": True}


@pytest.mark.parametrize(
    ("code", "inputs", "expected", "options"),
    [
        (TWICE, "'ab'", (True, "'abab'"), {}),
        ("def f(x): return 'a' * 500", "1", (True, repr("a" * 500)), {}),
        ("def f(x): return {x}", "'b'", (True, "{'b'}"), {}),
        ("def f(x): return 1 / x", "0", (False, ""), {}),
        ("import random\ndef f(x): return random.random()", "0", (False, ""), {}),
        ("from collections import Counter\ndef f(x): return Counter(x)", "'a'", (False, ""), {}),
        ("import os\ndef f(x): return 1", "0", (False, None), {}),
        ("def f(x): return x", "f(1)", (False, ""), {}),
        ("def f(x):\n    while True: pass", "0", (False, ""), {}),
        ("import re\ndef f(x): return 1", "0", (False, None), {"banned_keywords": ["re"]}),
        ("import re\ndef f(x): return 1", "0", (True, "1"), {"banned_keywords": ["r", "os"]}),
        (
            "def f(x): return re", "0", (False, None),
            {"banned_keywords": ["re"], "imports": ["import re"]},
        ),
        (ASSERTING, "1", (False, None), BANNED | ERROR),
        (ASSERTING, "1", (True, "1"), BANNED),
        ("def f(x): return [1][x]", "0", (True, "NoError"), ERROR),
        ("def f(x): return [1][x]", "5", (True, "IndexError"), ERROR),
        ("def f(x) 1", "5", (False, "error"), ERROR),
        ("def f(x): return f", "5", (True, "NoError"), ERROR),
    ],
)  # fmt: skip
def test_check_all(executor, code, inputs, expected, options):
    assert executor.check_all(code, inputs, **options) == expected


def test_predicted_inputs(executor):
    assert executor.eval_input_prediction(TWICE, "14", "7") == 1.0
    assert executor.eval_input_prediction(TWICE, "14", "8") == 0.0
    assert executor.eval_input_prediction(TWICE, "14", MULTIPLIES) == 0.0
    assert executor.eval_input_prediction(TWICE, "no literal", "7") == 0.0
    assert executor.eval_input_prediction(TWICE, "14", "7", np.array(["import re"])) == 1.0
    scores = executor.eval_k_input_prediction(TWICE, "14", ["x", "7", "", "8", "7.0", "7"])
    assert scores == [0.0, 1.0, 0.0, 0.0, 1.0, 1.0]


def test_predicted_outputs_are_compared_and_never_executed(executor):
    assert executor.eval_output_prediction(TWICE, "[1, 2]", "[1,2]") == 1.0
    assert executor.eval_output_prediction(TWICE, "[1, 2]", EQUAL_TO_ALL) == 0.0
    assert executor.eval_output_prediction(TWICE, "1", "True") == 0.0
    mark = "AZR_POPULATION_WAS_HERE"
    sets = f"__import__('os').environ.__setitem__('{mark}', '1')"
    assert executor.eval_k_output_prediction(TWICE, "None", [sets, "None"]) == [0.0, 1.0]
    assert mark not in os.environ


def test_scripts(executor):
    assert executor.apply("x = 3\nx + 1") == ("4", "Done")
    assert executor.apply("print('a')\nprint('b')") == ("a\nb", "Done")
    results = executor.batch_apply(["1 / 0", "while True: pass\n1", "import os\n1", "'é'"])
    assert results[0][1] == "ZeroDivisionError: division by zero"
    assert all("error" in status.lower() for _, status in results[:3])
    assert results[3] == ("é", "Done")
    assert executor.batch_apply([]) == []


def test_results_are_remembered_and_bounded(executor):
    calls = []
    run = executor._run
    executor._run = lambda works: calls.append(works) or run(works)
    try:
        for _ in range(3):
            assert executor.eval_input_prediction("def f(x): return x + 40", "42", "2") == 1.0
            assert executor.eval_input_prediction("def f(x): return x + 40", "43", "2") == 0.0
    finally:
        del executor._run
    assert len(calls) == 1


def test_it_starts_again_after_a_cleanup():
    executor = RefereeExecutor(timeout_length=1)
    assert executor.apply("1 + 1") == ("2", "Done")
    executor.cleanup()
    executor.cleanup()
    assert executor.apply("1 + 1") == ("2", "Done")
    executor.cleanup()


@pytest.mark.azr
def test_the_signatures_are_azr_s():
    upstream = needs.from_azr(needs.AZR_EXECUTOR).PythonExecutor
    methods = (
        "__init__", "run_code", "check_all", "eval_input_prediction",
        "eval_output_prediction", "eval_k_input_prediction", "eval_k_output_prediction", "apply",
        "batch_apply", "cleanup",
    )  # fmt: skip
    for name in methods:
        theirs = inspect.signature(getattr(upstream, name)).parameters
        ours = inspect.signature(getattr(RefereeExecutor, name)).parameters
        if name in ("apply", "batch_apply"):
            assert len(theirs) == len(ours)
        else:
            assert list(theirs) == list(ours)[: len(theirs)], name
            for parameter in theirs.values():
                has_default = parameter.default is not inspect.Parameter.empty
                assert (ours[parameter.name].default is not inspect.Parameter.empty) == has_default


@pytest.mark.azr
def test_it_agrees_with_azr_on_honest_tasks(executor):
    theirs = needs.from_azr(needs.AZR_EXECUTOR).PythonExecutor(timeout_length=5, max_workers=1)
    programs = [
        (TWICE, "7", "14", ["7", "8"]),
        ("def f(a, b): return sorted(a + b)", "[3], [1]", "[1, 3]", ["[1], [3]", "[], []"]),
        ("def f(s): return {c: s.count(c) for c in s}", "'aab'", "{'a': 2, 'b': 1}", ["'aba'"]),
    ]
    try:
        for code, inputs, output, answers in programs:
            assert executor.check_all(code, inputs) == theirs.check_all(code, inputs)
            assert executor.run_code(code, inputs) == theirs.run_code(code, inputs)
            for answer in answers:
                ours = executor.eval_input_prediction(code, output, answer)
                assert ours == theirs.eval_input_prediction(code, output, answer)
                assert executor.eval_output_prediction(
                    code, output, answer
                ) == theirs.eval_output_prediction(code, output, answer)
            assert executor.eval_k_input_prediction(
                code, output, answers
            ) == theirs.eval_k_input_prediction(code, output, answers)
    finally:
        theirs.cleanup()
