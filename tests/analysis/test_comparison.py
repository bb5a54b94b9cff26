"""Which arm is better: what may be subtracted, from which step, and what is said of it."""

import io
import json

import pytest
import yaml
from refusals import refuses
from rich.console import Console

from azr_population.analysis.comparison import compare_arms
from azr_population.analysis.comparison_page import print_comparison, write_comparison
from azr_population.analysis.inputs import arms_of
from azr_population.errors import UserError

SETTINGS = {
    "population": {"teachers": 1, "students": 1, "teacher_reward": "adversarial"},
    "eval": {"every": 10, "tasks_per_type": 60, "seed": 7},
    "task": {"types": ["code_o"]},
    "base": {"name": "nano"},
}


def write_run(folder, evals, steps=20, seed=1, solve_rate=0.5, tokens=100, **changed):
    folder.mkdir(parents=True)
    config = {"seed": seed, **SETTINGS, "run": {"steps": steps}, **changed}
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
        write_run(folder / f"seed_{seed}", evals, seed=seed, solve_rate=0.5 + i / 100, **more)
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


def test_unequal_lengths_never_take_an_early_eval_for_the_end(tmp_path):
    # The longer run's evals are of steps 1 and 32: it has none near step 10.
    write_run(tmp_path / "short", {1: 0.3, 10: 0.35}, steps=10)
    write_run(tmp_path / "long", {1: 0.31, 32: 0.5}, steps=32, seed=2)
    compared = compare_arms([str(tmp_path / "short"), str(tmp_path / "long")])
    row = row_of(compared, "eval/greedy")
    assert compared.step == 10
    assert row.missing[0] == "" != row.missing[1] and row.samples[1] == {}
    test, _ = row.difference(1)
    assert test.mean != test.mean
    assert compared.pairs[0].metric is None


def test_the_last_step_that_both_have(tmp_path):
    write_run(tmp_path / "a", {1: 0.3, 19: 0.4, 20: 0.6}, steps=20)
    write_run(tmp_path / "b", {1: 0.3, 19: 0.45, 24: 0.9}, steps=24, seed=2)
    row = row_of(compare_arms([str(tmp_path / "a"), str(tmp_path / "b")]), "eval/greedy")
    assert row.step == 19
    assert [list(sample.values()) for sample in row.samples] == [[0.4], [0.45]]


@pytest.mark.parametrize(
    "changed",
    [
        {"eval": {**SETTINGS["eval"], "tasks_per_type": 20}},
        {"eval": {**SETTINGS["eval"], "seed": 8}},
        {"task": {"types": ["code_o", "code_i"]}},
        {"engine": {"max_answer_tokens": 5}},
    ],
)
def test_unequal_evals_are_never_subtracted(tmp_path, changed):
    engine = {"engine": {"max_answer_tokens": 99}}
    first = write_arm(tmp_path / "a", [0.34, 0.36], **engine)
    other = write_arm(tmp_path / "b", [0.44, 0.46], **{**engine, **changed})
    compared = compare_arms([first, other])
    test, _ = row_of(compared, "eval/greedy").difference(1)
    assert test.mean != test.mean and test.low != test.low
    assert compared.pairs[0].metric is None
    figures = compared.to_json()["metrics"][0]["arms"]["b"]
    assert figures["difference"]["mean"] is None and figures["mean"] == pytest.approx(0.45)


def test_an_arm_is_called_by_the_end_of_its_path_that_no_other_unnamed_one_has(tmp_path):
    paths = [tmp_path / end for end in ("a/4t4s", "b/4t4s", "c/1t1s")]
    for seed, path in enumerate(paths, 1):
        write_run(path, {20: 0.3}, seed=seed)
    a, b, c = map(str, paths)
    assert [arm.name for arm in arms_of([a, b, c])] == ["a/4t4s", "b/4t4s", "1t1s"]
    assert [arm.name for arm in arms_of([f"first={a}", b, c])] == ["first", "4t4s", "1t1s"]


@pytest.mark.parametrize("score", [0.4, 0.5])
def test_a_seed_twice_is_warned_of_and_a_copied_run_refused(tmp_path, score):
    first = write_arm(tmp_path / "a", [0.34, 0.36])
    write_run(tmp_path / "x", {20: 0.4}, seed=5)
    write_run(tmp_path / "y", {20: score}, seed=5)
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


@pytest.mark.parametrize("samples", [1, 4])
def test_benchmarks_are_the_skill_where_both_were_asked_alike(tmp_path, samples):
    first = write_figures(write_run(tmp_path / "a", {20: 0.4}))
    other = write_figures(write_run(tmp_path / "b", {20: 0.4}, seed=2), 0.7, samples=samples)
    (pair,) = compare_arms([first, other]).pairs
    assert pair.metric.name == ("benchmark/pass@1" if samples == 1 else "eval/greedy")
    assert pair.difference.mean == pytest.approx(0.2 if samples == 1 else 0.0)


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
    assert row_of(compared, "validation").missing[1]


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
