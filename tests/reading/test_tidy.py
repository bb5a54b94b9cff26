"""The tidy table from run directories, folders of seeds and logs."""

import json
import math

import made_up_run

from azr_population.analysis.metrics import all_metrics
from azr_population.reading.run_data import RunData
from azr_population.reading.tidy import COLUMNS, budget, curve, seed_folders, tidy

LINES = [
    {"step": 1, "teacher/valid_frac": 0.5, "student/solve_rate": 0.25, "eval/greedy": 0.3},
    {"step": 2, "student_0/solve_rate": 0.5, "student_10/solve_rate": 1.0, "time/step": 2.0},
    {"step": 2, "student_0/solve_rate": 0.75, "type/code_o/valid_frac": 1.0, "note": "text"},
]


def write_run(folder, lines=LINES, seed=3):
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(f"seed: {seed}\nrun: {{steps: 2}}\n")
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def test_whose_a_value_is():
    table = tidy(LINES[:2])
    assert tuple(table.columns) == COLUMNS
    owners = {
        (row.member, row.role, row.metric): row.value for row in table.itertuples() if row.step == 1
    }
    assert owners == {
        (None, "teacher", "valid_frac"): 0.5,
        (None, "student", "solve_rate"): 0.25,
        (None, None, "eval/greedy"): 0.3,
    }


def test_the_later_record_of_a_step_counts(tmp_path):
    table = RunData(write_run(tmp_path / "run")).table
    solved = table[(table["metric"] == "solve_rate") & (table["member"] == "student_0")]
    assert solved["value"].tolist() == [0.75] and solved["step"].tolist() == [2]
    assert curve(table, "type/code_o/valid_frac").to_dict() == {2: 1.0}
    assert "note" not in set(table["metric"])


def test_run_directory_and_seeds(tmp_path):
    write_run(tmp_path / "arm" / "seed_2", seed=2)
    write_run(tmp_path / "arm" / "seed_10", seed=10)
    folders = seed_folders(tmp_path / "arm")
    assert [folder.name for folder in folders] == ["seed_2", "seed_10"]
    table = RunData(folders[0]).table
    assert curve(table, all_metrics()["solve_rate"]).to_dict() == {1: 0.25}


def test_a_members_budget_ends_at_a_step_and_its_seconds_are_without_evals():
    updates, seconds = {1: 4.0, 2: 8.0, 3: 100.0}, {1: 3.0, 2: 6.0, 3: 50.0}
    lines = [{"step": s, "total/updates": updates[s], "time/step": seconds[s]} for s in updates]
    lines[1]["time/eval"] = 1.0
    used = budget(tidy(lines), members=4, steps=2)
    assert (used["updates"], used["seconds"]) == (1.5, 4.0) and math.isnan(used["rollouts"])


def test_validations_are_in_the_table(tmp_path):
    run = write_run(tmp_path / "run")
    row = {
        "step": 2,
        "member": "student_0",
        "shares": {"humaneval": 0.5, "mbpp": 0.0, "gsm8k": None},
    }
    (run / "validations.jsonl").write_text(json.dumps(row) + "\n")
    table = RunData(run).table
    assert curve(table, "validation").to_dict() == {2: 0.25}
    assert curve(table, "validation/mbpp").to_dict() == {2: 0.0}
    assert "validation/gsm8k" not in set(table["metric"])


def test_what_is_computed_of_the_tasks_is_in_the_table(tmp_path):
    run = made_up_run.write_run(tmp_path / "run")
    coverage = curve(RunData(run).table, all_metrics()["coverage"])
    assert coverage[12] >= coverage[1] > 0
