"""Minerva's OCWCourses: 272 questions of MIT courses; the gold answer is boxed in the solution."""

from azr_population.measuring.evaluation.benchmark import Row, benchmark
from azr_population.measuring.evaluation.benchmarks._answers import AZR_DATA, RIGHT
from azr_population.measuring.evaluation.grading.extraction import last_boxed
from azr_population.measuring.evaluation.problem import MathProblem


@benchmark(
    "minerva",
    title="Minerva",
    area="math",
    files=("minerva_math/test.jsonl", "minerva/test.jsonl", "minerva.jsonl"),
    source=AZR_DATA,
    licence="CC BY-NC-SA 4.0 (MIT OpenCourseWare)",
    right=RIGHT,
    prompt="azr_boxed",
    known={"0e656b430d3a0a1dab6aa853f453ba3805e28e2cabe4fc72486a897cc09d8ba2": "AZR a82124e"},
)
def minerva(row: Row) -> MathProblem:
    gold = last_boxed(row["solution"])
    if not gold:
        raise ValueError("no boxed answer in its solution")
    return MathProblem(row.id, row["problem"], gold)
