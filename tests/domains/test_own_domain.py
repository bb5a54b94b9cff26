"""A domain from a file outside the package, through a real run, its records and its pages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from azr_population.cli import main
from azr_population.domains.known import find_domain
from azr_population.errors import UserError

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_a_domain_of_ones_own_is_played_recorded_and_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    run = tmp_path / "sums"
    settings = ["population=1t1s", "population.rows=24", "run.steps=2", f"run.dir={run}"]
    own = ["task.domain=arithmetic.Arithmetic", "base.format=sums", "exam.tasks_per_type=4"]
    assert main(["train", *settings, *own]) == 0
    tasks = [json.loads(line) for line in (run / "tasks.jsonl").read_text().splitlines()]
    assert tasks, "the base completes such programs"
    for task in tasks:
        assert task["type"] == "calculate" and task["outputs"] == [str(eval(task["program"]))]
        assert task["digits"] == sum(char.isdigit() for char in task["program"])
        assert set(task["reasons"]) <= {"solved", "wrong", "unparsable"}
    steps = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    teacher, exam = steps[0]["roles"]["teacher"], steps[0]["exam"]
    assert set(steps[0]["types"]) == {"calculate"} and "ast_nodes" not in teacher
    assert teacher["digits"] > 1 and exam["types"]["calculate"] > 0
    page = (run / "report.html").read_text()
    assert "find the value" in page and '"Digits"' in page
    assert "digits" in page and "AST nodes" not in page.split("<main")[-1].split("<script")[0]
    capsys.readouterr()
    assert main(["show", str(run), "--valid", "--type", "calculate", "--limit", "1"]) == 0
    assert "proposes calculate" in capsys.readouterr().out
    assert main(["show", str(run), "--type", "code_o"]) != 0


def test_what_is_no_domain_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    with pytest.raises(UserError, match=r"task\.domain=arithmetic\.Sums is no domain"):
        find_domain("arithmetic.Sums")
    with pytest.raises(UserError, match=r"task\.domain=cod is unknown \(did you mean code\?\)"):
        find_domain("cod")
    with pytest.raises(UserError, match=r"task\.types=code_o is unknown; choose from calculate"):
        find_domain("arithmetic.Arithmetic").wanted(["code_o"])
