"""A recipe's table, its hypotheses and their verdicts, on made scores."""

import math

import pytest
from recipe_plans import RECIPE

from azr_population.analysis.metrics import MetricSamples, metric_named
from azr_population.analysis.sentences import verdict_of
from azr_population.analysis.statistics import Estimate, compare
from azr_population.experiments.claims import samples_of
from azr_population.experiments.plan import RecipePlan
from azr_population.experiments.recipes import TableRow, read_arms, read_recipe
from azr_population.experiments.results import _cell, decide, learning_rate, results_table
from azr_population.reading.run_data import RunData
from azr_population.reading.tidy import tidy
from azr_population.runs import RunDirectory


def table(*evals, steps=4):
    """A run's tidy table with these eval scores at its last steps."""
    first = steps - len(evals) + 1
    lines = [
        {"step": step, "agent/lines": 3.0 + step, "time/step": 1.0, "total/updates": 1.0}
        for step in range(1, steps + 1)
    ]
    for step, score in enumerate(evals, first):
        lines[step - 1]["eval/greedy"] = score
    return tidy(lines)


def made(seeds=4, apart=0.01, **scores):
    """Tables of arms: the last eval of the first seed is the arm's score, the others lie above."""
    return {
        arm: {f"seed_{n}": table(score + apart * n) for n in range(seeds)}
        for arm, score in scores.items()
    }


def decided(recipe, tables, lengths, planned):
    """The recipe's table and its tested hypotheses."""
    rows = {row.label: samples_of(row, tables, lengths, recipe.baseline) for row in recipe.table}
    answers = decide(recipe, rows, planned)
    return results_table(recipe, rows, answers, planned), answers


def test_values_differences_and_hypotheses():
    tables = made(one=0.31, two=0.51)
    frame, answers = decided(RECIPE, tables, {"one": 4, "two": 4}, 4)
    assert list(frame["n"]) == [4, 4, 4, 4]
    lines = frame.set_index(["row", "arm"])
    one, two = (lines.loc["eval at the end", arm] for arm in ("one", "two"))
    assert one["mean"] == pytest.approx(0.325) and math.isnan(one["minus_one_mean"])
    assert two["minus_one_mean"] == pytest.approx(0.2)
    assert answers["verdict"].tolist() == ["shown"] and two["differs"]
    assert two["p_corrected"] == answers["p"][0] and two["family"] == "hypotheses"
    other = lines.loc["lines (change)", "two"]
    assert not other["differs"] and other["family"] == "", "without variance nothing is tested"


def test_a_hypothesis_about_another_arm_leaves_the_baseline_to_its_own():
    """Both are about one row and arm; the cell is bold by the one against the baseline."""
    first = RECIPE.hypotheses[0]
    other = first.model_copy(update={"than": "three"})
    recipe = RECIPE.model_copy(update={"hypotheses": (first, other)})
    tables = made(one=0.3, two=0.5, three=0.5)
    frame, answers = decided(recipe, tables, dict.fromkeys(tables, 4), 4)
    assert answers["verdict"].tolist() == ["shown", "not shown"]
    cell = frame.set_index(["row", "arm"]).loc["eval at the end", "two"]
    assert cell["differs"] and cell["p_corrected"] == answers["p"][0] < answers["p"][1]


def test_a_hypothesis_without_runs_counts_in_the_correction():
    other = RECIPE.hypotheses[0].model_copy(update={"arm": "three"})
    recipe = RECIPE.model_copy(update={"hypotheses": (RECIPE.hypotheses[0], other)})
    scores = {"one": (0.30, 0.31, 0.33, 0.34), "two": (0.33, 0.34, 0.35, 0.37)}
    tables = {
        arm: {f"seed_{n}": table(score) for n, score in enumerate(of)} for arm, of in scores.items()
    }
    _, answers = decided(recipe, tables, {"one": 4, "two": 4}, 4)
    alone = compare(scores["two"], scores["one"], False)
    assert answers["p"][0] == pytest.approx(2 * alone.p) and math.isnan(answers["p"][1])
    assert answers["verdict"][1] == "not decided: nothing was measured"


def test_a_run_that_ended_early_is_in_no_row():
    row = TableRow(label="lines (late)", metric="lines", reduce="last_10pct")
    tables = {"one": {"seed_1": table(steps=19), "seed_2": table(steps=20)}}
    assert samples_of(row, tables, {"one": 20}).by_arm == {"one": {"seed_2": 22.5}}


def test_a_cell_names_its_seeds_where_they_are_fewer_than_its_columns():
    cell = {"mean": 0.3, "low": 0.2, "high": 0.4, "n": 3, "differs": False}
    assert _cell(True, cell, 3) == "30.0% [20.0, 40.0]"
    assert _cell(True, cell, 4) == "30.0% [20.0, 40.0] (n=3)"


def test_an_early_eval_is_not_one_at_the_end():
    early = table(0.5, *[float("nan")] * 19, steps=20)
    tables = {"one": {"seed_1": early}, "two": {"seed_1": early}}
    frame, _ = decided(RECIPE, tables, {"one": 20, "two": 20}, 1)
    assert "eval at the end" not in set(frame["row"])


@pytest.mark.parametrize(("seeds", "word"), [(2, "not decided"), (4, "shown"), (6, "not decided")])
def test_a_recipe_decides_at_its_planned_number_of_seeds_alone(seeds, word):
    """Read at every number from 2 to 12, a plan for 6 was wrong in 17%, its bold cells in 19%."""
    tables = made(seeds, apart=0.001, one=0.3, two=0.5)
    frame, answers = decided(RECIPE, tables, {"one": 4, "two": 4}, 4)
    assert answers["verdict"][0].startswith(word)
    assert frame["differs"].any() == (seeds == 4)
    others = RECIPE.model_copy(update={"hypotheses": ()})
    frame, _ = decided(others, tables, {"one": 4, "two": 4}, 4)
    assert frame["differs"].any() == (seeds == 4), "also what no hypothesis is about"


def test_other_seeds_and_steps_decide_nothing(tmp_path):
    """A second set of seeds is reported beside the first and changes no verdict."""

    def planned(seeds, steps=None, name="population_or_not"):
        arms = read_arms()
        return RecipePlan(
            read_recipe(name, arms), arms, seeds=seeds, steps=steps, out=tmp_path
        ).planned

    assert planned(None) == planned("101-106") == 12
    assert planned("201-212") is planned("101-113") is None
    assert planned(None, 60, "what_ships") == 6 and planned(None, 30, "what_ships") is None
    tables = made(apart=0.001, one=0.3, two=0.5)
    frame, answers = decided(RECIPE, tables, {"one": 4, "two": 4}, None)
    assert answers["verdict"][0] == "not decided (planned for other seeds or steps)"
    assert not frame["differs"].any()


def test_a_margin_has_its_unit_and_leaves_the_difference_to_the_table():
    margin = RECIPE.hypotheses[0].model_copy(update={"margin": 0.3})
    recipe = RECIPE.model_copy(update={"hypotheses": (margin,)})
    tables = made(one=0.3, two=0.302)
    frame, answers = decided(recipe, tables, {"one": 4, "two": 4}, 4)
    assert "(above 30 points?)" in answers["sentence"][0] and answers["verdict"][0] == "refuted"
    row = frame.set_index(["row", "arm"]).loc["eval at the end", "two"]
    assert row["family"] == "differences" and not row["differs"]


def test_a_level_is_spent_over_all_claims_of_a_recipe():
    """Each at the full level, one of two was falsely shown or refuted in 9%."""
    two = (RECIPE.hypotheses[0], RECIPE.hypotheses[0].model_copy(update={"margin": 0.1}))
    recipe = RECIPE.model_copy(update={"hypotheses": two})
    tables = {arm: {f"seed_{n}": table(0.1 * n) for n in (1, 2)} for arm in recipe.arms}
    _, answers = decided(recipe, tables, {"one": 4, "two": 4}, 2)
    assert answers["confidence"].tolist() == pytest.approx([0.975, 0.975])


def test_a_ratio_is_taken_within_a_seed():
    row = {"label": "ratio", "metric": "time/step", "reduce": "median", "ratio": True}
    recipe = RECIPE.model_copy(update={"table": (TableRow(**row),), "hypotheses": ()})
    slow = table().assign(value=lambda frame: 3 * frame["value"])
    tables = {"one": {"seed_1": table()}, "two": {"seed_1": slow, "seed_2": slow}}
    frame, _ = decided(recipe, tables, {"one": 4, "two": 4}, 2)
    assert frame.set_index("arm")["values"]["two"] == "3"


def test_a_learning_rate_that_members_drew_is_shown_as_its_range(tmp_path):
    config = "population: {student_lr: 0.001, teacher_lr: null}\n"
    drawn = "evolution: {hyperparameters: {lr: {init: [3.0e-5, 3.0e-3], roles: [student]}}}\n"
    plain, evolving = RunDirectory(tmp_path / "plain"), RunDirectory(tmp_path / "evolving")
    plain.create(config, {})
    evolving.create(config + drawn, {})
    assert learning_rate(RunData(plain.path), "student") == "student 0.001"
    assert learning_rate(RunData(plain.path), "teacher") == ""
    assert learning_rate(RunData(evolving.path), "student") == "student drawn from 3e-05 to 0.003"


def test_verdicts():
    planned = RECIPE.hypotheses[0]
    above, below, over = ((1.0, 0.1, 2.0, 0.01), (-1.0, -2.0, -0.1, 0.01), (0.0, -1.0, 1.0, 0.9))

    def of(mean, low, high, p, counts=(4, 4), hypothesis=planned):
        return verdict_of(Estimate(mean, low, high, counts, p), hypothesis.margin, 4)

    assert [of(*v) for v in (above, below, over)] == ["shown", "refuted", "not shown"]
    for counts in ((5, 5), (4, 3), (4, 1)):
        assert of(*above, counts).startswith("not decided (planned")
    assert of(1.0, math.nan, math.nan, math.nan).startswith("not decided")
    assert verdict_of(Estimate(*above[:3], (4, 4), 0.01), 0.0, None).endswith(
        "for other seeds or steps)"
    )
    margin = planned.model_copy(update={"margin": 0.5})
    assert of(1.0, 0.1, 2.0, 0.2, (4,), margin) == "not shown"
    assert of(0.1, -0.1, 0.3, 0.01, (4,), margin) == "refuted"


def test_holm_decides_and_a_null_says_what_it_excludes(tmp_path):
    """Of two hypotheses the second needs .05 only, once the first is shown at .025."""
    two = RECIPE.model_copy(
        update={"hypotheses": (*RECIPE.hypotheses, RECIPE.hypotheses[0].model_copy())}
    )
    row = "eval at the end"
    a, b = (0.40, 0.41, 0.42, 0.43, 0.44, 0.45), (0.385, 0.395, 0.405, 0.415, 0.425, 0.435)
    scores = {"one": dict(enumerate(b)), "two": dict(enumerate(a))}
    rows = {row: MetricSamples(metric_named("eval/greedy"), "last", scores)}
    answers = decide(two, rows, 6)
    assert list(answers["verdict"]) == ["not shown"] * 2
    assert "more than 4.3 points is excluded" in answers["sentence"][0]
    # The seeds by the upper bound of the spread, as in `compare`; 11 by the estimate itself.
    assert "3 points would take up to 17 seeds an arm" in answers["sentence"][0]
    shifted = {key: value + 0.011 for key, value in scores["two"].items()}
    scores |= {"three": {key: value + 0.5 for key, value in shifted.items()}}
    first = two.hypotheses[0].model_copy(update={"arm": "three"})
    both = two.model_copy(update={"hypotheses": (first, two.hypotheses[1])})
    scores["two"] = shifted
    answers = decide(both, rows, 6)
    assert answers["p"][1] < 0.05 and answers["low"][1] < 0, "Holm shows it, Bonferroni would not"
    assert list(answers["verdict"]) == ["shown", "shown"]


def test_arms_of_different_lengths_are_compared_at_a_rows_step():
    row = TableRow(label="eval at step 4", metric="eval/greedy", reduce="last", step=4)
    longer = table(0.3, 0.4, 0.5, 0.6, 0.7, 0.8, steps=8)
    tables = {"one": {"seed_1": longer}, "two": {"seed_1": table(0.2, 0.9)}}
    at_4, at_end = (
        samples_of(each, tables, {"one": 8, "two": 4}).by_arm for each in (row, RECIPE.table[0])
    )
    assert at_4 == {"one": {"seed_1": 0.4}, "two": {"seed_1": 0.9}}
    assert at_end == {"one": {"seed_1": 0.8}, "two": {"seed_1": 0.9}}
