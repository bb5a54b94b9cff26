"""That verdicts are right, on the benchmarks' own data: `BENCHMARK_DATA=DIR` or `AZR_HOME`."""

import os

import needs
import pytest
from test_functions import HOSTILE

from azr_population.eval.benchmark.benchmarks import BENCHMARKS, locate, read_benchmark
from azr_population.eval.benchmark.functions import FunctionProblem

needs.module("evalplus", "-e '.[eval]'")
pytestmark = [pytest.mark.slow]


def problems(name):
    folder = os.environ.get("BENCHMARK_DATA", "")
    if not locate(BENCHMARKS[name], folder):
        pytest.skip(f"the data of {name}: BENCHMARK_DATA=DIR, see docs/evaluation.md")
    return read_benchmark(name, folder).problems


def test_spoilt_solutions_do_not_pass():
    asked = problems("mbpp_plus")
    right = [(problem, problem.canonical) for problem in asked]
    spoilt = [
        (problem, f"{source}\n{problem.entry_point} = lambda *given: 271828182.5")
        for problem, source in right
        # evalplus lets anything pass that is something, for a few problems.
        if problem.id not in ("Mbpp/737", "Mbpp/787", "Mbpp/794")
    ]
    verdicts = FunctionProblem.judge(right + spoilt)
    assert sum(v.passed for v in verdicts[: len(asked)]) == len(asked) == 378
    wrong = [p.id for (p, _), v in zip(spoilt, verdicts[len(asked) :], strict=True) if v.passed]
    assert not wrong


def test_hostile_completions_of_mbpp_do_not_pass():
    """Each hostile program, as an answer to problems of which it knows the name and no more."""
    asked = problems("mbpp_plus")[::100]
    tries = [
        (problem, kind, source.replace("def f(", f"def {problem.entry_point}("))
        for problem in asked
        for kind, source in HOSTILE.items()
    ]
    verdicts = FunctionProblem.judge([(problem, source) for problem, _, source in tries])
    passed = [(p.id, kind) for (p, kind, _), v in zip(tries, verdicts, strict=True) if v.passed]
    assert not passed
