"""Cross-play of a run on the nano base, from the command line."""

import json
import shutil

import pytest
from refusals import refused, refuses

from azr_population.cli import main
from azr_population.eval.members import find_members
from azr_population.reading.run_data import RunData
from azr_population.reading.tidy import curve
from azr_population.runs import RunDirectory

pytestmark = pytest.mark.integration


def test_everybody_meets_everybody_and_the_run_knows_its_slopes(stored_run):
    assert main(["crossplay", str(stored_run), "--every", "2", "--tasks", "8"]) == 0
    content = json.loads((stored_run / "crossplay.json").read_text())
    assert content["students"][0]["member"] == "stored/student_0@2"
    assert all(0 <= teacher["tasks"] <= 8 for teacher in content["teachers"])
    rates = [rate for row in content["solve_rates"] for rate in row]
    assert len(rates) == 36 and all(rate is None or 0 <= rate <= 1 for rate in rates)
    page = (stored_run / "crossplay.html").read_text()
    assert page.count('class="vega"') == 1 and "step 2, S0" in page
    slopes = curve(RunData(stored_run).table, "cross_play_slope", ("student",))
    assert slopes.to_dict() == {5: content["slopes"]["student"]}


def steps(run, every):
    """Those at which the run's members are found."""
    _, *members = find_members(run.path, every=every)
    return sorted({member.step for member in members})


def test_without_every_it_takes_the_snapshots_that_there_are(stored_run, tmp_path):
    # A copy: the run is shared by all tests.
    run = RunDirectory(shutil.copytree(stored_run, tmp_path / "stored"))
    assert steps(run, None) == [2, 4, 5]
    with refuses("25"):
        steps(run, 25)
    snapshots = run.snapshots.rename(tmp_path / "away")
    assert steps(run, None) == [5]  # the last members
    snapshots.rename(run.snapshots)
    for step in range(6, 40):
        shutil.copytree(run.snapshots / "step_2", run.snapshots / f"step_{step}")
    some = steps(run, None)
    assert len(some) in (8, 9) and some[0] == 2 and some[-1] == 39


def test_it_is_the_same_again_and_mistakes_are_told(stored_run, tmp_path, capsys):
    typed = ["crossplay", str(stored_run), "--every", "4", "--tasks", "4"]
    for name in ("a", "b"):
        assert main([*typed, "--out", str(tmp_path / f"{name}.json")]) == 0
    assert (tmp_path / "a.json").read_text() == (tmp_path / "b.json").read_text()
    capsys.readouterr()
    assert "stored" in refused(capsys, "crossplay", stored_run, stored_run, "--every", 4)
    pair = [str(stored_run / "teacher_1"), str(stored_run / "student_0")]
    assert main(["crossplay", *pair, "--tasks", "4", "--out", str(tmp_path / "c.json")]) == 0
    content = json.loads((tmp_path / "c.json").read_text())
    assert {row["member"] for row in content["teachers"]} == {
        f"stored/teacher_1@{step}" for step in (2, 4, 5)
    }
    assert "no student" in refused(capsys, "crossplay", pair[0])
    assert "--tasks" in refused(capsys, "crossplay", stored_run, "--tasks", 0)
