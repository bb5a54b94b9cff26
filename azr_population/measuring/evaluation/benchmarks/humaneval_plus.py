"""HumanEval+ (Liu et al. 2023, evalplus): HumanEval's 164 problems with 80 times the tests."""

from azr_population.measuring.evaluation.benchmark import Row, benchmark
from azr_population.measuring.evaluation.grading.evalplus_rules import (
    EVALPLUS_RIGHT,
    function_problem,
)
from azr_population.measuring.evaluation.problem import FunctionProblem


@benchmark(
    "humaneval_plus",
    title="HumanEval+",
    area="code",
    files=("humaneval_plus/HumanEvalPlus*.jsonl*", "HumanEvalPlus*.jsonl*"),
    variable="HUMANEVAL_OVERRIDE_PATH",
    source="https://github.com/evalplus/humanevalplus_release/releases (v0.1.10)",
    licence="Apache-2.0 (problems MIT)",
    right=EVALPLUS_RIGHT,
    prompt="evalplus",
    max_new_tokens=768,
    hash="md5",
    known={"fe585eb4df8c88d844eeb463ea4d0302": "v0.1.10"},
)
def humaneval_plus(row: Row) -> FunctionProblem:
    return function_problem(row, "humaneval")
