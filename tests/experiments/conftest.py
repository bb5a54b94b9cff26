"""Runs that were never played: a configuration and made-up metrics."""

from functools import lru_cache

import pytest

from azr_population.config.load import load_config, to_yaml
from azr_population.experiments.arms import Arm, Arms, Scale
from azr_population.experiments.recipe import Recipe
from azr_population.hosts.local.check import fill_in
from azr_population.runs import RunDirectory


def _line(step, solve_rate, exam=None, seconds=2.0, members=("agent_0",)):
    """A line of metrics.jsonl with what the recipes read."""
    own = {
        "role": "agent",
        "solve_rate": solve_rate,
        "tokens": 100,
        "rollouts": 10,
        "trained_tokens": 50,
        "trained_rows": 48,
        "updates": 1.0,
    }
    return {
        "step": step,
        "seconds": seconds,
        "phases": {"propose": seconds / 2, "update": seconds / 4},
        "roles": {"agent": own},
        "members": {name: own for name in members},
        "exam": None
        if exam is None
        else {"mean": exam, "best": exam, "worst": exam, "strata": {"core": exam / 2}},
    }


@lru_cache
def _composed(overrides):
    """As a run writes it."""
    config = load_config(overrides)
    fill_in(config)
    return to_yaml(config)


@pytest.fixture
def metrics():
    """Makes lines of metrics.jsonl."""
    return _line


@pytest.fixture
def fake_run():
    """Makes a run directory of `overrides` with the given lines of metrics."""

    def make(path, overrides, lines):
        directory = RunDirectory(path)
        directory.create(_composed(tuple(overrides)), {})
        directory.append("metrics", lines)
        return directory

    return make


@pytest.fixture
def arms():
    """Two arms at nano scale, one of which AZR cannot express."""
    one = Arm("one", "one", ("population=single",), ("+population=single",), seconds=1.0)
    two = Arm("two", "two", ("population=single", "population.rows=24"), None, seconds=2.0)
    scales = {
        "nano": Scale(4, 2, ("exam.attempts=2",)),
        "7b": Scale(200, 1, ("trainer.n_gpus_per_node=8",), "bash scripts/run.sh"),
    }
    return Arms(scales, {"one": one, "two": two})


@pytest.fixture
def recipe():
    return Recipe("test", "A title", "Fig 0", "something.", arms=("one", "two"))
