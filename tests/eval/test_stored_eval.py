"""The eval that stored members sit after their run."""

import csv
import json
from pathlib import Path

import pytest
from refusals import refused

from azr_population.cli import main
from azr_population.eval.members import find_members
from azr_population.eval.stored_eval import write_results
from azr_population.runs import RunDirectory


def test_the_stored_members_score_what_they_scored_in_the_run(stored_run):
    assert main(["eval", str(stored_run), "--every", "2"]) == 0
    scores_file = json.loads((stored_run / "eval_1121.json").read_text())
    assert scores_file["types"] == ["code_o"] * 3 + ["code_i"] * 3
    assert scores_file["exact"] == [True] * 3 + [False] * 3
    in_run = {(row["step"], row["member"]): row for row in RunDirectory(stored_run).read("evals")}
    after = {(row["step"], row["member"]): row for row in scores_file["members"]}
    assert list(after) == [
        (None, "base"),
        *((step, f"student_{n}") for step in (2, 4, 5) for n in (0, 1)),
    ]
    for key in list(after)[1:]:
        assert after[key]["scores"] == in_run[key]["greedy"]
        assert after[key]["temperature_1"] == pytest.approx(in_run[key]["t1"], abs=1e-4)
        gained = [
            ours - base
            for ours, base in zip(after[key]["scores"], after[None, "base"]["scores"], strict=True)
        ]
        assert after[key]["gain"] == pytest.approx(sum(gained) / 6, abs=1e-5)
        low, high = after[key]["gain_low"], after[key]["gain_high"]
        if len(set(gained)) == 1:
            assert low is None and high is None, "no interval without variance"
        else:
            assert low <= after[key]["gain"] <= high
    with (stored_run / "eval_1121.csv").open() as file:
        rows = list(csv.DictReader(file))
    for row in scores_file["members"]:
        assert 0 <= row["low"] <= row["mean"] <= row["high"] <= 1, (
            "also where all or none are solved"
        )
    assert [float(row["mean"]) for row in rows] == [row["mean"] for row in scores_file["members"]]


def test_another_eval_goes_where_it_is_told(stored_run, tmp_path, capsys):
    out = tmp_path / "other.json"
    typed = ["eval", str(stored_run), "--tasks", "2", "--samples", "1", "--seed", "7"]
    assert main([*typed, "--out", str(out)]) == 0
    content = json.loads(out.read_text())
    assert (content["seed"], content["attempts"], len(content["types"])) == (7, 1, 4)
    assert [row["step"] for row in content["members"]] == [None, 5, 5]
    assert "--out" in refused(capsys, *typed, "--out", tmp_path / "other.txt")


def test_snapshots_that_are_not_there_are_told(stored_run, tmp_path, capsys):
    assert "3" in refused(capsys, "eval", stored_run, "--every", 3)
    assert str(tmp_path) in refused(capsys, "eval", tmp_path)


def test_stored_members_have_the_ratings_of_their_step(stored_run):
    _, *members = find_members(stored_run, every=2)
    assert len(members) == 12 and sum(member.solves for member in members) == 6
    metrics = {row["step"]: row for row in RunDirectory(stored_run).read("metrics")}
    for member in members:
        assert member.metrics["mu"] == metrics[member.step][f"{member.name}/mu"]
        assert member.label == f"stored/{member.name}@{member.step}"


def test_the_folder_one_is_in_is_the_run(tmp_path, monkeypatch):
    (tmp_path / "config.yaml").write_text("seed: 1\n")
    monkeypatch.chdir(tmp_path)
    row = {"step": 1, "scores": [], "temperature_1": []}
    assert write_results({"run": ".", "seed": 7, "members": [row]}) == Path("eval_7.json")
    assert (tmp_path / "eval_7.csv").is_file()


def test_a_member_alone_is_measured_beside_the_base(stored_run, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    typed = ["--tasks", "2", "--samples", "1", "--seed", "7"]
    assert main(["eval", str(stored_run), *typed, "--out", str(tmp_path / "all.json")]) == 0
    rows = json.loads((tmp_path / "all.json").read_text())["members"]
    scores = {row["member"]: row for row in rows}
    assert main(["eval", str(stored_run / "student_1"), *typed]) == 0
    content = json.loads((stored_run / "eval_7_student_1.json").read_text())
    assert content["members"] == [scores["base"], scores["student_1"]]
    assert main(["eval", str(stored_run / "members/student_1"), *typed]) == 0
    alone = json.loads((tmp_path / "evaluations/student_1/eval_7.json").read_text())
    assert [row["member"] for row in alone["members"]] == ["base", "student_1"]
    assert "teacher_0" in refused(capsys, "eval", stored_run / "teacher_0")
