"""AIME 2024: both contests, 30 problems whose answers are integers from 0 to 999."""

from azr_population.measuring.evaluation.benchmark import Row, benchmark
from azr_population.measuring.evaluation.benchmarks._answers import AZR_DATA, RIGHT, number
from azr_population.measuring.evaluation.problem import MathProblem


@benchmark(
    "aime24",
    title="AIME 24",
    area="math",
    files=("aime24/test.jsonl", "aime24.jsonl"),
    source=AZR_DATA,
    licence="problems by the MAA; data file MIT",
    right=RIGHT,
    prompt="azr_boxed",
    known={"af2b8bd2aa911b6333ad0df32f3ca05c7ae8ed10f1731f4372c8ae26990bf7ac": "AZR a82124e"},
)
def aime24(row: Row) -> MathProblem:
    return MathProblem(row.id, row["problem"], number(row["answer"]))
