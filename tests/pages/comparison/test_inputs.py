from __future__ import annotations

from pathlib import Path

import pytest
from made_up_run import make_run, write_run

from azr_population.errors import UserError
from azr_population.pages.comparison.differences import differences
from azr_population.pages.comparison.inputs import arms_of, flat


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    for arm in ("one", "other"):
        for seed in (2, 10):
            write_run(tmp_path / arm / f"seed_{seed}", make_run(steps=4), steps=4)
    (tmp_path / "azr.log").write_text("step:7 - pred_code_i/accuracy:0.5 - actor/entropy:0.25\n")
    return tmp_path


def test_folders_of_seeds_runs_and_logs(runs: Path) -> None:
    arms = arms_of([str(runs / "one"), str(runs / "other/seed_2"), f"stock={runs / 'azr.log'}"])
    assert [arm.name for arm in arms] == ["one", "other/seed_2", "stock"]
    assert [run.name for run in arms[0].runs] == ["seed_2", "seed_10"]
    assert arms[0].runs[0].last == arms[0].runs[0].planned == 4
    assert len(arms[0].runs[0].series("validity")) == 4
    log = arms[2].runs[0]
    assert (log.last, log.planned, log.series("entropy")) == (7, None, [(7, 0.25)])
    assert log.consumption(7) == {"members": 1, "steps": 1}


def test_one_name_makes_one_arm(runs: Path) -> None:
    arms = arms_of([f"a={runs / 'one/seed_2'}", f"b={runs / 'other'}", f"a={runs / 'one/seed_10'}"])
    assert [(arm.name, len(arm.runs)) for arm in arms] == [("a", 2), ("b", 2)]


def test_runs_without_a_name_are_told_apart_by_their_paths(runs: Path) -> None:
    for name in ("a/run", "b/run", "c"):
        write_run(runs / name, make_run(steps=2))
    arms = arms_of([str(runs / name) for name in ("a/run", "b/run", "c", "one")])
    assert [(arm.name, len(arm.runs)) for arm in arms] == [
        ("a/run", 1),
        ("b/run", 1),
        ("c", 1),
        ("one", 2),
    ]


def test_a_path_may_hold_an_equals_sign(runs: Path) -> None:
    odd = runs / "lr=0.3"
    write_run(odd, make_run(steps=2))
    arms = arms_of([str(odd), str(runs / "one")])
    assert arms[0].name == "lr=0.3"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["one"], "needs two arms, and there is 1"),
        (["a=one", "a=other"], "needs two arms, and there is 1"),
        (["one", "other", "one/../one"], "seed_2 is given twice as a seed of one"),
        (["one", "nowhere"], "nowhere is neither a run's folder nor a log file"),
        (["one", "."], r"no run in .*: there is no config\.yaml in it, nor folders seed_\*"),
    ],
)
def test_what_cannot_be_compared_is_told(
    runs: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: str
) -> None:
    monkeypatch.chdir(runs)
    with pytest.raises(UserError, match=words):
        arms_of(arguments)


def test_the_base_is_its_path_or_the_name_of_one_that_ships(tmp_path: Path) -> None:
    configs = ("base: {name: nano, path: null}\n", "base: {name: hf, path: /models/x}\n")
    for name, config in zip("ab", configs, strict=True):
        write_run(tmp_path / name, {}, config=config)
    arms = arms_of([str(tmp_path / "a"), str(tmp_path / "b")])
    assert [arm.runs[0].settings for arm in arms] == [{"base": "nano"}, {"base": "/models/x"}]


def test_the_base_of_a_run_inside_azr_is_that_of_verls_settings(tmp_path: Path) -> None:
    config = "actor_rollout_ref: {model: {path: /models/x}}\n"
    for name in ("azr", "other"):
        write_run(tmp_path / name, {}, config=config)
    for arm in arms_of([str(tmp_path / "azr"), str(tmp_path / "other")]):
        assert arm.runs[0].settings["base"] == "/models/x"


def test_the_base_is_told_by_its_weights_where_they_are_known(tmp_path: Path) -> None:
    for name, weights in (("a", "1234"), ("b", "1234"), ("c", "5678")):
        config = f"base: {{name: hf, path: /models/{name}}}\n"
        write_run(tmp_path / name, {}, config=config)
        (tmp_path / name / "environment.json").write_text(f'{{"base": "{weights}"}}')
    one, same, other = arms_of([str(tmp_path / name) for name in "abc"])
    assert differences([one, same]).rows == []
    (row,) = differences([one, other]).rows
    assert (row.group, row.key, row.values) == ("base", "base.weights", ("1234", "5678"))


def test_a_base_without_recorded_weights_is_compared_by_its_name(tmp_path: Path) -> None:
    for name, base in (("older", "nano"), ("newer", "nano"), ("other", "x"), ("kept", "hf")):
        config = f"base: {{name: {base}, path: null}}\nrun: {{steps: 0}}\n"
        write_run(tmp_path / name, {}, config=config)
    (tmp_path / "newer" / "environment.json").write_text('{"base": "1234"}')
    names = ("older", "newer", "other", "kept")
    older, newer, other, kept = arms_of([str(tmp_path / name) for name in names])
    assert differences([older, newer]).rows == []
    assert differences([older, newer]).same[0] == "base model"
    (row,) = differences([newer, other]).rows
    assert (row.key, row.values) == ("base", ("nano", "x"))
    assert differences([newer, kept]).rows == [], "a kept run does not tell its path"
    assert any("by kept, so unknown: base model" in w for w in differences([newer, kept]).warnings)


def test_settings_are_flat() -> None:
    assert flat({"a": {"b": 1, "c": {}}, "d": [1, 2]}) == {"a.b": 1, "a.c": {}, "d": [1, 2]}
    assert flat(None) == {}
