"""Table 2 from made-up runs: single steps of 2 s, four members in steps of 5 s."""

import csv
import io

import pytest

from azr_population.experiments.wallclock import (
    ratio_estimates,
    timing,
    timings,
    wallclock_tables,
)

FOUR = ("a", "b", "c", "d")


@pytest.fixture
def runs(fake_run, metrics, tmp_path):
    def make(arm, seed, seconds, members):
        lines = [metrics(n, 0.5, seconds=s, members=members) for n, s in enumerate(seconds, 1)]
        return fake_run(tmp_path / arm / f"seed_{seed}", ["population=single"], lines)

    return {
        "single": [make("single", n, [9.0, 2.0 * n, 2.0 * n, 50.0], FOUR[:1]) for n in (1, 2)],
        "four": [make("four", n, [9.0, 5.0 * n, 5.0 * n, 50.0], FOUR) for n in (1, 2)],
    }


def test_a_runs_figure_is_the_median_without_the_first_step(runs):
    one = timing(runs["single"][0], steps=4)
    assert one.step == 2.0
    assert one.phases == {"propose": 1.0, "update": 0.5}
    assert (one.members, one.rows, one.tokens) == (1, 48.0, 100.0)
    assert timing(runs["single"][0], steps=1) is None


def test_evolution_counts_by_its_mean_because_it_comes_at_an_interval(fake_run, metrics, tmp_path):
    lines = [metrics(n, 0.5) for n in range(1, 7)]
    for line in lines:
        line["phases"]["evolve"] = 5.0 if line["step"] == 5 else 0.0
        line["seconds"] += line["phases"]["evolve"]
    run = fake_run(tmp_path / "run", ["population=single"], lines)
    one = timing(run, steps=6)
    assert one.phases["evolve"] == 1.0
    # Four steps of 2 s and one of 7 s, 5 of which are evolution.
    assert one.step == 3.0


def test_the_exam_is_not_part_of_a_step(fake_run, metrics, tmp_path):
    lines = [metrics(n, 0.5, seconds=3.0) for n in (1, 2)]
    lines[1]["phases"]["exam"] = 1.0
    one = timing(fake_run(tmp_path / "run", ["population=single"], lines), steps=2)
    assert one.step == 2.0
    assert "exam" not in one.phases


def test_ratios_are_taken_within_a_seed_so_that_noise_is_shared(runs):
    # The second seed's machine is half as fast; the ratio is 2.5 in both.
    estimate = ratio_estimates(runs, 4, "single")["four"]
    assert (estimate.mean, estimate.low, estimate.high) == (2.5, 2.5, 2.5)


def test_the_table_has_the_naive_peer_one_member_after_another(runs):
    text, files = wallclock_tables(runs, 4, "single")
    single, four = csv.DictReader(io.StringIO(files["wallclock.csv"]))
    assert (single["ratio"], single["ratio_to_one_by_one"]) == ("1", "1")
    assert (four["ratio"], four["ratio_to_one_by_one"]) == ("2.5", "0.625")
    assert (four["members"], four["seconds_per_step"], four["seconds_per_member"]) == (
        "4",
        "7.5",
        "1.875",
    )
    assert "1.31x" in text
    assert "| four | 3.750 (50%) | 1.875 (25%) |" in text


def test_a_seed_that_only_one_arm_has_gives_no_ratio(runs):
    runs["four"].pop()
    found = timings(runs, 4)
    assert list(found["four"]) == ["seed_1"]
    assert ratio_estimates(runs, 4, "single")["four"].n == 1
    assert "nan" not in wallclock_tables(runs, 4, "single")[1]["wallclock.csv"]


def test_before_any_second_step_there_is_nothing_to_tell(runs):
    assert wallclock_tables(runs, 1, "single") == ("No run has a second step yet.", {})


def test_records_of_a_damaged_file_are_passed_over(fake_run, metrics, tmp_path):
    lines = [metrics(n, 0.5, seconds=float(n)) for n in range(1, 7)]
    lines[1]["step"] = "x"
    del lines[2]["phases"]
    lines[3]["members"] = {}
    run = fake_run(tmp_path / "run", ["population=single"], lines)
    assert timing(run, steps=6).step == 5.5, "steps 5 and 6"
