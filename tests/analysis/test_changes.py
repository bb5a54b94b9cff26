import pytest
from scipy import stats

from azr_population.analysis.changes import measured_changes


def test_a_fall_on_sixty_answers_is_within_noise(write, task):
    # 27% and 25% of 60 answers, four at each of 15 tasks, as a demo of 20 steps has them.
    early = [1.0] * 3 + [0.5] * 2 + [0.0] * 9 + [0.05]
    late = [1.0] * 3 + [0.5] * 1 + [0.25] * 1 + [0.0] * 10
    rows = [task(2, solve_rate=rate, ast_nodes=20) for rate in early]
    rows += [task(10, solve_rate=0.9, ast_nodes=90)]  # in neither tenth
    rows += [task(19, solve_rate=rate, ast_nodes=30 + i % 2) for i, rate in enumerate(late)]
    found = measured_changes(write(config="", tasks=rows), 20)
    assert found["solve_rate"].first == pytest.approx(0.27)
    assert found["solve_rate"].last == pytest.approx(0.25)
    welch = stats.ttest_ind(late, early, equal_var=False).confidence_interval()
    assert found["solve_rate"].difference.low == pytest.approx(welch.low)
    assert found["solve_rate"].difference.high == pytest.approx(welch.high)
    assert welch.low < 0.0 < welch.high
    assert found["ast_nodes"].difference.low > 9.0
    assert set(found) == {"solve_rate", "ast_nodes"}


def test_validity_is_a_share_of_all_proposals(write):
    rows = [{"step": step, "proposed": 48, "valid": 24 + 2 * step} for step in (1, 1, 5, 10)]
    found = measured_changes(write(config="", matches=rows), 10)["valid_frac"]
    assert (found.first, found.last) == (52 / 96, 44 / 48)
    assert 0.0 < found.difference.low < found.difference.mean < found.difference.high < 0.5


def test_the_eval_is_paired_by_its_tasks(write):
    scores = {1: ([0.1, 0.5, 0.9], [0.3, 0.5, 0.7]), 10: ([1.0, 1.0, 1.0],) * 2}
    scores[20] = ([0.3, 0.6, 0.9], [0.3, 0.7, 1.0])
    rows = [
        {"step": step, "member": f"student_{i}", "greedy": member}
        for step, members in scores.items()
        for i, member in enumerate(members)
    ]
    found = measured_changes(write(config="", evals=rows), 20)["eval/greedy"]
    gains = [0.1, 0.15, 0.15]
    paired = stats.ttest_1samp(gains, 0.0).confidence_interval()
    assert (found.first, found.last) == (pytest.approx(0.5), pytest.approx(0.5 + 0.4 / 3))
    assert found.difference.low == pytest.approx(paired.low)
    assert found.difference.high == pytest.approx(paired.high)


def test_what_cannot_be_told_is_left_out(write, task):
    assert measured_changes(write(config=""), 20) == {}
    whole = {"tasks": [task(1, solve_rate=0.5)], "matches": [{"step": 1, "proposed": 4}]}
    assert measured_changes(write(config="", **whole), 1) == {}
    odd = [{"step": 1, "greedy": [0.5, None]}, {"step": 9, "greedy": [0.5]}, {"greedy": "x"}]
    odd += [{"step": 5, "greedy": [0.5, 0.5]}]
    damaged = [{"step": 1, "proposed": 4, "valid": 9}, {"step": 9, "proposed": 4, "valid": 4}]
    assert measured_changes(write(config="", evals=odd, matches=damaged), 9) == {}
