"""AZR's executor for a step: programs run before AZR asks, with the same verdicts as one by one."""

from __future__ import annotations

import json
import os
from pathlib import Path

import needs
import pytest

from azr_population.hosts.azr.executors import StepExecutor

AZR_HOME = Path(os.environ.get("AZR_HOME", ""))
LIMIT = 2
"""Seconds that a program has; AZR gives 10."""
LOOP = "def f(a):\n    while True:\n        pass"


class Counting:
    """An executor in small: a program prints its length."""

    max_workers = 1
    _process_pool = None

    def __init__(self):
        self.ran = []

    def cleanup(self): ...

    def _get_process_pool(self, size): ...

    def apply(self, code):
        return self.batch_apply([code])[0]

    def batch_apply(self, codes):
        self.ran += codes
        return [(str(len(code)), "Done") for code in codes]

    def length(self, code):
        printed, status = self.apply(code)
        assert status == "Done"
        return printed != "True" and int(printed)


def test_a_prefetched_program_runs_once():
    executor = Counting()
    step = StepExecutor(executor, processes=1)
    step.prefetch([lambda asked, n=n: asked.length("x" * n) for n in (3, 5, 3)])
    assert [step.length("x" * n) for n in (3, 5, 3)] == [3, 5, 3]
    assert executor.ran == ["xxx", "xxxxx"] and step.missed == 0
    assert step.length("seven..") == 7 and step.missed == 1
    step.close()
    assert executor.length("xxx") == 3


def test_each_of_several_answers_has_its_own_score():
    class Scored(Counting):
        def eval_k_output_prediction(self, code, gold_output, k_agent_outputs):
            return [float(answer == gold_output) for answer in k_agent_outputs]

    step = StepExecutor(Scored(), processes=1)
    scores = step.eval_k_output_prediction(code="p", gold_output="1", k_agent_outputs=["2", "1"])
    task = {"snippet": "p", "output": "1"}
    assert scores == [0.0, 1.0]
    assert [step.solved("code_o", text, task) for text in ("1", "2", "3")] == [True, False, False]
    step.close()


def test_the_referee_in_its_place_is_asked_as_it_is():
    class Referee(Counting):
        _get_process_pool = property()  # has none

    executor = Referee()
    step = StepExecutor(executor)
    step.prefetch([lambda asked: asked.length("xxx")])
    assert not executor.ran and step.length("xxx") == 3 and executor.ran == ["xxx"]
    step.close()


@pytest.fixture
def executor():
    needs.verl()
    PythonExecutor = needs.from_azr(needs.AZR_EXECUTOR).PythonExecutor
    from azr_population.patches import EVALS, apply, undo

    apply(EVALS)
    made = PythonExecutor(timeout_length=LIMIT, ast_check=True)
    yield made
    made.cleanup()
    undo(EVALS)


@pytest.mark.azr
def test_an_endless_guess_of_several_scores_0_like_a_wrong_one(executor):
    code = "def f(a):\n    while a: pass\n    return 1"
    guesses = {"gold_output": "1", "k_agent_inputs": ["1", "2", "0", "f(1)", "0"]}
    assert executor.eval_k_input_prediction(code=code, **guesses) == [0, 0, 1, 0, 1]
    step = StepExecutor(executor, processes=2)
    assert step.eval_k_input_prediction(code=code, **guesses) == [0, 0, 1, 0, 1]
    task = {"snippet": code, "output": "1"}
    assert step.solved("code_i", "0", task) and not step.solved("code_i", "2", task)
    step.close()


def seeds(name, count):
    lines = (AZR_HOME / "data" / name).read_text().splitlines()
    return [json.loads(line) for line in lines[:: len(lines) // count]][:count]


def checks(count):
    """Arguments of `check_all`: AZR's own seeds, a loop, what raises, what does not parse."""
    asked = [
        {"code": seed["snippet"], "inputs": seed["input"], "imports": seed["imports"]}
        for seed in seeds("7b_coder_seed_io.jsonl", count)
    ]
    odd = [
        (LOOP, "1"), ("def f(a):\n    return 1 / 0", "1"), ("def f(a:\n", "1"),
        ("import random\ndef f(a):\n    return a", "1"), ("def f(a):\n    return a", "x"),
    ]  # fmt: skip
    asked += [{"code": code, "inputs": given, "imports": []} for code, given in odd]
    words = {"banned_keywords": ["random"], "banned_keywords_for_errors_and_exceptions": []}
    return [{**arguments, **words, "check_determinism": True} for arguments in asked]


def predictions(count):
    """Arguments of `eval_input_prediction`: right, wrong, no literal, and a loop."""
    asked = []
    for seed in seeds("7b_coder_seed_io.jsonl", count):
        task = {"code": seed["snippet"], "gold_output": seed["output"], "imports": seed["imports"]}
        asked += [{**task, "agent_input": text} for text in (seed["input"], "0", "f(1)")]
    for seed in seeds("7b_coder_code_f_seed_io.jsonl", count // 4):
        pairs = zip(seed["inputs"], seed["outputs"], strict=True)
        asked += [
            {"code": seed["snippet"], "gold_output": output, "agent_input": given,
             "imports": seed["imports"]}
            for given, output in pairs
        ]  # fmt: skip
    return [*asked, {"code": LOOP, "gold_output": "1", "agent_input": "1", "imports": []}]


@pytest.mark.azr
@pytest.mark.slow
def test_azrs_verdicts_are_the_same_ahead_as_one_by_one(executor):
    asked, judged = checks(24), predictions(24)
    alone = [executor.check_all(**arguments) for arguments in asked]
    scores = [executor.eval_input_prediction(**arguments) for arguments in judged]
    step = StepExecutor(executor, processes=4)
    for arguments in asked:
        step.prefetch([lambda asking, arguments=arguments: asking.check_all(**arguments)])
    step.prefetch(
        [
            lambda asking, arguments=arguments: asking.eval_input_prediction(**arguments)
            for arguments in judged
        ]
    )
    ahead = [step.check_all(**arguments) for arguments in asked]
    ahead_scores = [step.eval_input_prediction(**arguments) for arguments in judged]
    step.close()
    assert step.missed == 0 and step.checked == len(asked)
    assert repr(ahead) == repr(alone) and repr(ahead_scores) == repr(scores)
    assert {verdict for verdict, _ in alone} == {True, False} and set(scores) == {0.0, 1.0}


@pytest.mark.azr
@pytest.mark.slow
def test_an_endless_loop_holds_up_no_other_program(executor):
    loops = [LOOP.replace("pass", f"a = {n}") for n in range(6)]
    step = StepExecutor(executor, processes=6)
    step.prefetch(
        [lambda asking, code=code: asking.check_all(code=code, inputs="1") for code in loops]
    )
    assert [step.check_all(code=code, inputs="1") for code in loops] == [(False, "")] * 6
    step.close()
