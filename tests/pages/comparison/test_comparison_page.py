from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from made_up_run import make_run, write_run

from azr_population import cli
from azr_population.errors import UserError
from azr_population.pages.comparison.compared import compare
from azr_population.pages.comparison.comparison_page import write_comparison
from azr_population.pages.comparison.differences import differences
from azr_population.pages.comparison.fairness import fairness
from azr_population.pages.comparison.inputs import arms_of
from azr_population.pages.comparison.verdict_html import number
from azr_population.runs.diagnostics import consumption
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


def test_the_verdict_comes_first_and_says_what_else_differs(arms: Path) -> None:
    out = write_comparison(compare([str(arms / "single"), str(arms / "4t4s")]), arms / "ab.html")
    page = out.read_text(encoding="utf-8")
    drawn = page.index('<table class="forest">')
    told = page.index("<b>4t4s</b> against single at step 8:</p>")
    differs = page.index("Different base model: base (nano, other).")
    head = page.index("</header>")
    assert page.index("<h1>4t4s against single</h1>") < drawn < differs < head < told
    assert head < page.index("Who is compared") < page.index("Measure by measure")
    assert '<a href="#differences">' in page[:head]
    assert "Members trained on equally many rows a step on average, to within 0.0%." in page
    assert "8.0 times as many in 4t4s as in single" in page
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
    told = capsys.readouterr().out
    assert told.startswith("stock against ours at step 2\n") and f"page: {out}\n" in told
    assert " 60.0%  +" in told and "note: Not all runs have the same steps" in told
    page = out.read_text(encoding="utf-8")
    assert "stock AZR log" in page
    assert "Rows per member cannot be compared: stock did not record them." in page
    assert "verdicts and budgets are taken at step 2" in page
    assert "not the same measure: no verdict: one seed (n=1 and 3)" in page
    assert "tasks drawn from AZR&#39;s buffer" in page
    assert "include testing and checkpoints" in page
    assert cli.main(["compare", f"a={log}", f"b={log}", "--out", str(out)]) == 0
    assert "measure otherwise" not in out.read_text(encoding="utf-8")
    assert cli.main(["compare", str(arms / "4t4s")]) == 2
    assert "needs two arms" in capsys.readouterr().err


def test_names_cannot_become_elements(arms: Path) -> None:
    bad = "<script>alert(1)</script>"
    one, other = str(arms / "single"), str(arms / "4t4s")
    out = write_comparison(compare([f"{bad}={one}", f"'\"><img={other}"]), arms / "x.html")
    page = out.read_text(encoding="utf-8")
    assert "<script>alert" not in page
    assert "<img" not in page
    assert "against &lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_runs_without_a_step_or_a_task_have_a_page(tmp_path: Path) -> None:
    write_run(tmp_path / "a", {})
    write_run(tmp_path / "b", {"metrics": [{"step": 1}], "tasks": [{}]})
    out = write_comparison(compare([str(tmp_path / "a"), str(tmp_path / "b")]), tmp_path / "c.html")
    page = out.read_text(encoding="utf-8")
    assert "Nothing to compare is recorded yet." in page
    assert "a, a: 0 of 12 steps are recorded" in page


def test_a_place_that_cannot_be_written_is_told(arms: Path) -> None:
    with pytest.raises(UserError, match=r"--out .*cannot be written"):
        write_comparison(
            compare([str(arms / "single"), str(arms / "4t4s")]), arms / "no" / "x.html"
        )


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


def test_a_verdict_has_its_interval(arms: Path) -> None:
    out = write_comparison(compare([str(arms / "single"), str(arms / "4t4s")]), arms / "ab.html")
    page = out.read_text(encoding="utf-8")
    drawn = page.partition("</header>")[0].count('class="interval"')
    assert drawn == len(
        json.loads(page.partition('id="data">')[2].partition("</script>")[0])["verdicts"]
    )
    told = re.findall(r"<b>(?:Higher|Lower)</b>(.*?)</li>", page)
    measures = [part for words in told for part in words.split("; ")]
    assert measures
    for measure in measures:
        assert re.search(r"\([+-][\d.]+( points)? \[[+-][\d.]+, [+-][\d.]+\]\)$", measure), measure


def test_one_seed_is_told_and_draws_nothing(arms: Path) -> None:
    names = [str(arms / arm / "seed_1") for arm in ("single", "4t4s")]
    page = write_comparison(compare(names), arms / "one.html").read_text(encoding="utf-8")
    assert "no verdict, because an interval needs at least two seeds of each arm." in page
    assert "differences may all be chance" in page and "In brackets" not in page
    assert '<th scope="col" class="number">verdict</th>' not in page
    assert "its interval, from zero" not in page and 'class="interval"' not in page
    data = json.loads(page.partition('id="data">')[2].partition("</script>")[0])
    assert all(cell is None for row in data["verdicts"] for cell in row["intervals"])
    assert not any(
        len(point) > 2
        for chart in data["charts"]
        for line in chart["lines"]
        for point in line["points"]
    )
    assert "An arm with a single seed has no mean and no band." in page


def test_rows_and_panels_that_mean_the_same_share_a_scale(arms: Path) -> None:
    out = write_comparison(compare([str(arms / "single"), str(arms / "4t4s")]), arms / "ab.html")
    page = out.read_text(encoding="utf-8")
    data = json.loads(page.partition('id="data">')[2].partition("</script>")[0])
    scales = [row["scale"] for row in data["verdicts"]]
    assert scales[:4] == ["exam", "exam", "solve_rate", "solve_rate"]
    assert [c["title"] for c in data["charts"] if c.get("scale") == "exam"] == [
        "Exam, mean of the members"
    ]
    assert "Exam, best member: " in str(data["constant"]), "nothing moves in it: no chart"


def test_read_from_shows_the_folder(arms: Path) -> None:
    runs = [str(arms / "single"), f"4t4s={arms / '4t4s' / 'seed_1'}"]
    page = write_comparison(compare(runs), arms / "ab.html").read_text(encoding="utf-8")
    assert f"<td>{arms / 'single'}: seed_1, seed_2, seed_3</td>" in page
    assert f"<td>{arms / '4t4s' / 'seed_1'}</td>" in page


def test_numbers_have_no_negative_zero() -> None:
    assert [number(value, signed=True) for value in (-0.004, 0.0, -12.04)] == [
        *("+0.00", "+0.00", "-12.0"),
    ]


def test_arms_have_the_dashes_of_their_lines(arms: Path) -> None:
    three = [f"{name}={arms / '4t4s'}" for name in "ab"] + [f"c={arms / 'single'}"]
    page = write_comparison(compare(three), arms / "abc.html").read_text(encoding="utf-8")
    who = page[: page.index("<h2>What differs")]
    assert re.findall(r'class="line-(\d)" stroke-dasharray="([\d ]*)"', who) == [
        *[("0", ""), ("1", "7 3"), ("2", "2 3")]
    ]
