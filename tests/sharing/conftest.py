"""A small run with tasks and one step."""

import pytest

from azr_population.runs import RunDirectory

PROGRAM = "def f(x):\n    return x + 1"
TASK = {
    "step": 1, "type": "code_o", "teacher": "teacher_0", "student": "student_0", "program": PROGRAM,
    "inputs": ["1"], "outputs": ["2"], "message": "", "answers": ["2", "3", None],
    "solved": [True, False, False], "reasons": ["solved", "wrong_answer", "unparsable"],
    "rewards": [1.0, 0.0, 0.0], "reward": 2 / 3, "solve_rate": 1 / 3, "copies": 0, "ast_nodes": 9,
}  # fmt: skip


@pytest.fixture
def run(tmp_path):
    run = RunDirectory(tmp_path / "run")
    run.create("seed: 1\n", {"base": "abc"})
    again = {**TASK, "step": 2, "teacher": "teacher_1", "solved": [True], "answers": ["2"]}
    other = {**TASK, "type": "code_i", "solved": [], "answers": []}
    run.append("tasks", [TASK, again, other])
    metrics = {"teacher/valid_frac": 0.5, "student/solve_rate": 0.25, "time/step": 2.0}
    run.append("metrics", [{"step": 1, **metrics}])
    return run
