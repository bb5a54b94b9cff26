"""The gate of the nano base: what it counts, and both arms on a small scale."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from azr_population.bases.nano import nano_base_path
from azr_population.measuring import training_check as module
from azr_population.measuring.training_check import (
    TARGETS,
    Gains,
    print_training_check,
    training_check,
)

BASE = {"whole": 0.3, "tail": 0.2, "core": 0.4}


def gained(*tail):
    return Gains(BASE, tuple({"whole": 0.34, "tail": 0.2 + gain, "core": 0.39} for gain in tail))


def test_gains_are_over_seeds_and_the_least_of_them_is_wanted(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    gains = gained(0.05, 0.07, 0.09)
    estimate = gains.gain("tail")
    assert estimate.mean == pytest.approx(0.07) and estimate.low < 0.05 < 0.09 < estimate.high
    assert gains.missed(TARGETS["rewards"]) == [] and gains.missed(TARGETS["supervised"]) == [
        "tail"
    ]
    assert print_training_check({"rewards": gains})
    assert not print_training_check({"supervised": gains, "rewards": gains})
    output = capsys.readouterr().out
    assert "+7.0" in output and "target +15" in output and "-1.0" in output


def test_right_answers_teach_in_the_first_step(monkeypatch):
    pool = lambda jobs, context: ThreadPoolExecutor(jobs)  # noqa: E731
    monkeypatch.setattr(module, "ProcessPoolExecutor", pool)
    gains = training_check(nano_base_path(), steps=1, seeds=(1,), tasks=12)
    assert gains["supervised"].before == gains["rewards"].before
    assert all(0 <= value <= 1 for g in gains.values() for value in g.after[0].values())


@pytest.mark.slow
def test_both_arms_start_from_the_bare_base_and_learn():
    gains = training_check(nano_base_path(), steps=2, seeds=(1, 2), tasks=12)
    supervised, rewards = gains["supervised"], gains["rewards"]
    assert supervised.before == rewards.before and set(supervised.before) >= {
        "whole",
        "tail",
        "core",
    }
    assert len(supervised.after) == len(rewards.after) == 2
