from __future__ import annotations

import json
from pathlib import Path

import pytest
from made_up_run import make_run, write_run

from azr_population import cli
from azr_population.errors import UserError
from azr_population.pages.comparison.compared import Compared, compare

LOG = """\
step:0 - val/test_score/pred_code_o:0.125
step:1 - pred_code_o/accuracy:0.5 - gen_code_o/format_score:0.5
step:2 - pred_code_o/accuracy:0.25 - gen_code_o/format_score:0.5
step:3 - val/test_score/pred_code_o:0.25
"""


def figures(value: float, samples: int = 1) -> str:
    cell = {"value": value, "low": 0.0, "high": 1.0, "problems": 10}
    lines = [
        {"model": model, "role": role, "k": 1, "cells": {"GSM8K": {**cell, "value": share}}}
        for model, role, share in (("base", "base", 0.0), ("x", "student", value))
    ]
    return json.dumps({"samples": samples, "temperature": 0, "lines": lines})


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stock log and a run of ours, both validated before the first step and after the second."""
    (tmp_path / "azr.log").write_text(LOG)
    rows = [
        {"step": step, "member": "student_0", "shares": {"pred_code_o": share}}
        for step, share in ((0, 0.125), (2, 0.25), (2, 0.5))
    ]
    write_run(tmp_path / "ours", {**make_run(steps=2), "validations": rows}, steps=2)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def words(compared: Compared) -> dict[str, str]:
    return {row.taken.title: row.words[1] for row in compared.rows}


def test_azrs_validation_leads_and_is_read_from_both_sides(runs: Path) -> None:
    found = compare(["stock=azr.log", "ours"])
    end, gain = found.rows[:2]
    assert (end.taken.title, gain.taken.title) == (
        "AZR's validation, at the end",
        "AZR's validation, gain since the first",
    )
    assert [estimate.mean for estimate in end.values] == [0.25, 0.5]
    assert [estimate.mean for estimate in gain.values] == [0.125, 0.375]
    assert end.words[1].startswith("no verdict: one seed")
    assert "AZR's validation, at the end" in found.lines()[2]
    assert found.lines()[2].split()[5:9] == ["25.0%", "50.0%", "+25.0", "points"]


def test_other_validation_tasks_are_not_the_same_measure(runs: Path) -> None:
    (runs / "azr.log").write_text(LOG.replace("score/pred_code_o", "score/math"))
    told = words(compare(["stock=azr.log", "ours"]))
    assert told["AZR's validation, at the end"].startswith("not the same measure")


def test_what_a_side_lacks_is_told_in_two_words(runs: Path) -> None:
    # The made-up run has an exam after its fourth step.
    write_run(runs / "longer", make_run(steps=4), steps=4)
    (runs / "azr.log").write_text(LOG.replace("step:2", "step:4").replace("step:3", "step:5"))
    found = words(compare(["longer", "stock=azr.log"]))
    assert found["Exam, mean of the members, at the end"] == "no exam"
    assert found["AST nodes, change"] == "counted otherwise"
    assert found["Lines of code, change"] == "not logged"
    assert found["Kinds per equal number of tasks"] == "no tasks"
    write_run(runs / "local", make_run(steps=2), steps=2)
    assert words(compare(["local", "ours"]))["AZR's validation, at the end"] == "no validation"
    (runs / "azr.log").write_text(LOG.replace("val/", "was/"))
    assert words(compare(["ours", "s=azr.log"]))["AZR's validation, at the end"] == "not validated"


def test_tables_of_evaluate_are_skill_too(runs: Path) -> None:
    (runs / "ours/evaluation").mkdir()
    (runs / "ours/evaluation/figures.json").write_text(figures(0.5))
    (runs / "stock.json").write_text(figures(0.25))
    found = compare(["stock=azr.log", "stock=stock.json", "ours"])
    (row,) = [row for row in found.rows if row.taken.measure.name == "benchmarks"]
    assert [estimate.mean for estimate in row.values] == [0.25, 0.5]
    assert words(compare(["stock=azr.log", "ours"]))[row.taken.title] == "not evaluated"
    (runs / "stock.json").write_text(figures(0.25, samples=4))
    other = words(compare(["stock=stock.json", "ours"]))
    assert other[row.taken.title].startswith("not the same measure")
    assert other["AZR's validation, at the end"] == "only evaluated"
    with pytest.raises(UserError, match="stock has 1 runs and 2 tables of evaluate"):
        (runs / "more.json").write_text(figures(0.5))
        compare(["stock=azr.log", "stock=stock.json", "stock=more.json", "ours"])


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("x.log", "step:1 - train/loss:0.5\n", "nothing that AZR logs .*: train/loss"),
        ("x.csv", "_step,loss\n1,0.5\n", "nothing that AZR logs"),
        ("x.json", '{"a": 1}', "holds no step of an AZR run"),
        ("folder/config.yaml", "model: {path: x}\n", "its config.yaml has no settings of a run"),
    ],
)
def test_what_is_none_of_the_known_kinds_is_refused(
    runs: Path, name: str, content: str, why: str
) -> None:
    (runs / "folder").mkdir()
    (runs / name).write_text(content)
    with pytest.raises(UserError, match=why):
        compare(["ours", name.partition("/")[0]])


def test_the_verdicts_for_scripts(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["compare", "stock=azr.log", "ours", "--json", "--out", "page.html"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [(arm["name"], arm["runs"][0]["kind"]) for arm in told["arms"]] == [
        ("stock", "stock AZR log"),
        ("ours", "our run"),
    ]
    first = told["measures"][0]
    assert (first["measure"], first["take"], first["better"]) == ("validation", "end", "higher")
    assert first["arms"]["ours"]["difference"] == {"mean": 0.25, "low": None, "high": None, "n": 1}
    assert told["page"] == "page.html" and (runs / "page.html").is_file()
