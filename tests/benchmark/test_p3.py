"""P3 as a benchmark: puzzles of our own in its format."""

import json

import needs

from azr_population.benchmark.benchmarks import read_benchmark

ROWS = {
    "Square:0": "def sat(n: int, m=1369):\n    return n > 0 and n * n == m",
    "Pairs:0": "def sat(li: List[int]):\n    return len(li) == 3 and sum(li) == 71",
    "Open:0": "def sat(n: int):\n    assert n > 10 ** 9\n    return str(n) == str(n)[::-1]",
    "Broken:0": "def sat(n: int):\n    return n == 12345",
    "Easy:0": "def sat(n: int):\n    return n > 0",
}


def test_every_answer_that_sat_takes_is_right(tmp_path):
    tasks = needs.module("azr_population.benchmark.tasks", "-e '.[eval]'")
    rows = [{"name": name, "sat": sat, "sol_bodies": []} for name, sat in ROWS.items()]
    (tmp_path / "puzzles.json").write_text(json.dumps(rows))
    problems = read_benchmark("p3", str(tmp_path)).problems
    assert len(problems) == 5
    assert "def sat(n: int, m=1369):" in problems[0].prompt.text
    answers = ["37", "[1, 30, 40]", "1000000001", "12344", None]
    asked = [
        (problem, "no block" if answer is None else f"Yes.\n```answer\n{answer}\n```")
        for problem, answer in zip(problems, answers, strict=True)
    ]
    tasks.self_test("p3", str(tmp_path))
    verdicts = tasks.grade(asked)
    assert [verdict.reason for verdict in verdicts] == [
        "passed", "passed", "passed", "wrong", "no answer",
    ]  # fmt: skip
