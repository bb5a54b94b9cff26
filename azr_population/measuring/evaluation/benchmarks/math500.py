"""MATH-500: 500 test problems of MATH (Hendrycks et al. 2021), chosen by Lightman et al. 2023."""

from azr_population.measuring.evaluation.benchmark import Row, benchmark
from azr_population.measuring.evaluation.benchmarks._answers import AZR_DATA, RIGHT, number
from azr_population.measuring.evaluation.problem import MathProblem


@benchmark(
    "math500",
    title="MATH-500",
    area="math",
    files=("math500/test.jsonl", "math500.jsonl"),
    source=AZR_DATA,
    licence="MIT",
    right=RIGHT,
    prompt="azr_boxed",
    known={"35dc41080a3680858b27fa7e0533d2d547825316fc5dafe5d316f4ccc5a06132": "AZR a82124e"},
)
def math500(row: Row) -> MathProblem:
    return MathProblem(row.id, row["problem"], number(row["answer"]))
