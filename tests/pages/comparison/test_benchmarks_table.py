from __future__ import annotations

import json

from azr_population.pages.comparison.benchmarks_table import benchmarks
from azr_population.pages.comparison.compared import compare
from azr_population.pages.comparison.comparison_page import write_comparison
from azr_population.pages.comparison.inputs import arms_of


def figures(model, value):
    cell = {"value": value, "low": value / 2, "high": 1.0, "problems": 10}
    line = {"model": model, "role": "base", "k": 1, "cells": {"GSM8K": cell}}
    return {"label": "run", "samples": 1, "temperature": 0, "lines": [line]}


def test_the_page_has_what_evaluations_left_in_the_runs(write_run, tmp_path):
    first = write_run()
    second = tmp_path / "other"
    first.rename(second)
    first = write_run()
    folder = second / "evaluation"
    folder.mkdir()
    assert benchmarks(arms_of([str(first), str(second)])) == ""
    (folder / "figures.json").write_text(json.dumps(figures("student_0<b>", 0.25)))
    page = write_comparison(compare([str(first), str(second)]), tmp_path / "page.html").read_text()
    assert "<h2>Benchmarks</h2>" in page
    assert "pass@1, greedy" in page
    assert "other: student_0&lt;b&gt;" in page
    assert "25.0<br><small>12.5 to 100.0</small>" in page


def test_a_damaged_file_is_left_out(write_run, tmp_path):
    first = write_run()
    (first / "evaluation").mkdir()
    for content in ("{half", "[]", '{"lines": [{"model": "x"}]}', '{"lines": 3}'):
        (first / "evaluation/figures.json").write_text(content)
        assert benchmarks(arms_of([f"a={first}", f"b={first}"])) == ""
