"""recipes/paper/fig6_children/operator_test: its table on made scores, and a miniature of it."""

import itertools
from io import StringIO
from random import Random
from types import SimpleNamespace

import pandas as pd
import pytest
from small_run import SMALL

from azr_population.cli.app import main
from azr_population.experiments.recipes import recipes_folder


@pytest.fixture
def operator_test(recipe_script):
    return recipe_script("paper/fig6_children/operator_test.py")


def made_scores(test, shifts, seeds=12, noise=0.004):
    draw = Random(3)
    rows = [
        (seed, arm, step, 0.3 + shifts.get(arm, 0.0) * (step > 0) + draw.gauss(0, noise))
        for seed, arm, step in itertools.product(range(seeds), test.ARMS, test.EVAL_STEPS)
    ]
    return pd.DataFrame(rows, columns=test.COLUMNS)


def test_only_what_lies_within_the_margin_is_equal(operator_test, tmp_path):
    scores = made_scores(operator_test, {"dare": -0.02, "layer_wise": 0.02, "linear_0_5": -0.03})
    table = operator_test.table(scores).set_index("arm")
    assert list(table.index[table["equal"]]) == [
        arm for arm in operator_test.ARMS[1:] if arm not in ("dare", "layer_wise", "linear_0_5")
    ]
    assert table.loc["dare", "at the end"] == pytest.approx(-2.0, abs=0.4)
    assert abs(table.loc["dare", "at birth"]) < 0.4
    assert table.loc["dare", "above linear_0_5 [95%]"].startswith(("1.", "0.9"))
    operator_test.draw(table.reset_index(), tmp_path / "a.svg")
    assert "6 of 8" in (tmp_path / "a.svg").read_text()


def test_equal_is_decided_by_the_interval_of_90_percent(operator_test):
    """Of 12 differences of 2.5 and -2.5 points: 1.35 by t(.95, 11), 1.66 by t(.975, 11)."""
    rows = [
        (seed, arm, step, 0.3 + 0.025 * (-1) ** seed * (arm == "dare"))
        for seed, arm, step in itertools.product(
            range(12), ("untouched", "dare"), operator_test.EVAL_STEPS
        )
    ]
    table = operator_test.table(pd.DataFrame(rows, columns=operator_test.COLUMNS))
    assert table["at the end, high"].tolist() == [pytest.approx(1.354, abs=1e-3)]
    assert table["equal"].all()


def test_fewer_seeds_decide_nothing(operator_test, tmp_path):
    scores = made_scores(operator_test, {})
    table = operator_test.table(scores[scores["seed"] < 11])
    assert not table["equal"].any()
    assert operator_test.draw(table, tmp_path / "a.svg").endswith("not decided, 11 of 12 seeds")
    # One arm less of the last seed, and a file of two arms.
    cut = scores[(scores["seed"] < 11) | (scores["arm"] != "dare")]
    assert set(operator_test.ARMS[1:]) - set(operator_test.table(cut).query("equal")["arm"]) == {
        "dare"
    }
    begun = operator_test.table(scores[scores["arm"].isin(["untouched", "dare"])])
    assert list(begun["arm"]) == ["dare"] and list(begun["above copy_parent [95%]"]) == [""]
    assert list(begun["above both copies [90%]"]) == [""]


def test_the_committed_table_is_that_of_the_committed_scores(operator_test):
    folder = recipes_folder() / "paper/fig6_children/results/operators"
    made = operator_test.table(pd.read_csv(folder / "scores.csv")).to_csv(index=False)
    committed = pd.read_csv(folder / "operators.csv")
    pd.testing.assert_frame_equal(pd.read_csv(StringIO(made)), committed, rtol=0, atol=1e-3)


def test_both_copies_of_the_parent_are_one_mean(operator_test):
    shifts = {"untouched": -0.01, "copy_parent": 0.03}
    table = operator_test.table(made_scores(operator_test, shifts, noise=0)).set_index("arm")
    assert table.loc["dare", "above both copies [90%]"].startswith("-1.0")
    assert table.loc["copy_parent", "above both copies [90%]"] == ""


@pytest.mark.parametrize(("noise", "found"), [(0.001, "100%"), (0.05, "0%")])
def test_chance_says_how_often_equal_arms_are_called_equal(operator_test, noise, found):
    says = operator_test.chance(made_scores(operator_test, {}, noise=noise))
    assert f"called equal in {found} of cases" in says


def test_parents_are_the_best_by_mu_less_three_sigma(operator_test):
    def student(name, mu, sigma):
        return SimpleNamespace(name=name, metrics={"mu": mu, "sigma": sigma})

    students = [student("a", 25.0, 0.5), student("child", 25.4, 8.0), student("b", 25.4, 0.5)]
    assert [one.name for one in operator_test.best_rated(students)] == ["b", "a", "child"]


def test_noise_beyond_the_margin_is_not_called_equal(operator_test):
    table = operator_test.table(made_scores(operator_test, {}, seeds=4, noise=0.03))
    assert not table["equal"].any()
    two = operator_test.table(made_scores(operator_test, {}, seeds=2))
    assert not two["equal"].any()  # two seeds have no interval


@pytest.mark.slow
def test_a_miniature_is_played_and_continued(operator_test, tmp_path, monkeypatch):
    monkeypatch.setattr(operator_test, "EVAL_TASKS", 24)
    monkeypatch.setattr(operator_test, "EVAL_STEPS", (0, 1, 2))
    monkeypatch.setattr(operator_test, "ENDS", (1, 2))
    run = tmp_path / "runs" / "4t4s" / "seed_5"
    assert main(["train", *SMALL, "population=4t4s", "run.steps=1", f"run.dir={run}"]) == 0
    scores = tmp_path / "scores.csv"
    operator_test.play({5: run}, scores)
    table = pd.read_csv(scores)
    assert list(table["arm"].unique()) == list(operator_test.ARMS) and len(table) == 33
    births = table[table["step"] == 0].set_index("arm")["score"]
    assert births["copy_parent"] == births["untouched"]
    # An arm that is missing is played again, with the same numbers.
    kept = scores.read_text().splitlines(keepends=True)
    scores.write_text("".join(kept[:-3]))
    operator_test.play({5: run}, scores)
    assert scores.read_text().splitlines(keepends=True) == kept
