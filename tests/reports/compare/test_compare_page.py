from __future__ import annotations

import re
from pathlib import Path

import pytest
from made_up_run import make_run, write_run

from azr_population import cli
from azr_population.errors import UserError
from azr_population.reports.compare.page import write_comparison

CONFIG = "seed: {seed}\nbase: {{name: {base}}}\npopulation: {{rows: 48}}\nrun: {{steps: 8}}\n"


@pytest.fixture
def arms(tmp_path: Path) -> Path:
    for arm, members, base in (("single", 0, "nano"), ("4t4s", 4, "other")):
        for seed in (1, 2, 3):
            run = make_run(steps=8, teachers=members, students=members, seed=seed)
            config = CONFIG.format(seed=seed, base=base)
            write_run(tmp_path / arm / f"seed_{seed}", run, config=config)
    return tmp_path


def test_what_differs_stands_before_any_figure(arms: Path) -> None:
    out = write_comparison([str(arms / "single"), str(arms / "4t4s")], arms / "ab.html")
    page = out.read_text(encoding="utf-8")
    differs = page.index("Different base model: base (nano, other).")
    assert differs < page.index("<h2>Verdicts</h2>") < page.index('data-charts="skill"')
    assert differs < page.index("Was it fair?")
    assert "Members trained on equally many rows a step on average, to within 0.0%." in page
    assert "of 4t4s 8.0 times as many as those of single" in page
    assert "at equal rows a student has solved more" in page
    assert "no difference shown (n=3)" in page
    assert not re.search(r"@import|url\(|fetch\(|import\(|<link|<img|unsafe", page)


def test_the_command_takes_a_stock_log_beside_a_run(
    arms: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = arms / "azr.log"
    log.write_text("step:1 - pred_code_i/accuracy:0.5\nstep:2 - pred_code_i/accuracy:0.6\n")
    out = arms / "page.html"
    assert cli.main(["compare", f"ours={arms / '4t4s'}", f"stock={log}", "--out", str(out)]) == 0
    assert capsys.readouterr().out.strip() == str(out)
    page = out.read_text(encoding="utf-8")
    assert "stock AZR log" in page
    assert "Rows per member cannot be compared: stock did not record them." in page
    assert "verdicts are taken at step 2" in page
    assert cli.main(["compare", str(arms / "4t4s")]) == 2
    assert "needs two arms" in capsys.readouterr().err


def test_names_cannot_become_elements(arms: Path) -> None:
    bad = "<script>alert(1)</script>"
    one, other = str(arms / "single"), str(arms / "4t4s")
    out = write_comparison([f"{bad}={one}", f"'\"><img={other}"], arms / "x.html")
    page = out.read_text(encoding="utf-8")
    assert "<script>alert" not in page
    assert "<img" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt; against" in page


def test_runs_without_a_step_or_a_task_have_a_page(tmp_path: Path) -> None:
    write_run(tmp_path / "a", {})
    write_run(tmp_path / "b", {"metrics": [{"step": 1}], "tasks": [{}]})
    out = write_comparison([str(tmp_path / "a"), str(tmp_path / "b")], tmp_path / "c.html")
    page = out.read_text(encoding="utf-8")
    assert "Nothing to compare is recorded yet." in page
    assert "a, a: 0 of 12 steps are recorded" in page


def test_a_place_that_cannot_be_written_is_told(arms: Path) -> None:
    with pytest.raises(UserError, match=r"--out .*cannot be written"):
        write_comparison([str(arms / "single"), str(arms / "4t4s")], arms / "no" / "x.html")
