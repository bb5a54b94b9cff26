"""The statistics of recipes/paper/fig6_children, on evals with known differences."""

import importlib.util
import random
import sys
from pathlib import Path

import pytest

RECIPE = Path(__file__).parents[2] / "recipes" / "paper" / "fig6_children"
STEPS = [0, 1, 2, 3, 4, 6, 8, 10]


@pytest.fixture(scope="module")
def recovery():
    spec = importlib.util.spec_from_file_location("fig6_recovery", RECIPE / "recovery.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def eval_scores(seed, loss, tasks=400):
    """A parent's chances, of mean 0.4, less `loss` and an independent noise of 0.1 a task."""
    of_seed, shared = random.Random(seed), random.Random("parent")
    return [shared.random() * 0.8 - loss + of_seed.gauss(0, 0.1) * (seed > 0) for _ in range(tasks)]


def arm_run(recovery, losses, seed=1):
    evals = {step: eval_scores(100 * seed + n + 1, losses[n]) for n, step in enumerate(STEPS)}
    return recovery.ArmRun(seed, "dare", eval_scores(0, 0.0), evals)


def test_a_paired_interval_covers_the_truth_about_95_times_of_100(recovery):
    estimates = [recovery.paired(eval_scores(n + 1, 0.03), eval_scores(0, 0.0)) for n in range(300)]
    covered = sum(abs(estimate.mean + 0.03) <= estimate.half for estimate in estimates)
    assert 270 <= covered <= 298
    assert estimates[0].half == pytest.approx(1.96 * 0.1 / 20, rel=0.15)


def test_a_child_recovers_when_a_loss_is_ruled_out(recovery):
    back = [0.08, 0.08, 0.08, 0.08, 0.0, 0.0, 0.0, 0.0]
    steps = [
        recovery.recovered(recovery.to_parent(arm_run(recovery, back, seed)), 0.02)
        for seed in range(1, 21)
    ]
    assert set(steps) == {6}  # the first eval whose neighbours are all at the level
    never = recovery.to_parent(arm_run(recovery, [0.05] * 8))
    assert recovery.recovered(never, 0.02) is None
    unhurt = recovery.to_parent(arm_run(recovery, [0.0] * 8))
    assert recovery.recovered(unhurt, 0.02) == 0


def test_one_lucky_eval_is_not_a_recovery(recovery):
    differences = {
        step: recovery.Difference(0.0 if step in (2, 6, 8) else -0.1, 0.01) for step in STEPS
    }
    assert recovery.recovered(differences, 0.02) == 6


def test_only_who_lost_something_can_be_back(recovery):
    def verdict(birth, end, spread=0.001):
        luck = [spread * sign for sign in (-1, 0, 0, 0, 1)]
        births, ends = ([value + noise for noise in luck] for value in (birth, end))
        return recovery.verdict(births, ends, 0.01)

    assert verdict(0.0, 0.0) == verdict(-0.005, -0.05) == "nothing lost"
    assert verdict(-0.04, -0.002) == "lost, back"
    # Half of the loss is regained: that is no recovery.
    assert verdict(-0.04, -0.02) == "lost, not back"
    assert verdict(-0.04, -0.02, 0.05) == "unclear" == verdict(-0.04, -0.002, 0.03)
    assert recovery.verdict([-0.04], [-0.02], 0.01) == "unclear"


def test_the_test_is_void_where_an_untrained_member_recovers(recovery):
    good = {"again": "nothing lost", "reset": "lost, not back", "noise": "lost, not back"}
    assert recovery.faults({**good, "dare": "lost, back"}) == []
    (fault,) = recovery.faults({**good, "reset": "lost, back"})
    assert "`reset`" in fault
    assert len(recovery.faults({"again": "lost, back"})) == 3


@pytest.mark.parametrize(
    ("ends", "shown"),
    [
        ([0.002, -0.004, 0.001, 0.003], True),
        ([-0.03, -0.035, -0.04, -0.03], False),
        ([0.03, 0.035, 0.04, 0.03], False),
        ([-0.05, 0.05, -0.04, 0.04], False),
        ([0.0], False),
    ],
)
def test_equal_is_what_two_one_sided_tests_show(recovery, ends, shown):
    assert (recovery.equivalence(ends) < 0.05) == shown
