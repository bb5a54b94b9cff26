from azr_population.experiments.takes import TAKES

RISING = [(step, float(step)) for step in range(1, 21)]


def test_early_and_late_are_tenths_of_the_steps():
    assert TAKES["early"](RISING) == 1.5
    assert TAKES["late"](RISING) == 19.5
    assert TAKES["change"](RISING) == 18.0


def test_what_is_measured_seldom_is_taken_at_its_ends():
    exam = [(1, 0.2), (20, 0.3), (40, 0.25)]
    assert TAKES["end"](exam) == 0.25
    assert round(TAKES["gain"](exam), 9) == 0.05
    assert TAKES["early"](exam) == 0.2
    assert TAKES["late"](exam) == 0.25


def test_lowest_and_highest_are_of_a_tenth_in_a_row_not_of_a_single_step():
    curve = [(step, 0.5) for step in range(1, 21)]
    curve[9] = (10, 1.0)
    curve[14] = (15, 0.0)
    assert TAKES["highest"](curve) == 0.75
    assert TAKES["lowest"](curve) == 0.25


def test_one_step_is_enough_for_every_take():
    assert {name: take([(1, 3.0)]) for name, take in TAKES.items()} == {
        "early": 3.0,
        "late": 3.0,
        "change": 0.0,
        "end": 3.0,
        "gain": 0.0,
        "lowest": 3.0,
        "highest": 3.0,
    }
