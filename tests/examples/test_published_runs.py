"""The runs of examples/runs are small, tell of no machine, and reading commands take them."""

import subprocess
from pathlib import Path

import pytest

from azr_population.cli import main
from azr_population.eval.members import find_members, plan_of
from azr_population.reading.run_data import RunData

ROOT = Path(__file__).parents[2]
RUNS = ROOT / "examples" / "runs"


def test_they_are_small_and_tell_of_no_machine():
    listed = subprocess.run(["git", "ls-files", "."], cwd=RUNS, capture_output=True, text=True)
    files = [RUNS / name for name in listed.stdout.splitlines()]
    assert files and sum(file.stat().st_size for file in files) < 2_000_000
    for file in files:
        assert not any(word in file.read_bytes() for word in (b"/tmp/", b"/home/", b"/root/"))


@pytest.mark.parametrize("name", ["4t4s", "1t1s"])
def test_what_they_have(name):
    run = RunData(RUNS / name)
    members = {path.name for path in (RUNS / name / "members").iterdir()}
    assert run.last == 20 and members == {*run.roles, "best"}
    completions = list(run.read("completions"))
    assert {row["phase"] for row in completions} == {"propose", "solve"}
    # As for eval, sample and crossplay, which refuse a setting that they do not know.
    assert plan_of(find_members(RUNS / name)).config.population.name == name


@pytest.mark.parametrize(
    "words",
    [
        ["report", RUNS / "4t4s", "--out", "report.html"],
        ["show", RUNS / "4t4s", "--verdict", "solved", "--limit", "1"],
        ["compare", RUNS / "1t1s", RUNS / "4t4s"],
        ["export", RUNS / "4t4s", "--to", "jsonl", "--out", "tasks"],
    ],
)
def test_reading_commands_take_them(words, capsys):
    assert main([str(word) for word in words]) == 0
    assert capsys.readouterr().out.strip()
