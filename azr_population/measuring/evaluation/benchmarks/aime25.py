"""AIME 2025: both contests, 30 problems whose answers are integers from 0 to 999."""

from azr_population.measuring.evaluation.benchmark import Row, benchmark
from azr_population.measuring.evaluation.benchmarks._answers import AZR_DATA, RIGHT, number
from azr_population.measuring.evaluation.problem import MathProblem


@benchmark(
    "aime25",
    title="AIME 25",
    area="math",
    files=("aime25/test.jsonl", "aime25.jsonl"),
    source=AZR_DATA,
    licence="problems by the MAA; data file MIT",
    right=RIGHT,
    prompt="azr_boxed",
    known={"20c1ca392758d96bd1e28af15d9f30df5660257927cacc9eac7301c29f677d1a": "AZR a82124e"},
)
def aime25(row: Row) -> MathProblem:
    return MathProblem(row.id, row["problem"], number(row["answer"]))
