from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest
from refusals import refuses

from azr_population.analysis import html
from azr_population.analysis.figures import run_figures
from azr_population.analysis.metrics import all_metrics
from azr_population.analysis.report import terminal_summary, write_report
from azr_population.reading.run_data import RunData
from azr_population.runs import RunDirectory


@pytest.fixture(autouse=True)
def small_bundle(monkeypatch):
    """Vega's script takes seconds to make; test_html.py looks at it."""
    monkeypatch.setattr(html, "bundle", lambda: "/* Vega */")


class Elements(HTMLParser):
    """What a parser makes of the page: tags with attributes, and all text."""

    def __init__(self, page):
        super().__init__()
        self.tags = []
        self.text = self.inside = ""
        self.scripts = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.inside = tag

    def handle_endtag(self, tag):
        self.inside = ""

    def handle_data(self, data):
        self.text += data
        if self.inside == "script":
            self.scripts.append(data)


def test_the_page_needs_nothing_else(write_run):
    run = write_run()
    path = write_report(run)
    page = path.read_text(encoding="utf-8")
    assert path == run / "report.html"
    elements = Elements(page)
    names = {name for _, attributes in elements.tags for name in attributes}
    assert not names & {"src", "srcset", "data", "action"}
    links = [attributes["href"] or "" for _, attributes in elements.tags if "href" in attributes]
    assert links and all(link.startswith("#") for link in links)
    assert "link" not in {tag for tag, _ in elements.tags}
    assert not re.search(r"@import|url\(|fetch\(|import\(", page)
    assert page.count("/* Vega */") == 1
    assert "12 of 12 steps" in page


def test_programs_cannot_become_elements(write_run, made_up_run):
    run = made_up_run()
    attack = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"' onload='"
    for match in run["matches"]:
        match["teacher"] = attack
    for child in run["lineage"]:
        child["operator"] = child["options"]["k"] = attack
    for step in run["metrics"]:
        step |= {f"{attack}/mu": 1.0, f"type/{attack}/valid_frac": 0.5, f"time/{attack}": 1.0}
        step |= {"student_0/generation": attack, f"reason/{attack}": 3}
    for task in run["tasks"]:
        task["answers"] = [attack, None]
        task["reasons"] = task["inputs"] = task["outputs"] = [attack]
        task["message"] = task["student"] = attack
    folder = write_run(run)
    (folder / "config.yaml").write_text(f"population: {{name: {json.dumps(attack)}}}\n")
    (folder / "environment.json").write_text(json.dumps({attack: attack}))
    elements = Elements(write_report(folder).read_text(encoding="utf-8"))
    names = [tag for tag, _ in elements.tags]
    inert = [
        a for tag, a in elements.tags if tag == "script" and a.get("type") == "application/json"
    ]
    assert names.count("script") == len(inert) + 2
    assert "img" not in names
    assert not [
        key for _, attributes in elements.tags for key in attributes if key.startswith("on")
    ]
    # They are there all the same, as text.
    assert "<img onerror=alert(1) src=x>" in elements.text
    assert attack in elements.text


def test_only_the_pages_own_scripts_may_run(write_run):
    elements = Elements(write_report(write_run()).read_text(encoding="utf-8"))
    (policy,) = [
        attributes["content"] or ""
        for tag, attributes in elements.tags
        if attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    hashes = [
        base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        for script in elements.scripts[-2:]
    ]
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes)
    assert f"script-src {allowed};" in policy and "default-src 'none'" in policy
    assert "eval" not in policy and policy.count("unsafe") == 1  # of styles


def test_the_data_is_strict_json_even_with_nan(write_run, made_up_run):
    run = made_up_run()
    for step in run["metrics"]:
        step |= {"teacher/reward": float("nan"), "student_1/mu": float("inf")}
        step["time/step"] = float("nan")
    run["matches"][0]["solve_rate"] = float("nan")
    run["lineage"][0]["fitness"]["victim"] = float("-inf")
    elements = Elements(write_report(write_run(run)).read_text(encoding="utf-8"))
    for data in elements.scripts[:-2]:
        json.loads(data, parse_constant=pytest.fail)
    assert len(elements.scripts) > 5


@pytest.mark.parametrize("missing", ["metrics", "matches", "lineage", "tasks", "environment"])
def test_whatever_is_missing_the_rest_is_shown(write_run, missing):
    run = write_run()
    for path in run.glob(f"{missing}.*"):
        path.unlink()
    page = write_report(run).read_text(encoding="utf-8")
    assert "config.yaml" in page


def test_the_page_may_be_written_elsewhere(write_run, tmp_path):
    run = write_run()
    assert write_report(run, tmp_path / "page.html").read_text().startswith("<!doctype html>")
    assert not (run / "report.html").exists()
    with refuses("--out"):
        write_report(run, tmp_path / "nowhere" / "page.html")


def test_a_run_without_a_valid_proposal_is_red_and_says_what_was_wrong(write_run, made_up_run):
    run = made_up_run(steps=2)
    for step in run["metrics"]:
        for key in [key for key in step if key.startswith("reason/")]:
            del step[key]
        step |= {"reason/unparsable": 3, "reason/no_function": 1}
    folder = write_run({**run, "tasks": []})
    page = write_report(folder).read_text(encoding="utf-8")
    assert 'class="status failed"' in page and page.count("6 unparsable") == 1
    assert "6 unparsable" in terminal_summary(folder)["wrong"]


@pytest.mark.parametrize("apart", [True, False])
def test_rates_that_evolve_are_shown_over_time(tmp_path, apart):
    run = RunDirectory(tmp_path / "run")
    run.create("seed: 1\n", {})
    rates = (1e-3, 1e-4 if apart else 1e-3)
    run.append(
        "metrics",
        [{"step": s, **{f"student_{i}/lr": v for i, v in enumerate(rates)}} for s in range(1, 5)],
    )
    figures, _ = run_figures(RunData(run.path).table, [*all_metrics().values()], [], 4)
    assert len(figures.get("training", [])) == apart


def test_a_metric_measured_twice_and_one_type_of_task_have_no_chart(tmp_path):
    run = RunDirectory(tmp_path / "run")
    run.create("seed: 1\n", {})
    steps: list[dict[str, float]] = [
        {"step": s, "student_0/solve_rate": s / 9, "type/code_o/solve_rate": s / 9}
        | ({"student/weight_cosine": -1e-5 if s == 1 else 0.7} if s in (1, 4) else {})
        for s in range(1, 5)
    ]
    run.append("metrics", steps)
    metrics = [*all_metrics().values()]
    figures, texts = run_figures(RunData(run.path).table, metrics, [], 4)
    assert not any("by task type" in figure for figure in figures.get("skill", []))
    (text,) = texts["standing"]
    assert text.startswith("Similarity of adapters (mean cosine")
    assert text.endswith(": student 0.000 to 0.700.")
    run.append("metrics", [{"step": 5, "type/code_o/solve_rate": 0.5, "type/code_i/solve_rate": 1}])
    figures, _ = run_figures(RunData(run.path).table, metrics, [], 5)
    assert any("Solve rate by task type" in figure for figure in figures["skill"])
