"""`azr-population export`: each format is read back by its own reader."""

import json

from refusals import refused

from azr_population.cli import main
from azr_population.reading.run_data import RunData
from azr_population.runs import RunDirectory
from azr_population.sharing.export import distinct_tasks

PROGRAM = "def f(x):\n    return x + 1"


def export(run, tmp_path, format):
    out = tmp_path / "out"
    assert main(["export", str(run.path), "--to", format, "--out", str(out)]) == 0
    return out


def test_a_task_is_told_once_with_all_its_attempts(run):
    first, second = distinct_tasks(RunData(run.path))
    assert (first["id"], first["step"], first["teacher"]) == ("task_0", 1, "teacher_0")
    assert (first["proposed"], first["attempts"], first["solved"]) == (2, 4, 2)
    assert first["solve_rate"] == 0.5 and first["ast_nodes"] == 9
    assert not {"rewards", "reward", "student"} & set(first)
    assert second["type"] == "code_i" and second["solve_rate"] is None
    assert not {"answers", "reasons", "student"} & set(first)


def test_json_lines_come_with_a_card_that_counts_them(run, tmp_path):
    out = export(run, tmp_path, "jsonl")
    rows = [json.loads(line) for line in (out / "tasks.jsonl").read_text().splitlines()]
    assert [row["program"] for row in rows] == [PROGRAM, PROGRAM]
    card = (out / "README.md").read_text()
    assert "code_i: 1" in card and "code_o: 1" in card and "data_files: tasks.jsonl" in card


def test_a_stranger_s_type_of_task_is_no_markup_in_the_card(run, tmp_path):
    task = next(iter(run.read("tasks")))
    run.append("tasks", [{**task, "type": "<script>alert(1)</script>\x1b[2J"}])
    card = (export(run, tmp_path, "jsonl") / "README.md").read_text()
    assert "- &lt;script&gt;alert(1)&lt;/script&gt;\\x1b[2J: 1 tasks" in card


def test_nothing_is_overwritten_and_nothing_half_written_stays(run, tmp_path, capsys):
    (tmp_path / "there").mkdir()
    for out in ("there", "9 lives"):
        asked = ["export", run.path, "--to", "verifiers", "--out", tmp_path / out]
        assert out in refused(capsys, *asked)
    assert not (tmp_path / "9 lives").exists()


def test_a_run_without_tasks_is_one_line(tmp_path, capsys):
    empty = RunDirectory(tmp_path / "empty")
    empty.create("seed: 1\n", {})
    message = refused(capsys, "export", empty.path, "--to", "jsonl", "--out", tmp_path / "out")
    assert str(empty.path) in message and not (tmp_path / "out").exists()
