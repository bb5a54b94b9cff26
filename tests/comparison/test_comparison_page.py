from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from made_up_run import make_run, write_run

from azr_population import cli
from azr_population.comparison.comparison_page import _number, write_comparison
from azr_population.comparison.differences import differences
from azr_population.comparison.fairness import fairness
from azr_population.comparison.inputs import arms_of
from azr_population.diagnostics import consumption
from azr_population.errors import UserError
from azr_population.runs.directory import RunDirectory

CONFIG = """\
seed: {seed}
base: {{name: {base}}}
population: {{rows: 48, students: {students}}}
run: {{steps: 8}}
"""


@pytest.fixture
def arms(tmp_path: Path) -> Path:
    for arm, members, base in (("single", 0, "nano"), ("4t4s", 4, "other")):
        for seed in (1, 2, 3):
            run = make_run(steps=8, teachers=members, students=members, seed=seed)
            config = CONFIG.format(seed=seed, base=base, students=members)
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
    assert "verdicts and budgets are taken at step 2" in page
    assert "not the same measure: no verdict: one seed (n=1 and 3)" in page
    assert "tasks drawn from AZR&#x27;s buffer" in page
    assert "include testing and checkpoints" in page
    assert cli.main(["compare", f"a={log}", f"b={log}", "--out", str(out)]) == 0
    assert "measure otherwise" not in out.read_text(encoding="utf-8")
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


def test_a_budget_is_counted_as_far_as_verdicts_go(tmp_path: Path) -> None:
    for name, recorded in (("a", 20), ("b", 12)):
        write_run(tmp_path / name, make_run(steps=recorded), steps=20)
    arms = arms_of([str(tmp_path / name) for name in "ab"])
    page = fairness(arms, 12)
    assert "steps counted</th>" in page
    assert set(re.findall(r"×[\d.]+", page)) == {"×1.00"}  # noqa: RUF001
    assert "planned budget (rows per member, attempts, steps)" in differences(arms).same


def test_kept_runs_tell_that_a_student_solves_more(arms: Path) -> None:
    for arm in ("single", "4t4s"):
        totals = consumption(RunDirectory(arms / arm / "seed_1"))["all"]
        (arms / arm / "seed_1" / "curves.json").write_text(
            json.dumps({"commit": None, "steps": 8, "totals": totals, "curves": {}})
        )
    kept = arms_of([str(arms / arm / "seed_1") for arm in ("single", "4t4s")])
    assert "at equal rows a student has solved more" in fairness(kept, 8)


def test_numbers_have_no_negative_zero() -> None:
    assert [_number(value, signed=True) for value in (-0.004, 0.0, -12.04)] == [
        *("+0.00", "+0.00", "-12.0"),
    ]


def test_arms_have_the_dashes_of_their_lines(arms: Path) -> None:
    three = [f"{name}={arms / '4t4s'}" for name in "ab"] + [f"c={arms / 'single'}"]
    page = write_comparison(three, arms / "abc.html").read_text(encoding="utf-8")
    who = page[: page.index("<h2>What differs")]
    assert re.findall(r'class="line-(\d)" stroke-dasharray="([\d ]*)"', who) == [
        *[("0", ""), ("1", "7 3"), ("2", "2 3")]
    ]
