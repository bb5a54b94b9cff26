"""OlympiadBench (He et al. 2024): 675 open-ended mathematics problems, English, no images."""

from azr_population.measuring.evaluation.benchmark import Row, benchmark
from azr_population.measuring.evaluation.benchmarks._answers import AZR_DATA, RIGHT
from azr_population.measuring.evaluation.problem import MathProblem


@benchmark(
    "olympiadbench",
    title="OlympiadBench",
    area="math",
    files=("olympiadbench/test.jsonl", "olympiadbench.jsonl"),
    source=AZR_DATA,
    licence="Apache-2.0",
    right=RIGHT,
    prompt="azr_boxed",
    known={"bb8c1e38a16ea9eacb77530315a674d883f267fbff79183effc53681b4fcc416": "AZR a82124e"},
)
def olympiadbench(row: Row) -> MathProblem:
    return MathProblem(row.id, row["question"], row["final_answer"][0].strip("$"))
