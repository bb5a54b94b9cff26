from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from azr_population.errors import UserError
from azr_population.experiments import evaluations
from azr_population.experiments.recipe import Recipe

RECIPE = Recipe("t", "T", "Table 1", "-", evaluation={"nano": "--benchmarks gsm8k --limit 2"})
RUNS = [
    SimpleNamespace(path=Path("runs/a/seed_1"), finished=True, is_kept=False),
    SimpleNamespace(path=Path("runs/b/seed_1"), finished=True, is_kept=True),
    SimpleNamespace(path=Path("runs/c/seed_1"), finished=False, is_kept=False),
]


@pytest.fixture
def called(monkeypatch):
    calls = []

    def run(command, check):
        calls.append(command[3:])
        return SimpleNamespace(returncode=int("bad" in str(command)))

    monkeypatch.setattr(evaluations.subprocess, "run", run)
    return calls


def test_the_runs_whose_members_are_there_are_evaluated(called, monkeypatch):
    said = []
    monkeypatch.delenv(evaluations.DATA, raising=False)
    evaluations.evaluate(RECIPE, "nano", RUNS, Path("out"), said.append)
    assert not called and "BENCHMARK_DATA names no folder" in said[0]
    monkeypatch.setenv(evaluations.DATA, "data")
    evaluations.evaluate(RECIPE, "7b", RUNS, Path("out"), said.append)
    evaluations.evaluate(RECIPE, "nano", RUNS[1:], Path("out"), said.append)
    assert not called
    evaluations.evaluate(RECIPE, "nano", RUNS, Path("out"), said.append)
    options = ["--benchmarks", "gsm8k", "--limit", "2", "--out", "out/benchmarks.md"]
    assert called == [["evaluate", "runs/a/seed_1", *options, "--data", "data"]]
    monkeypatch.setenv(evaluations.DATA, "bad")
    with pytest.raises(UserError, match="the evaluation of t failed"):
        evaluations.evaluate(RECIPE, "nano", RUNS, Path("out"), said.append)
