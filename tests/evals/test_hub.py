from __future__ import annotations

import json

import yaml

from azr_population.evals.hub import write_eval_results
from azr_population.runs import RunDirectory


def test_a_member_s_whole_benchmarks_are_eval_results(tmp_path):
    about = {"prompt": "cot", "max_tokens": 1024, "data": "AZR a82124e (9f098df7ff45)"}
    benchmarks = [
        {"name": "gsm8k", "title": "GSM8K", "limit": None, **about},
        {"name": "math500", "title": "MATH-500", "limit": 20, **about},
    ]
    cells = {"GSM8K": {"value": 0.12345}, "MATH-500": {"value": 0.5}}
    lines = [{"model": "student_0", "k": 1, "role": "model", "cells": cells}]
    figures = {"benchmarks": benchmarks, "lines": lines, "temperature": 0.0}
    (tmp_path / "run/evaluation").mkdir(parents=True)
    (tmp_path / "run/evaluation/figures.json").write_text(json.dumps(figures))
    run = RunDirectory(tmp_path / "run")
    write_eval_results(run, "student_0", tmp_path)
    (file,) = (tmp_path / ".eval_results").iterdir()
    (entry,) = yaml.safe_load(file.read_text())
    assert (file.name, entry["value"]) == ("gsm8k.yaml", 12.35)
    assert entry["dataset"] == {"id": "openai/gsm8k", "task_id": "gsm8k"}
    write_eval_results(run, "student_1", tmp_path / "other")
    assert not (tmp_path / "other").exists()
