"""GSM8K's test set (Cobbe et al. 2021): 1,319 word problems; the gold answer follows `####`."""

from azr_population.measuring.evaluation.benchmark import Row, benchmark
from azr_population.measuring.evaluation.benchmarks._answers import AZR_DATA, RIGHT
from azr_population.measuring.evaluation.problem import MathProblem


@benchmark(
    "gsm8k",
    title="GSM8K",
    area="math",
    files=("gsm8k/test.jsonl", "gsm8k.jsonl"),
    source=AZR_DATA,
    licence="MIT",
    right=RIGHT,
    prompt="azr_boxed",
    max_new_tokens=1024,
    known={"9f098df7ff4522078d6ccec27a5c38a454790fdb51131bedfaa0e490070d5394": "AZR a82124e"},
)
def gsm8k(row: Row) -> MathProblem:
    return MathProblem(row.id, row["question"], row["answer"].split("####")[1].strip())
