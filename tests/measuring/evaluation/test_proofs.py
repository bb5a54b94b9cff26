"""That the figures are right, on the benchmarks' own data: `BENCHMARK_DATA=DIR` or `AZR_HOME`."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import evaluation_mathematics
import evaluation_mutants
import needs
import pytest
from test_functions import HOSTILE

from azr_population.measuring.evaluation.benchmark import chosen
from azr_population.measuring.evaluation.data import locate, read
from azr_population.measuring.evaluation.grading.functions import FunctionJudge
from azr_population.measuring.evaluation.grading.grade import Graders
from azr_population.measuring.evaluation.grading.references import References

needs.module("math_verify", "-e '.[eval]'")
needs.module("pebble", "-e '.[eval]'")
pytestmark = pytest.mark.slow
SETS = ("aime24", "aime25", "amc23", "math500", "minerva", "gsm8k", "olympiadbench")


def problems(name):
    folder = os.environ.get("BENCHMARK_DATA")
    (benchmark,) = chosen(name)
    if not locate(benchmark, Path(folder) if folder else None):
        pytest.skip(f"the data of {name}: BENCHMARK_DATA=DIR, see docs/evaluation.md")
    return read(benchmark, Path(folder) if folder else None).problems


@pytest.fixture(scope="module")
def graders():
    with Graders(2) as made:
        yield made


@pytest.mark.parametrize("name", SETS)
def test_gold_answers_are_right_and_shuffled_ones_wrong(name, graders):
    asked = list(evaluation_mathematics.made_up(problems(name)))
    judged = []
    for _, verdicts in graders.grade("tagged", [(problem, text) for problem, _, text in asked]):
        judged += [verdict.passed for verdict in verdicts]
    wrong = [
        (problem.gold, text)
        for (problem, kind, text), passed in zip(asked, judged, strict=True)
        if passed != (kind == "gold")
    ]
    assert not wrong


@pytest.mark.timeout(1800)
def test_canonical_solutions_pass_and_mutants_fail_or_are_explained():
    needs.module("evalplus", "-e '.[eval]'")
    found = evaluation_mutants.measured(problems("mbpp_plus"), 2)
    assert found["canonical"] == {"passed": 378}
    assert sum(found["mutants"].values()) >= 370
    assert not [one for one in found["survivors"] if one["kind"] == "unexplained"]
    assert Counter(one["kind"] for one in found["survivors"])["not tested"] <= 4


@pytest.mark.timeout(1800)
def test_hostile_completions_of_mbpp_do_not_pass():
    """Each hostile program, as an answer to problems of which it knows the name and no more."""
    needs.module("evalplus", "-e '.[eval]'")
    asked = problems("mbpp_plus")[::100]
    tries = [
        (problem, kind, source.replace("def f(", f"def {problem.entry_point}("))
        for problem in asked
        for kind, source in HOSTILE.items()
    ]
    with FunctionJudge(References(workers=2), 2) as judge:
        verdicts = judge.judge([(problem, source) for problem, _, source in tries])
    passed = [(p.id, kind) for (p, kind, _), v in zip(tries, verdicts, strict=True) if v.passed]
    assert not passed
