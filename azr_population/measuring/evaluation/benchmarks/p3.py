"""Python Programming Puzzles (Schuster et al. 2021), not in the paper's table."""

from azr_population.domains.puzzles.p3 import program_of
from azr_population.measuring.evaluation.benchmark import BenchmarkRow, benchmark
from azr_population.measuring.evaluation.problem import PuzzleProblem


@benchmark(
    "p3",
    title="P3",
    area="extra",
    files=("p3/puzzles.json", "puzzles.json"),
    source="https://github.com/microsoft/PythonProgrammingPuzzles, puzzles/puzzles.json",
    licence="MIT",
    right="sat(answer) is True; the answer is one literal, its type is not asked for",
    prompt="puzzle",
    max_new_tokens=2048,
)
def p3(row: BenchmarkRow) -> PuzzleProblem:
    return PuzzleProblem(row["name"], program_of(row.values))
