"""The gate of the nano base: what it counts, and both arms on a small scale."""

from concurrent.futures import ThreadPoolExecutor

import pandas as pd
import pytest
import training_check as module
from training_check import print_training_check, training_check

from azr_population.bases.nano import nano_base_path


def gained(arm, *tail):
    rows = [
        (arm, seed, *scores)
        for seed, gain in enumerate(tail)
        for scores in (("whole", 0.3, 0.34), ("tail", 0.2, 0.2 + gain), ("core", 0.4, 0.39))
    ]
    return pd.DataFrame(rows, columns=["arm", "seed", "part", "before", "after"])


def test_gains_are_over_seeds_and_the_least_of_them_is_wanted(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    supervised, rewards = (gained(arm, 0.05, 0.07, 0.09) for arm in ("supervised", "rewards"))
    assert print_training_check(rewards)
    assert not print_training_check(pd.concat([supervised, rewards]))
    output = capsys.readouterr().out
    assert "+7.0 points [+2.0, +12.0]" in output and "target +15" in output and "-1.0" in output


def test_right_answers_teach_in_the_first_step(monkeypatch):
    pool = lambda jobs, context: ThreadPoolExecutor(jobs)  # noqa: E731
    monkeypatch.setattr(module, "ProcessPoolExecutor", pool)
    scores = training_check(nano_base_path(), steps=1, seeds=(1,), tasks=12)
    assert (scores.groupby("part")["before"].nunique() == 1).all()
    assert scores["after"].between(0, 1).all()


@pytest.mark.slow
def test_both_arms_start_from_the_bare_base_and_learn():
    scores = training_check(nano_base_path(), steps=2, seeds=(1, 2), tasks=12)
    assert (scores.groupby("part")["before"].nunique() == 1).all()
    assert set(scores["part"]) >= {"whole", "tail", "core"}
    assert len(scores[scores["part"] == "tail"]) == 4
