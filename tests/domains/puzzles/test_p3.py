"""P3's file as seed tasks and as a benchmark: puzzles of our own in its format."""

import json

import needs
import pytest
from refusals import refuses

from azr_population.config.schema import TaskConfig
from azr_population.domains.puzzles.domain import Puzzles
from azr_population.domains.puzzles.p3 import read_p3
from azr_population.evals.benchmarks import read_benchmark
from azr_population.evals.prompts import find_template
from azr_population.method.phases import seed_tasks
from azr_population.referee import Referee


def row(name, sat, *bodies, header="def sol():"):
    return {"name": name, "sat": sat, "sol_header": header, "sol_bodies": list(bodies)}


ROWS = [
    row("Square:0", "def sat(n: int, m=1369):\n    return n > 0 and n * n == m",
        "    return int(m ** 0.5)", "    return 37", header="def sol(m=1369):"),
    row("Pairs:0", "def sat(li: List[int]):\n    return len(li) == 3 and sum(li) == 71",
        "    out: List[int] = [20, 21]\n    out.append(30)\n    return out"),
    row("Open:0", "def sat(n: int):\n    assert n > 10 ** 9\n    return str(n) == str(n)[::-1]"),
    row("Broken:0", "def sat(n: int):\n    return n == 12345", "    return 1 // 0"),
    row("Easy:0", "def sat(n: int):\n    return n > 0", "    return 5"),
]  # fmt: skip


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "puzzles.json"
    path.write_text(json.dumps(ROWS))
    return path


def test_solved_puzzles_are_seed_tasks_with_the_answers_of_their_programs(file):
    with Referee() as referee:
        domain = Puzzles()
        tasks = seed_tasks(domain.read_seeds(file), domain, referee, TaskConfig())
    # Nobody has solved Open, the solution of Broken fails, and Easy is trivial.
    assert [task.inputs for task in tasks] == [("37",), ("[20, 21, 30]",)]
    assert tasks[1].program.startswith("from typing import List\n\n\ndef sat(li: List[int]):")


@pytest.mark.parametrize("content", ['{"a": 1}', "[1]", '[{"sat": 1, "sol_bodies": []}]', "[{}]"])
def test_another_file_is_refused(tmp_path, content):
    path = tmp_path / "puzzles.json"
    path.write_text(content)
    with refuses("puzzles.json"):
        read_p3(path)


def test_as_a_benchmark_every_answer_that_sat_takes_is_right(file):
    scorers = needs.module("azr_population.evals.scorers", "-e '.[eval]'")
    problems = read_benchmark("p3", str(file.parent)).problems
    template = find_template("", "p3")
    assert len(problems) == 5
    assert "def sat(n: int, m=1369):" in template.make(problems[0]).text
    answers = ["37", "[1, 30, 40]", "1000000001", "12344", None]
    asked = [
        (problem, "no block" if answer is None else f"Yes.\n```answer\n{answer}\n```")
        for problem, answer in zip(problems, answers, strict=True)
    ]
    scorers.check_grader("p3", str(file.parent))
    verdicts = scorers.graders().grade(template.parse, asked)
    assert [verdict.reason for verdict in verdicts] == [
        "passed", "passed", "passed", "wrong", "no answer",
    ]  # fmt: skip
