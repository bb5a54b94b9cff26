import needs
import numpy as np
import pandas as pd
import pytest

needs.module("inspect_ai", "-e '.[eval]'")
from refusals import refuses  # noqa: E402

from azr_population.eval.benchmark import table  # noqa: E402


def samples(**models):
    """Rows of one benchmark: each model's verdicts, a list a problem."""
    return pd.DataFrame(
        [
            {"label": "run", "model": model, "benchmark": "gsm8k", "problem": str(p), "epoch": e}
            | {"correct": right}
            for model, problems in models.items()
            for p, verdicts in enumerate(problems)
            for e, right in enumerate(verdicts, 1)
        ]
    )  # fmt: skip


def test_columns_are_means_over_benchmarks_and_all_is_the_mean_of_areas():
    columns = table.columns(["mbpp_plus", "gsm8k", "aime24"])
    assert list(columns) == ["MBPP+", "GSM8K", "AIME 24", "mathematics", "all"]
    assert columns["all"] == {"mbpp_plus": 0.5, "gsm8k": 0.25, "aime24": 0.25}


def test_an_interval_covers_the_true_rate():
    random = np.random.default_rng(1)
    covered = 0
    for _ in range(40):
        right = [[bool(solved)] for solved in random.random(150) < 0.3]
        (row,) = table.figures(samples(base=right)).to_dict("records")
        covered += row["low"] <= 0.3 <= row["high"]
    assert covered >= 34


def test_where_all_or_none_are_solved_the_interval_is_the_binomial_bound():
    low, high = table.figures(samples(a=[[False]] * 20, b=[[True]] * 20)).to_dict("records")[:2]
    assert (low["value"], low["low"]) == (0.0, 0.0)
    assert low["high"] == pytest.approx(1 - 0.025 ** (1 / 20))
    assert (high["value"], high["high"]) == (1.0, 1.0)


def test_what_is_the_same_for_every_problem_has_no_interval():
    half = [[True, False]] * 20
    figures = table.figures(samples(base=half, a=half))
    assert figures[["low", "high"]].isna().all(axis=None)
    assert figures["difference_low"].isna().all()
    assert list(table.table(figures)["GSM8K"]) == ["50.0", "50.0; +0.0"]


def test_of_several_benchmarks_the_smallest_bounds_what_nothing_solved_leaves_open():
    """At a true 10% of AIME and 0% of the other nothing is solved in 4% of cases."""
    few, many = (samples(a=[[False]] * n).assign(benchmark=name) for name, n in SIZES.items())
    figures = table.figures(pd.concat([few, many])).set_index("column")
    assert figures.loc["mathematics", "high"] == pytest.approx(1 - 0.025 ** (1 / 60))
    assert figures.loc["AIME 24", "high"] == pytest.approx(1 - 0.025 ** (1 / 30))


SIZES = {"aime24": 30, "gsm8k": 500}


def test_a_paired_difference_is_sharper_than_two_intervals():
    hard = np.random.default_rng(2).random(400)
    figures = table.figures(
        samples(base=[[bool(h < 0.45)] for h in hard], student_0=[[bool(h < 0.50)] for h in hard])
    )
    base, student = figures.to_dict("records")
    assert student["difference"] == pytest.approx(student["value"] - base["value"])
    assert student["difference_low"] > 0.0
    assert student["low"] < base["high"]  # which the intervals of the two do not show


def test_mean_best_and_weakest_member():
    figures = table.figures(samples(base=[[False]] * 4, a=[[True]] * 4, b=[[True]] + [[False]] * 3))
    values = dict(zip(figures["model"], figures["value"], strict=True))
    assert values["members (mean)"] == 0.625
    assert (values["best member"], values["weakest member"]) == (1.0, 0.25)


def test_several_samples_give_several_k():
    figures = table.figures(samples(a=[[True, False, False, False], [False] * 4]))
    assert dict(zip(figures["k"], figures["value"], strict=True)) == {1: 0.125, 4: 0.5}
    assert list(table.table(figures).index) == [("run", "a pass@1"), ("run", "a pass@4")]


def test_models_that_were_not_asked_the_same_are_not_compared():
    rows = samples(base=[[True]] * 3, a=[[True]] * 3)
    with refuses("gsm8k"):
        table.figures(rows[:-1])


@pytest.mark.parametrize("ending", table.FORMATS)
def test_a_folder_that_went_away_is_refused(tmp_path, ending):
    with refuses(f"--out {tmp_path}"):
        table.write(table.figures(samples(base=[[True]] * 3)), tmp_path / f"gone/table{ending}")
