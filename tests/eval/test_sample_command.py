"""`azr-population sample` on the nano base."""

import json
import re
import shutil

import pytest
from made_up_problems import adapter
from refusals import refused

from azr_population.bases.nano import nano_base_path
from azr_population.cli import main

BASE = nano_base_path()


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run's folder with two members: one that changes nothing and one that changes much."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "config.yaml").write_text("seed: 1\n")
    adapter(folder / "members" / "teacher_0", scale=0.0)
    adapter(folder / "members" / "student_0", seed=2)
    return folder


def played(capsys, *arguments):
    assert main(["sample", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def records(capsys, *arguments):
    return [json.loads(text) for text in played(capsys, *arguments, "--json").splitlines()]


def test_a_proposal_comes_with_its_verdict_and_what_it_gives(run, capsys):
    ask = [run, "teacher_0", "--propose", "code_o", "--samples", 12]
    rows = records(capsys, *ask)
    assert len(rows) == 12 and {row["type"] for row in rows} == {"code_o"}
    valid = [row for row in rows if row["verdict"] == "valid"]
    assert len(valid) > 4 and all("<in>" in row["completion"] for row in valid)
    assert all(re.fullmatch(r"f\(.*\) -> .+", row["outputs"][0]) for row in valid)
    assert rows == records(capsys, *ask) != records(capsys, *ask, "--seed", 2)
    text = played(capsys, *ask)
    assert "teacher_0 proposes code_o" in text and "\n    f(" in text


def test_members_differ_and_a_fresh_one_is_the_base(run, capsys):
    words = {
        name: [row["completion"] for row in records(capsys, run, name, "--prompt", "<PO>")]
        for name in ("teacher_0", "student_0", "base")
    }
    assert words["teacher_0"] == words["base"] != words["student_0"]
    assert words["base"] == [
        row["completion"] for row in records(capsys, BASE, "--propose", "code_o")
    ]


def test_a_task_of_ones_own_is_graded(run, capsys, tmp_path):
    program = tmp_path / "program.py"
    source = "def f(x):\n    k = x[::-1]\n    return k"
    program.write_text(source + "\n")
    solve = ["--solve", program, "--input", "[7, 8, 9]", "--temperature", 0]
    (row,) = records(capsys, run, "teacher_0", *solve)
    assert row["prompt"] == f"<SO>{source}<in>[7, 8, 9]<out>"
    assert (row["verdict"], row["completion"]) == ("solved", "k=[9, 8, 7]\n[9, 8, 7]")
    (row,) = records(capsys, run, "student_0", *solve, "--max-tokens", 9)
    assert (row["verdict"], row["right"]) == ("failed", "[9, 8, 7]") and row["tokens"] <= 9
    text = played(capsys, run, "teacher_0", *solve, "--type", "code_i")
    assert "<SI>" in text and "solves code_i" in text


def test_a_base_is_asked_as_its_warm_up_says(capsys, tmp_path):
    base = shutil.copytree(BASE, tmp_path / "base")
    for format in ("azr", "nano"):
        (base / "warmup.json").write_text(json.dumps({"settings": {"format": format}}))
        if format == "azr":
            assert "warmup.json" in refused(capsys, "sample", base, "--propose", "code_o")
    assert records(capsys, base, "--propose", "code_o")


def test_what_cannot_be_played_is_told_in_one_line(run, capsys, tmp_path):
    message = refused(capsys, "sample", run, "techer_0", "--prompt", "x")
    assert "techer_0" in message and "teacher_0" in message
    assert "student_0" in refused(capsys, "sample", run, "--prompt", "x")
    assert "--propose" in refused(capsys, "sample", run, "teacher_0")
    bogus = refused(capsys, "sample", run, "teacher_0", "--propose", "bogus")
    assert "--propose bogus is unknown" in bogus
    assert str(tmp_path / "none") in refused(
        capsys, "sample", tmp_path / "none", "x", "--prompt", "x"
    )
    long = refused(capsys, "sample", run, "teacher_0", "--prompt", "a b " * 600)
    assert "teacher_0" in long and "511" in long
    assert "--samples" in refused(capsys, "sample", run, "teacher_0", "--samples", 0)
    assert "--propose" in refused(
        capsys, "sample", run, "x", "--propose", "code_o", "--prompt", "x"
    )
    assert "no.py" in refused(capsys, "sample", run, "teacher_0", "--solve", tmp_path / "no.py")
    assert "511" in refused(capsys, "sample", run, "teacher_0", "--prompt", "")
