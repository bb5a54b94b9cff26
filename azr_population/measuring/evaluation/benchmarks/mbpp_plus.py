"""MBPP+ (Liu et al. 2023, evalplus): 378 problems of MBPP with 35 times the tests."""

from azr_population.measuring.evaluation.benchmark import Row, benchmark
from azr_population.measuring.evaluation.grading.evalplus_rules import (
    EVALPLUS_RIGHT,
    function_problem,
)
from azr_population.measuring.evaluation.problem import FunctionProblem


@benchmark(
    "mbpp_plus",
    title="MBPP+",
    area="code",
    files=("mbpp_plus/MbppPlus*.jsonl*", "MbppPlus*.jsonl*"),
    variable="MBPP_OVERRIDE_PATH",
    source="https://github.com/evalplus/mbppplus_release/releases (v0.2.0)",
    licence="Apache-2.0 (problems CC BY 4.0)",
    right=EVALPLUS_RIGHT,
    prompt="evalplus",
    max_new_tokens=768,
    hash="md5",
    known={"ee43ecabebf20deef4bb776a405ac5b1": "v0.2.0"},
)
def mbpp_plus(row: Row) -> FunctionProblem:
    return function_problem(row, "mbpp")
