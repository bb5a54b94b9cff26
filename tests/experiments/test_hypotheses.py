"""What a recipe sets out to show, and the correction of all the rest."""

import csv
import json
from dataclasses import replace

import pytest

from azr_population.experiments.arms import Arm, Arms, Scale, seed_numbers
from azr_population.experiments.hypotheses import answers, verdict
from azr_population.experiments.recipe import Primary, Recipe, TableRow
from azr_population.experiments.results import draw
from azr_population.experiments.runs import plan_runs, settings_folder
from azr_population.runs.diagnostics import Estimate

SEEDS = [f"seed_{n}" for n in range(11, 17)]


def values(*numbers):
    return dict(zip(SEEDS, numbers, strict=False))


def test_a_verdict_goes_by_the_interval_and_the_margin():
    primary = Primary("", "m", "a", margin=0.5)
    assert verdict(primary, Estimate(0.8, 0.6, 1.0, 6), 0.05) == "shown"
    assert verdict(primary, Estimate(0.2, 0.1, 0.3, 6), 0.05) == "refuted"
    assert verdict(primary, Estimate(0.5, 0.1, 0.9, 6), 0.05) == "not shown"
    looked = replace(primary, looks={8: 0.005, 16: 0.048})
    assert looked.level(8) == 0.005 and looked.level(9) is None
    assert "planned at 8, 16 seeds, here are 9" in verdict(looked, Estimate(1, 1, 1, 9), None)


def test_together_each_is_tested_at_the_full_level_otherwise_they_share_it():
    measured = {"m": {"a": values(1.0, 1.2, 1.4, 1.1), "b": values(0.9, 1.0, 1.1, 0.8)}}
    primaries = [Primary("", "m", "a", "b"), Primary("", "m", "a")]
    together = answers(primaries, measured, paired=True, together=True)
    each = answers(primaries, measured, paired=True, together=False)
    assert [one.test.estimate.n for one in each] == [4, 4]
    for full, shared in zip(together, each, strict=True):
        assert shared.test.estimate.low < full.test.estimate.low
        assert shared.p >= full.p == full.test.p
    missing = answers([Primary("", "m", "c")], measured, paired=False, together=False)
    assert missing[0].test is None and "nothing was measured" in missing[0].verdict


def test_pairs_are_the_seeds_that_both_have():
    measured = {"m": {"a": values(1.0, 2.0, 3.0), "b": {"seed_12": 1.0, "seed_13": 1.0}}}
    (answer,) = answers([Primary("", "m", "a", "b")], measured, paired=True, together=False)
    assert (answer.test.estimate.n, answer.test.estimate.mean) == (2, 1.5)


def test_seeds_are_a_number_or_a_range():
    assert list(seed_numbers(3)) == [1, 2, 3] and list(seed_numbers("11-13")) == [11, 12, 13]
    for wrong in ("0", "5-4", "a", "1-", "-3"):
        with pytest.raises(ValueError):
            seed_numbers(wrong)


@pytest.fixture
def programme():
    """An arm, one that goes on for twice its steps, and two forks of it."""
    made = {
        "one": Arm("one", "one", ("population=single",)),
        "long": Arm("long", "long", ("population=single",), times=2),
        "kept": Arm("kept", "kept", ("population=single",), fork="one@2"),
        "other": Arm(
            "other",
            "other",
            ("population=single", "population.rows=24"),
            seconds=2.0,
            fork="one@2",
        ),
    }
    programme = Scale(4, "11-16", ("exam.attempts=2",), slower=3.0)
    scales = {"nano": Scale(9, 1), "programme": programme}
    return Arms(scales, made)


def test_origins_of_forks_are_planned_first_unless_their_own_run_serves(programme, tmp_path):
    recipe = Recipe("test", "A title", "ours", arms=("kept", "other"), settings="programme")
    planned = plan_runs(recipe, programme, recipe.arms, "11-12", 4, tmp_path)
    assert [(run.name, run.steps, run.is_origin) for run in planned] == [
        ("one seed 11", 2, True),
        ("one seed 12", 2, True),
        ("kept seed 11", 4, False),
        ("other seed 11", 4, False),
        ("kept seed 12", 4, False),
        ("other seed 12", 4, False),
    ]
    assert planned[3].seconds_left == 3.0 * 2.0 * (4 - 2)
    home = tmp_path / "programme"
    assert home == settings_folder(tmp_path, recipe)
    assert planned[2].path == home / "kept" / "seed_11"
    assert planned[2].overrides[-1] == f"run.fork={home}/one/seed_11@2"
    assert planned[0].overrides[0] == "exam.attempts=2"
    both = plan_runs(recipe, programme, ("one", "kept"), "11-11", 4, tmp_path)
    assert [(run.name, run.is_origin) for run in both] == [
        ("one seed 11", False),
        ("kept seed 11", False),
    ]


def test_the_summary_begins_with_what_was_to_be_shown(programme, fake_run, metrics, tmp_path):
    recipe = Recipe(
        "test",
        "A title",
        "ours",
        arms=("one", "long"),
        settings="programme",
        rows=(TableRow("rate", "solve_rate", "end"), TableRow("exam", "exam_mean", "end")),
        primary=(Primary("Long beats one.", "rate", "long", "one"),),
        decision="if so, so.",
    )
    planned = plan_runs(recipe, programme, recipe.arms, "11-16", 4, tmp_path / "runs")
    for run in planned:
        # The long arm reaches what it has at its own last step only.
        high = 0.9 if run.arm.name == "long" else 0.1
        lines = [
            metrics(n, (0.1 if n < run.steps else high) + run.seed / 1e4, exam=0.2 + run.seed / 1e4)
            for n in range(1, run.steps + 1)
        ]
        fake_run(run.path, run.overrides, lines)
    folder = tmp_path / "results"
    text = draw(recipe, programme, planned, 4, "nano", folder).read_text()
    assert (
        "Long beats one. rate, `long` minus `one`: 0.800 [0.800, 0.800] (95.0% interval), n=6"
        in text
    )
    assert "**shown**" in text and "Decision: if so, so." in text and "The paper" not in text
    assert "<br>IQM 0.901 [" in text
    assert "**0." not in text, "the family has no difference, and a primary one is not in it"
    (primary,) = csv.DictReader((folder / "primary.csv").open())
    assert primary["verdict"] == "shown" and float(primary["p_permutation"]) < 0.01
    rows = {(r["measure"], r["arm"]): r for r in csv.DictReader((folder / "table.csv").open())}
    assert rows["rate", "long"]["p_holm"] == "" and rows["rate", "long"]["iqm"] == "0.90135"
    assert float(rows["exam", "long"]["p_holm"]) > 0.5
    assert json.loads((folder / "versions.json").read_text())["common"] == ["exam.attempts=2"]


def test_bold_is_for_what_is_left_after_the_correction(programme, fake_run, metrics, tmp_path):
    rows = tuple(TableRow(f"rate {n}", "solve_rate", "end") for n in range(4))
    recipe = Recipe("t", "T", "ours", arms=("one", "long"), settings="programme", rows=rows[:1])
    planned = plan_runs(recipe, programme, recipe.arms, "11-14", 4, tmp_path / "runs")
    scatter = {11: 0.0, 12: 0.1, 13: 0.2, 14: 0.05}
    for run in planned:
        rate = 0.4 + scatter[run.seed] + (0.16 if run.arm.name == "long" else 0.0)
        lines = [metrics(n, rate) for n in range(1, run.steps + 1)]
        fake_run(run.path, run.overrides, lines)
    alone = draw(recipe, programme, planned, 4, "nano", tmp_path / "alone").read_text()
    among = replace(recipe, rows=rows)
    four = draw(among, programme, planned, 4, "nano", tmp_path / "four").read_text()
    assert "| **0.64" in alone and "| 0.64" in four and "**0.64" not in four


def test_the_p_value_is_of_the_margin_as_the_verdict_is():
    """Clearly above 0 and at the margin: not shown, and nothing surprising."""
    measured = {"m": {"a": values(0.9, 1.1, 1.0, 0.8, 1.2, 1.0)}}
    primary = Primary("", "m", "a", margin=1.0)
    (at,) = answers([primary], measured, paired=False, together=False)
    (above,) = answers([replace(primary, margin=0.5)], measured, paired=False, together=False)
    assert at.verdict == "not shown" and at.p > 0.9
    assert above.verdict == "shown" and above.p < 0.01
    assert at.test.estimate == above.test.estimate
