import pytest

from azr_population.config.load import load_config
from azr_population.method.config_check import all_protected_note


@pytest.mark.parametrize(
    ("interval", "ready", "members", "said"),
    [
        (5, 20, 4, "it has to be below 20"),
        (5, 19, 4, None),
        (5, 10, 2, "it has to be below 10"),
        (0, 20, 4, None),
        (5, 20, 1, None),
    ],
)
def test_a_run_without_a_choice_of_victims_is_told(interval, ready, members, said):
    overrides = [f"evolution.interval={interval}", f"evolution.grace_period={ready}"]
    line = all_protected_note(load_config(overrides).evolution, members)
    assert (line is None) == (said is None)
    assert said is None or (said in line and f"evolution.grace_period={ready}" in line)


@pytest.mark.parametrize("arm", ["2t2s", "4t4s", "8t8s"])
def test_the_arms_have_a_choice(arm):
    config = load_config([f"population={arm}"])
    assert all_protected_note(config.evolution, config.population.teachers) is None
