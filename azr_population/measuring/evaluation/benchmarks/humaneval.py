"""HumanEval (Chen et al. 2021) with its own tests only; not in the table, which has HumanEval+."""

from azr_population.measuring.evaluation.benchmark import BenchmarkRow, benchmark
from azr_population.measuring.evaluation.problem import FunctionProblem


@benchmark(
    "humaneval",
    title="HumanEval",
    area="extra",
    files=("humaneval/HumanEval.jsonl*", "HumanEval.jsonl*"),
    source="https://github.com/openai/human-eval, data/HumanEval.jsonl.gz",
    licence="MIT",
    right="returns what the canonical solution returns on the inputs of HumanEval's own tests",
    prompt="evalplus",
    max_new_tokens=768,
    known={"1d49078ba3e2b196b9344535bef34a43021f038fad9561d6ee7c53450609a6a2": "6d43fb9"},
)
def humaneval(row: BenchmarkRow) -> FunctionProblem:
    return FunctionProblem(
        id=row["task_id"],
        prompt=row["prompt"],
        entry_point=row["entry_point"],
        canonical=row["prompt"] + row["canonical_solution"],
        check=row["test"],
        atol=1e-4 if row["entry_point"] == "find_zero" else 0.0,
        dataset="humaneval",
    )
