"""Which arm is better: what may be subtracted, from which step, and what is said of it."""

import io
import json
import re
import shutil
from dataclasses import asdict
from random import Random
from types import SimpleNamespace

import pytest
import yaml
from refusals import refuses
from rich.console import Console

from azr_population.analysis.comparison import compare_arms, correct_table
from azr_population.analysis.comparison_page import (
    _lines,
    print_comparison,
    print_plan,
    write_comparison,
)
from azr_population.analysis.inputs import arms_of
from azr_population.analysis.metrics import all_metrics
from azr_population.analysis.seed_plan import plan_seeds
from azr_population.analysis.statistics import Estimate, detectable, seeds_for, upper_sd, with_holm
from azr_population.domains.metric import Metric
from azr_population.errors import UserError

SETTINGS = {
    "population": {"teachers": 1, "students": 1, "teacher_reward": "adversarial"},
    "eval": {"every": 10, "tasks_per_type": 60, "seed": 7},
    "task": {"types": ["code_o"], "domain": "code"},
    "base": {"name": "nano", "prompt_format": "nano"},
    "engine": {"max_answer_tokens": 99},
}


def write_run(folder, evals, steps=20, seed=1, solve_rate=None, tokens=100, **changed):
    folder.mkdir(parents=True)
    config = {"seed": seed, **SETTINGS, "run": {"steps": steps}, **changed}
    solve_rate = Random(str(folder)).random() / 2 if solve_rate is None else solve_rate
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    lines = []
    for step in range(1, steps + 1):
        line = {"step": step, "student/solve_rate": solve_rate + step / 1000}
        line |= {"teacher/valid_frac": 0.9, "total/generated_tokens": tokens, "time/step": 1.0}
        if step in evals:
            line["eval/greedy"] = evals[step]
        lines.append(line)
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def write_arm(folder, scores, first_seed=1, **more):
    for i, score in enumerate(scores):
        seed = first_seed + i
        evals = {1: 0.3, 10: 0.32, 20: score}
        rate = (0.5 if score is None else score) + i / 100
        rate += Random(folder.name).random() / 1000
        write_run(folder / f"seed_{seed}", evals, seed=seed, solve_rate=rate, **more)
    return f"{folder.name}={folder}"


def row_of(compared, name):
    return next(row for row in compared.rows if row.metric.name == name)


def test_a_difference_with_its_cost(tmp_path):
    first = write_arm(tmp_path / "single", [0.34, 0.35, 0.36], tokens=100)
    population = {**SETTINGS["population"], "teacher_reward": "learnability"}
    other = write_arm(tmp_path / "pair", [0.40, 0.41, 0.42], tokens=210, population=population)
    compared = compare_arms([first, other])
    (pair,) = compared.pairs
    assert pair.metric.name == "eval/greedy" and (pair.arm, pair.than) == ("pair", "single")
    assert pair.difference.mean == pytest.approx(0.06) and pair.difference.low > 0
    assert pair.tokens == pytest.approx(2.1)
    for phrase in ("6.0", "3 seeds", "2.1"):
        assert phrase in pair.sentence
    assert pair.sentence.endswith("; rewards differ")


def test_unequal_lengths_are_compared_where_both_have_an_eval(tmp_path):
    """README's own `compare runs/mine runs/demo` had no value at step 32."""
    write_run(tmp_path / "short", {1: 0.3, 5: 0.32, 10: 0.35}, steps=10)
    write_run(tmp_path / "long", {1: 0.31, 5: 0.33, 32: 0.5}, steps=32, seed=2)
    compared = compare_arms([str(tmp_path / "short"), str(tmp_path / "long")])
    row = row_of(compared, "eval/greedy")
    assert (compared.step, row.step) == (10, 5)
    assert [list(of.samples.values()) for of in row.measured] == [[0.32], [0.33]]
    assert compared.pairs[0].tokens == 1.0, "of the steps that both have"
    assert "at step 5, the last at which all have a value" in compared.pairs[0].sentence
    assert "No verdict" in compared.pairs[0].sentence
    assert row.difference(1)[1] == "no verdict"


def changed(key, value=None):
    """The arguments of `write_run` for another value of a setting, or none."""
    group, name = key.split(".")
    return {group: {**SETTINGS[group], name: value} if value else
            {k: v for k, v in SETTINGS[group].items() if k != name}}  # fmt: skip


KEYS = ["eval.seed", "eval.tasks_per_type", "task.types", "task.domain", "base.prompt_format",
        "engine.max_answer_tokens"]  # fmt: skip
ALIKE = (0.40, 0.41, 0.42)


@pytest.mark.parametrize(
    ("reason", "scores", "settings"),
    [
        ("eval.tasks_per_type differs", ALIKE, changed("eval.tasks_per_type", 20)),
        ("eval.seed differs", ALIKE, changed("eval.seed", 8)),
        ("eval.strata differs", ALIKE, changed("eval.strata", ["deep"])),
        ("task.types differs", ALIKE, changed("task.types", ["code_o", "code_i"])),
        ("engine.max_answer_tokens differs", ALIKE, changed("engine.max_answer_tokens", 5)),
        *((f"{key} of b is unknown", ALIKE, changed(key)) for key in KEYS),
        *(
            (f"an impossible value, {value:g} at step 20", (0.40, 0.41, value), {})
            for value in (3.4, -0.4, 41.0)
        ),
    ],
)
def test_what_was_not_or_may_not_have_been_measured_alike_is_never_subtracted(
    tmp_path, reason, scores, settings
):
    first = write_arm(tmp_path / "a", [0.34, 0.35, 0.36])
    other = write_arm(tmp_path / "b", scores, **settings)
    for arms in ([first, other], [other, first]):
        compared = compare_arms(arms)
        assert compared.pairs[0].metric is None and reason in compared.pairs[0].sentence
        difference = compared.to_json()["metrics"][0]["arms"]["ab"[arms[1] == other]]["difference"]
        assert (difference["mean"], difference["low"]) == (None, None)


def test_an_arm_is_called_by_the_end_of_its_path_that_no_other_unnamed_one_has(tmp_path):
    paths = [tmp_path / end for end in ("a/4t4s", "b/4t4s", "c/1t1s")]
    for seed, path in enumerate(paths, 1):
        write_run(path, {20: 0.3}, seed=seed)
    a, b, c = map(str, paths)
    assert [arm.name for arm in arms_of([a, b, c])] == ["a/4t4s", "b/4t4s", "1t1s"]
    assert [arm.name for arm in arms_of([f"first={a}", b, c])] == ["first", "4t4s", "1t1s"]
    assert [arm.name for arm in arms_of([f"4t4s={a}", b])] == ["4t4s", "b/4t4s"]


@pytest.mark.parametrize("score", [0.4, 0.5])
def test_a_seed_twice_is_warned_of_and_a_copied_run_refused(tmp_path, score):
    first = write_arm(tmp_path / "a", [0.34, 0.36])
    write_run(tmp_path / "x", {20: 0.4}, seed=5, solve_rate=0.3)
    write_run(tmp_path / "y", {20: score}, seed=5, solve_rate=score - 0.1)
    x, y = (tmp_path / name / "metrics.jsonl" for name in "xy")
    if score == 0.4:
        y.write_text(x.read_text())
    given = [first, f"b={tmp_path / 'x'}", f"b={tmp_path / 'y'}"]
    if score == 0.4:
        with refuses(tmp_path / "y"):
            compare_arms(given)
    else:
        warnings = compare_arms(given).warnings
        assert any("one seed twice" in warning for warning in warnings)


def write_figures(run, value=0.5, **changed):
    lines = [{"model": "base", "role": "base", "k": 1, "cells": {"all": {"value": 0.1}}}]
    lines += [{"model": "members (mean)", "role": "summary", "k": 1}]
    lines[1]["cells"] = {"MBPP+": {"value": 0.3}, "all": {"value": value}}
    content = {"benchmarks": [{"name": "mbpp_plus"}], "samples": 1, "temperature": 0.0}
    (run / "evaluation").mkdir()
    figures = {**content, "lines": lines, **changed}
    (run / "evaluation/figures.json").write_text(json.dumps(figures))
    return str(run)


BASE_ALONE = [{"model": "base", "role": "base", "k": 1, "cells": {"all": {"value": 0.7}}}]


@pytest.mark.parametrize(
    ("figures", "metric", "difference"),
    [
        ({}, "benchmark/pass@1", 0.2),
        ({"samples": 4}, "eval/greedy", 0.0),
        ({"lines": BASE_ALONE}, "eval/greedy", 0.0),
        ({"step": 20}, "benchmark/pass@1", 0.2),
        ({"step": 10}, "eval/greedy", 0.0),  # of members before the run went on
    ],
)
def test_benchmarks_are_the_skill_where_both_were_asked_alike(
    tmp_path, figures, metric, difference
):
    first = write_figures(write_run(tmp_path / "a", {20: 0.4}))
    other = write_figures(write_run(tmp_path / "b", {20: 0.4}, seed=2), 0.7, **figures)
    (pair,) = compare_arms([first, other]).pairs
    assert pair.metric.name == metric and pair.difference.mean == pytest.approx(difference)


@pytest.mark.parametrize(
    "damage",
    [{"lines": 3}, {"lines": [{"k": 1}]}, {"temperature": "x"}, {"value": 10**400}, {"value": []}],
)
def test_damaged_benchmark_figures_are_refused_with_their_place(tmp_path, damage):
    run = write_figures(write_run(tmp_path / "a", {20: 0.4}), **damage)
    write_run(tmp_path / "b", {20: 0.4})
    with refuses(str(tmp_path / "a/evaluation/figures.json")):
        compare_arms([run, str(tmp_path / "b")])


LOG = "".join(
    f"step:{step} - gen_code_o/format_score:0.5 - pred_code_o/accuracy:0.4 - "
    f"val/test_score/humaneval:0.{step}\n"
    for step in range(1, 21)
)


def test_a_stock_log_measures_otherwise(tmp_path):
    log = tmp_path / "azr.log"
    log.write_text(LOG)
    other = write_arm(tmp_path / "b", [0.44, 0.46])
    compared = compare_arms([f"stock={log}", other])
    for name in ("solve_rate", "valid_frac"):
        test, _ = row_of(compared, name).difference(1)
        assert test.mean != test.mean
    assert row_of(compared, "validation").measured[1].missing


def test_terminal_json_and_page(tmp_path):
    first = write_arm(tmp_path / "a<b", [0.34, 0.36])
    other = write_arm(tmp_path / "\x1b[31mb", [0.44, 0.46])
    compared = compare_arms([first, other])
    console = Console(record=True, width=200, file=io.StringIO())
    print_comparison(compared, console)
    text = console.export_text()
    assert "\x1b[31mb" not in text
    json.dumps(compared.to_json(), allow_nan=False)
    page = write_comparison(compared, tmp_path / "out.html").read_text()
    assert "a&lt;b" in page and "a<b" not in page.replace("a\\u003cb", "")
    assert "http-equiv" in page and 'class="vega"' in page


@pytest.mark.parametrize("arguments", [["a"], ["a", "a"], ["x=a", "x=b"], ["a", "nothing"]])
def test_what_is_not_a_comparison(tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        write_run(tmp_path / name, {20: 0.4})
    with pytest.raises(UserError):
        compare_arms(arguments)


@pytest.mark.parametrize("value", [None, "nan", float("inf"), float("nan"), "missing", "early"])
def test_a_seed_that_diverged_is_never_dropped_in_silence(tmp_path, value):
    """ "b scores 5.5 points higher [3.0, 8.0], 2 seeds against 3" was said of this."""
    first = write_arm(tmp_path / "a", [0.34, 0.35, 0.36])
    other = write_arm(tmp_path / "b", [0.40, 0.41, 0.42])
    path = tmp_path / "b" / "seed_3" / "metrics.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    if value == "missing":
        del lines[-1]["eval/greedy"]
    elif value == "early":
        del lines[5:]
    else:
        lines[-1]["eval/greedy"] = value
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    compared = compare_arms([first, other])
    (pair,) = compared.pairs
    if value == "early":
        assert "b, seed_3: 5 of 20 steps are recorded." in compared.warnings
    if value == "missing":  # all are compared where all were measured
        assert "at step 10, the last at which all have a value" in pair.sentence
        return
    assert pair.difference.counts == (3, 3) and not pair.difference.low > 0
    assert pair.difference.mean == pytest.approx(0.27 - 0.35), "at the last step, not the seed's"
    assert f"counted as 0% in b: {path.parent} (" in pair.sentence
    (dropped,) = compare_arms([first, other], drop_failed=True).pairs
    assert (
        dropped.difference.counts == (2, 3) and f"left out of b: {path.parent}" in dropped.sentence
    )
    assert dropped.sentence.startswith("No verdict")


def test_a_run_without_any_eval_gets_no_verdict_on_the_mean(tmp_path):
    first = write_arm(tmp_path / "a", [0.34, 0.35, 0.36])
    other = write_arm(tmp_path / "b", [0.40, 0.41, 0.42])
    write_run(tmp_path / "b" / "seed_4", {}, seed=4)
    (pair,) = compare_arms([first, other]).pairs
    assert pair.metric is None and "seed_4 of b has no value" in pair.sentence


@pytest.mark.parametrize("files", [("a.parquet", "b.parquet"), ("a.parquet", ""), ("", "")])
def test_validation_on_other_or_unknown_files_is_never_subtracted(tmp_path, files):
    for place, file in enumerate(files):
        printed = f"'val_files': '{file}'\n" if file else ""
        (tmp_path / f"{place}.log").write_text(printed + LOG.replace("0.4", f"0.{place + 4}"))
    (pair,) = compare_arms([str(tmp_path / "0.log"), str(tmp_path / "1.log")]).pairs
    assert pair.metric is None and "data.val_files" in pair.sentence


@pytest.mark.parametrize(
    ("scores", "others", "tokens", "phrases"),
    [
        ([0.34, 0.35, 0.36], [0.4, 0.4, 0.4], 100, ["No verdict", "All seeds of b score the same"]),
        ([0.34, 0.35, 0.36], [0.4, 0.41], 100, ["No verdict", ". Fewer than three"]),
        ([0.65] * 3, [0.65] * 3, 100, ["b scores as high as a on", "All seeds of a and of b"]),
        ([0.34, 0.35, 0.36], [0.4, 0.41, 0.42], -100, ["tokens unknown"]),
        ([0.30, 0.31, 0.32, 0.05], [0.31, 0.32, 0.33, 0.34], 100, ["seeds of a lie far apart"]),
        # sd 5 points, at most 5 * sqrt(4 / 1.649) = 7.79 by the chi-square of 4 degrees of freedom:
        # (t(.975, 2) + t(.9, 2)) * 7.79 * sqrt(2 / 3) = 39.35
        ([0.30, 0.35, 0.40], [0.31, 0.36, 0.41], 100, [
            "No difference is shown",
            "with 3 seeds differences above 39.3 points would show in 4 of 5 cases",
            "; 3 points would take up to 143",
        ]),
    ],
)  # fmt: skip
def test_a_sentence_says_what_its_numbers_cannot(tmp_path, scores, others, tokens, phrases):
    first = write_arm(tmp_path / "a", scores, tokens=tokens)
    (pair,) = compare_arms([first, write_arm(tmp_path / "b", others)]).pairs
    assert [phrase for phrase in phrases if phrase not in pair.sentence] == [], pair.sentence
    assert pair.badge == "no verdict" or not pair.sentence.startswith("No verdict")
    assert (pair.tokens is None) == (tokens < 0)


def test_pairs_of_several_arms_are_corrected_by_holm(tmp_path):
    """Of six equal arms of 4 seeds some pair "differed" in a third of comparisons."""
    scores = {
        "a": [0.30, 0.32, 0.33, 0.35],
        "b": [0.34, 0.36, 0.37, 0.39],
        "c": [0.3, 0.33, 0.34, 0.36],
    }
    arms = {name: write_arm(tmp_path / name, of) for name, of in scores.items()}
    (alone,) = compare_arms([arms["a"], arms["b"]]).pairs
    together = compare_arms(list(arms.values())).pairs[0]
    assert together.difference.p == pytest.approx(3 * alone.difference.p)
    assert "by Holm for 3 pairs" in together.sentence and "Holm" not in alone.sentence


def test_copies_are_refused_whatever_was_edited_in_them(tmp_path):
    first, other = (write_arm(tmp_path / name, [0.3, 0.31, 0.32]) for name in "ab")
    path = tmp_path / "b" / "seed_9"
    shutil.copytree(tmp_path / "b" / "seed_1", path)
    text = (path / "config.yaml").read_text()
    (path / "config.yaml").write_text(text.replace("seed: 1\n", "seed: 9\n"))
    text = (path / "metrics.jsonl").read_text()
    (path / "metrics.jsonl").write_text(text.replace("0.3,", "0.37,").replace("1.0}", "2.0}"))
    with refuses("seed_9"):
        compare_arms([first, other])
    with refuses("given twice, as a and c"):
        compare_arms([first, f"c={tmp_path / 'a' / 'seed_1'}"])


def test_seeds_whose_folders_have_one_name_are_all_drawn(tmp_path):
    paths = [tmp_path / f"{n}" / "run" for n in range(3)]
    for seed, path in enumerate(paths):
        write_run(path, {1: 0.3, 20: 0.4 + seed / 100}, seed=seed)
    arms = arms_of([*(f"a={path}" for path in paths), write_arm(tmp_path / "b", [0.3, 0.31])])
    drawn = _lines(arms, all_metrics()["eval/greedy"])
    assert drawn[drawn["series"] == "a"]["member"].nunique() == 3


def test_a_metric_of_ones_own_has_a_row_and_a_chart(tmp_path):
    metric = asdict(Metric("loops", "With a \x1bloop", percent=True, roles=(), section="space"))
    for arm, share in (("one", 0.1), ("two", 0.2)):
        for seed in (1, 2, 3):
            run = write_run(tmp_path / arm / f"seed_{seed}", {1: 0.3, 20: 0.5}, seed=seed)
            lines = [json.loads(line) for line in (run / "metrics.jsonl").open()]
            for line in lines:
                line["loops"] = share + line["step"] * seed / 1000
                line["lines"] = 1.0
            text = "".join(json.dumps(line) + "\n" for line in lines)
            (run / "metrics.jsonl").write_text(text)
            solve_rate = {**metric, "name": "solve_rate", "title": "Not theirs to name"}
            environment = {"metrics": [metric, solve_rate]}
            (run / "environment.json").write_text(json.dumps(environment))
    compared = compare_arms([str(tmp_path / "one"), str(tmp_path / "two")])
    row = row_of(compared, "loops")
    # "change" is the default: the mean of the last two steps minus that of the first two.
    assert row.title == "With a \\x1bloop, change"
    assert row.value(0).mean == pytest.approx(0.018 * 2)
    assert row_of(compared, "solve_rate").metric.title == "Solve rate"
    page = write_comparison(compared, tmp_path / "page.html").read_text()
    assert page.count("With a") > 1 and "Not theirs" not in page
    (run / "environment.json").write_text(json.dumps({"metrics": [{**metric, "section": "<b>"}]}))
    with pytest.raises(UserError, match=r"environment.json is damaged: metrics.0.section"):
        compare_arms([str(tmp_path / "one"), str(tmp_path / "two")])


def test_a_folder_of_arms_is_taken_apart(tmp_path):
    for name, scores in (("a", [0.3, 0.31]), ("b", [0.4, 0.41])):
        write_arm(tmp_path / "arms" / name, scores)
    write_run(tmp_path / "arms" / "single_run", {20: 0.5})
    (tmp_path / "arms" / "results").mkdir()
    arms = arms_of([str(tmp_path / "arms")])
    assert {arm.name: len(arm.runs) for arm in arms} == {"a": 2, "b": 2, "single_run": 1}


def test_a_plan_has_the_spread_within_arms_and_the_seeds_for_it(tmp_path, capsys):
    """Seeds differ by 2 points within each arm, whatever the arms' means."""
    arms = [write_arm(tmp_path / n, [m, m + 0.02, m + 0.04]) for n, m in (("a", 0.3), ("b", 0.6))]
    plan = plan_seeds(arms)
    (row,) = plan["rows"]
    most = upper_sd(0.02, 4)
    assert plan["sd"] == pytest.approx(0.02) and row["pairs"] == 1
    assert row["shown"][6] == pytest.approx(detectable(most, 6))
    assert row["seeds_for_points"][3] == seeds_for(most, 0.03)
    (of_three,) = plan_seeds(arms, pairs=[3])["rows"]
    assert of_three["shown"][6] == pytest.approx(detectable(most, 6, 0.05 / 3))
    assert of_three["seeds_for_points"][3] == seeds_for(most, 0.03, 0.05 / 3)
    print_plan(plan)
    out = capsys.readouterr().out
    assert "2.0 points" in out and "6 runs of 2 arms" in out
    json.dumps(plan, allow_nan=False)
    assert len(plan_seeds(arms[:1])["rows"]) == 1, "one arm is enough for a plan"
    with refuses("no arm has two seeds"):
        plan_seeds([str(write_run(tmp_path / "alone", {20: 0.5}))])


def test_an_arm_that_cannot_be_compared_moves_no_other_pair(tmp_path):
    """The third arm ends at step 10 and has another eval."""
    first = write_arm(tmp_path / "a", [0.34, 0.35, 0.36])
    second = write_arm(tmp_path / "b", [0.44, 0.45, 0.46])
    other = {**SETTINGS["eval"], "seed": 8}
    runs = [
        write_run(tmp_path / "c" / f"seed_{n}", {1: 0.3, 10: 0.4 + n / 100}, 10, n, eval=other)
        for n in (1, 2, 3)
    ]
    third = f"c={runs[0].parent}"
    (alone,) = compare_arms([first, second]).pairs
    pairs = compare_arms([third, first, second]).pairs
    assert pairs[0] == alone, "and pairs that are compared stand first"
    assert [pair.badge for pair in pairs] == ["better", "not compared", "not compared"]


def test_the_answer_and_the_picture_stand_before_refusals(tmp_path):
    arms = [
        write_arm(tmp_path / name, scores) for name, scores in
        (("a", [0.34, 0.35, 0.36]), ("b", [0.24, 0.25, 0.26]))
    ]  # fmt: skip
    other = {**SETTINGS["eval"], "seed": 8}
    third = write_arm(tmp_path / "c", [0.34, 0.35, 0.36], eval=other)
    compared = compare_arms([*arms, third])
    page = write_comparison(compared, tmp_path / "page.html").read_text()
    answer = page.index("b: worse</span> b scores 10.0 points lower than a")
    assert answer < page.index("<figure") < page.index("not compared</span> c and a")


def test_the_differences_of_a_table_are_one_family():
    def row(p, name="lines"):
        tests = {
            (1, 0): Estimate(1.0, 0.1, 1.9, (4, 4), p),
            (2, 1): Estimate(1, 0, 2, (4, 4), 0.01),
        }
        metric = Metric(name, name)
        return SimpleNamespace(metric=metric, tests=tests, corrected=with_holm(tests))

    rows = [row(0.02), *(row(0.5) for _ in range(7)), row(0.03, "eval/greedy")]
    assert rows[0].corrected[1, 0].p == pytest.approx(0.02)  # within the row
    correct_table(rows)
    assert rows[0].corrected[1, 0].p == pytest.approx(2 * 8 * 0.02)
    assert {row.corrected[1, 0].p for row in rows[1:8]} == {1.0}
    assert rows[8].corrected[1, 0].p == pytest.approx(0.03), "the sentence has it with the pairs"


def test_a_seed_that_is_no_number_is_compared_as_text(tmp_path):
    first, second = (write_arm(tmp_path / name, [0.3, 0.4]) for name in "ab")
    for file in (tmp_path / "a").rglob("config.yaml"):
        file.write_text(re.sub(r"(?m)^seed: .*", "seed: [1]", file.read_text()))
    assert "a has one seed twice" in " ".join(compare_arms([first, second]).warnings)
