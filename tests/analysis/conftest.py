"""Small run directories written by hand."""

import json

import pytest

from azr_population.reading.run_data import RunData


@pytest.fixture
def write(tmp_path):
    """Writes `write(metrics=[...], tasks=[...], config="...")` and loads it; records that are not
    given are not there."""

    def write(config="run: {}\n", name="run", **records):
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        (folder / "config.yaml").write_text(config)
        for record, rows in records.items():
            text = "".join(json.dumps(row) + "\n" for row in rows)
            (folder / f"{record}.jsonl").write_text(text)
        return RunData(folder)

    return write


def task(step, program="def f(n):\n    return n + 1", **other):
    """A line of tasks.jsonl with what diagnostics read."""
    row = {"step": step, "teacher": "teacher_0", "program": program}
    return {**row, "inputs": ["3"], "outputs": ["4"], **other}


@pytest.fixture(name="task")
def task_fixture():
    """The function that makes a line of tasks.jsonl."""
    return task
