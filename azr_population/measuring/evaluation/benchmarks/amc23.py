"""AMC 2023 (12A and 12B): 40 problems, asked without their choices; the answers are numbers."""

from azr_population.measuring.evaluation.benchmark import Row, benchmark
from azr_population.measuring.evaluation.benchmarks._answers import AZR_DATA, RIGHT, number
from azr_population.measuring.evaluation.problem import MathProblem


@benchmark(
    "amc23",
    title="AMC 23",
    area="math",
    files=("amc23/test.jsonl", "amc23.jsonl"),
    source=AZR_DATA,
    licence="problems by the MAA; data file MIT",
    right=RIGHT,
    prompt="azr_boxed",
    known={"43707e1ca784602d8479de24ee8ce36609dbebc46dd152b0b12a46611aa898a4": "AZR a82124e"},
)
def amc23(row: Row) -> MathProblem:
    return MathProblem(row.id, row["question"], number(row["answer"]))
