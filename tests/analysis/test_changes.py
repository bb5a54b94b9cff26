import pytest
from scipy import stats

from azr_population.analysis.changes import measured_changes


def test_a_step_is_one_observation(write, task):
    """With a step's own noise of .05, tasks taken as independent "showed" a change in 26%."""
    early, late = ([0.5, 0.6, 0.4], [0.45, 0.65, 0.55])
    rows = [task(step, solve_rate=rate) for step, rate in enumerate(early, 1) for _ in range(50)]
    rows += [task(15, solve_rate=0.9)]  # in neither tenth
    rows += [task(step, solve_rate=rate) for step, rate in enumerate(late, 28) for _ in range(50)]
    found = measured_changes(write(tasks=rows), 30)
    change = found["solve_rate"]
    assert (change.first, change.last) == (pytest.approx(0.5), pytest.approx(0.55))
    error = (stats.sem(early) ** 2 + stats.sem(late) ** 2) ** 0.5
    assert change.difference.high == pytest.approx(0.05 + stats.t.ppf(0.975, 2) * error)
    assert change.difference.low < 0 and change.difference.counts == (3, 3)
    assert set(found) == {"solve_rate"}


def test_validity_is_a_share_of_the_proposals_of_a_step(write):
    rows = [{"step": step, "proposed": 48, "valid": 24 + step % 3} for step in (1, 1, 2, 3, 5)]
    rows += [{"step": step, "proposed": 48, "valid": 40 + step % 4} for step in (28, 29, 30)]
    found = measured_changes(write(matches=rows), 30)["valid_frac"]
    assert found.first == pytest.approx((25 + 26 + 24) / 3 / 48)
    assert found.last == pytest.approx((40 + 41 + 42) / 3 / 48)
    assert 0.2 < found.difference.low < found.difference.mean < found.difference.high < 0.5


def test_steps_without_a_valid_task_count_as_nothing_valid(write, task):
    counts = {n: 24 * (n > 3) for n in (*range(1, 7), *range(55, 61))}
    matches = [{"step": n, "proposed": 48, "valid": valid} for n, valid in counts.items()]
    tasks = [task(n, solve_rate=0.5) for n, valid in counts.items() if valid]
    found = measured_changes(write(matches=matches, tasks=tasks), 60)["valid_frac"]
    assert (found.first, found.difference.counts) == (0.25, (6, 6))


def test_the_eval_is_paired_by_its_tasks(write):
    scores = {1: ([0.1, 0.5, 0.9], [0.3, 0.5, 0.7]), 10: ([1.0, 1.0, 1.0],) * 2}
    scores[20] = ([0.3, 0.6, 1.0], [0.3, 0.7, 1.0])
    rows = [
        {"step": step, "member": f"student_{i}", "greedy": member}
        for step, members in scores.items()
        for i, member in enumerate(members)
    ]
    found = measured_changes(write(evals=rows), 20)["eval/greedy"]
    gains = [0.1, 0.15, 0.2]  # without skewness the interval is Student's
    paired = stats.ttest_1samp(gains, 0.0).confidence_interval()
    assert (found.first, found.last) == (pytest.approx(0.5), pytest.approx(0.65))
    assert found.difference.low == pytest.approx(paired.low)
    assert found.difference.high == pytest.approx(paired.high)


def test_what_cannot_be_told_is_left_out(write, task):
    assert measured_changes(write(), 20) == {}
    whole = {"tasks": [task(1, solve_rate=0.5)], "matches": [{"step": 1, "proposed": 4}]}
    assert measured_changes(write(**whole), 1) == {}
    odd = [{"step": 1, "greedy": [0.5, None]}, {"step": 9, "greedy": [0.5]}, {"greedy": "x"}]
    odd += [{"step": 5, "greedy": [0.5, 0.5]}]
    damaged = [{"step": 1, "proposed": 4, "valid": 9}, {"step": 9, "proposed": 4, "valid": 4}]
    assert measured_changes(write(evals=odd, matches=damaged), 9) == {}
