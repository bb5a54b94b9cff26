"""Which runs are reused, resumed, refused."""

import json
import re
from dataclasses import replace

import pytest

from azr_population.cli import main
from azr_population.errors import UserError
from azr_population.experiments.budgets import learning_rates
from azr_population.experiments.runs import check_runs, keep_runs, plan_runs, runs_there
from azr_population.runs import RunDirectory
from azr_population.runs.diagnostics import consumption, last_step, series


@pytest.fixture
def planned(arms, recipe, tmp_path):
    return plan_runs(recipe, arms, recipe.arms, seeds=2, steps=4, out=tmp_path)


def test_runs_are_planned_seed_by_seed(planned, tmp_path):
    assert [one.name for one in planned] == ["one seed 1", "two seed 1", "one seed 2", "two seed 2"]
    assert planned[3].path == tmp_path / "two" / "seed_2"
    assert planned[3].overrides == (
        "exam.attempts=2",
        "population=single",
        "population.rows=24",
        "seed=2",
    )


def test_runs_that_measure_time_are_their_recipes_own(arms, recipe, tmp_path):
    own = replace(recipe, own_runs=True)
    assert plan_runs(own, arms, ("one",), 1, 4, tmp_path)[0].path == tmp_path / "test/one/seed_1"


def test_a_base_of_an_arms_own_lies_beside_the_runs(arms, recipe, tmp_path):
    weak = replace(arms, arms={"one": replace(arms.find("one"), base="weak")})
    (run,) = plan_runs(recipe, weak, ("one",), 1, 4, tmp_path)
    assert run.base == tmp_path / "bases" / "weak"
    assert run.overrides[-1] == f"base.path={run.base}"


def test_a_finished_run_is_reused_also_when_it_is_longer(planned, fake_run, metrics):
    run = planned[0]
    fake_run(run.path, run.overrides, [metrics(n, 0.5) for n in range(1, 7)])
    check_runs(planned, resume=False)
    assert run.finished and run.done == 6
    assert not planned[1].started
    assert [len(own) for own in runs_there(planned).values()] == [1]


def test_where_and_how_often_a_run_is_examined_does_not_make_it_another(planned, fake_run, metrics):
    run = planned[0]
    free = ["run.checkpoint_every=25", "exam.every=25", "referee.workers=1", "run.steps=150"]
    fake_run(run.path, [*run.overrides, *free], [metrics(n, 0.5) for n in range(1, 5)])
    check_runs(planned, resume=False)


def test_an_unfinished_run_is_named_or_resumed(planned, fake_run, metrics):
    fake_run(planned[0].path, planned[0].overrides, [metrics(1, 0.5), metrics(2, 0.5)])
    with pytest.raises(UserError, match=r"one/seed_1 stands at step 2 of 4.*--resume"):
        check_runs(planned, resume=False)
    check_runs(planned, resume=True)


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("population.rows=12", "population.rows=12 instead of"),
        ("exam.attempts=3", "exam.attempts=3 instead of 2"),
        ("seed=7", "seed=7 instead of 1"),
    ],
)
def test_a_run_with_another_configuration_is_refused_with_what_differs(
    planned, fake_run, override, said, metrics
):
    run = planned[0]
    fake_run(run.path, [*run.overrides, override], [metrics(n, 0.5) for n in range(1, 5)])
    for resume in (False, True):
        with pytest.raises(UserError, match=f"holds another run: it has {said}"):
            check_runs(planned, resume)


def test_a_base_is_the_same_however_its_folder_is_written(
    planned, fake_run, tmp_path, monkeypatch, metrics
):
    monkeypatch.chdir(tmp_path)
    run = replace(planned[0], overrides=(*planned[0].overrides, "base.path=bases/weak"))
    absolute = [*planned[0].overrides, f"base.path={tmp_path}/bases/weak"]
    fake_run(run.path, absolute, [metrics(n, 0.5) for n in range(1, 5)])
    check_runs([run], resume=False)


def test_runs_on_different_weights_do_not_stand_in_one_table(planned, fake_run, metrics):
    for run, weights in zip(planned, ("abc", "abc", "abc", "def"), strict=True):
        fake_run(run.path, run.overrides, [metrics(n, 0.5) for n in range(1, 5)])
        (run.path / "environment.json").write_text(json.dumps({"base": weights}))
    check_runs(planned[:3], resume=False)
    with pytest.raises(
        UserError, match=r"two.seed_2 was played on a base with the hash def, .* abc"
    ):
        check_runs(planned, resume=False)


def test_a_folder_that_is_no_run_is_left_alone(planned):
    planned[0].path.mkdir(parents=True)
    (planned[0].path / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match="not empty and no run"):
        check_runs(planned, resume=True)
    assert (planned[0].path / "notes.txt").exists()


def test_what_a_killed_start_left_behind_is_cleared_away(planned):
    (planned[0].path / "members").mkdir(parents=True)
    (planned[0].path / "environment.json").write_text("{}")
    check_runs(planned, resume=False)
    assert not planned[0].path.exists()


def test_a_configuration_that_cannot_be_read_is_named(planned):
    planned[0].path.mkdir(parents=True)
    (planned[0].path / "config.yaml").write_text("populations: {}\n")
    with pytest.raises(UserError, match=r"one/seed_1 cannot be reused: .*another --out"):
        check_runs(planned, resume=False)


def test_a_torn_last_line_does_not_count_as_a_step(tmp_path):
    assert last_step(RunDirectory(tmp_path)) == 0
    (tmp_path / "metrics.jsonl").write_text('{"step":1}\n{"step":2}\n{"st')
    assert last_step(RunDirectory(tmp_path)) == 2


@pytest.fixture
def kept(planned, fake_run, metrics, tmp_path):
    """A folder with the curves of seed 1 of both arms; the runs themselves are there as well."""
    for run, rate in zip(planned, (0.25, 0.75, 0.5, 0.5), strict=True):
        steps = 4 if run.seed == 1 else 2
        lines = [metrics(n, rate + n / 7, exam=0.1 * n) for n in range(1, steps + 1)]
        fake_run(run.path, run.overrides, lines)
    keep_runs(planned, tmp_path / "kept")
    return tmp_path / "kept"


def test_what_is_kept_of_a_run_tells_what_the_run_told(planned, kept):
    assert sorted(str(path.relative_to(kept)) for path in kept.rglob("*.*")) == [
        f"{arm}/seed_1/{file}"
        for arm in ("one", "two")
        for file in ("config.yaml", "curves.json", "environment.json")
    ], "unfinished runs are not kept"
    whole, curves = RunDirectory(planned[1].path), RunDirectory(kept / "two" / "seed_1")
    assert last_step(curves) == last_step(whole) == 4
    assert consumption(curves)["all"] == consumption(whole)["all"]
    assert learning_rates([curves]) == learning_rates([whole]) == "agent 0.001"
    shown = [("solve_rate", ""), ("solve_rate", "agent"), ("exam_mean", ""), ("exam_mean", "core")]
    for name, of in (*shown, ("mu", "")):
        told, expected = series(curves, name, of), series(whole, name, of)
        assert [step for step, _ in told] == [step for step, _ in expected]
        assert [v for _, v in told] == pytest.approx([v for _, v in expected], rel=1e-5)
    assert all(series(whole, name, of) for name, of in shown)
    with pytest.raises(UserError, match="diagnostic=solved_rate"):
        series(curves, "solved_rate")


def test_nothing_of_the_machine_is_kept(kept, tmp_path):
    for path in kept.rglob("*.*"):
        assert str(tmp_path) not in path.read_text()


def test_a_kept_run_stands_in_for_one_that_is_not_there(planned, kept, arms, recipe, tmp_path):
    def plan(out, steps=4, of=recipe):
        return plan_runs(of, arms, recipe.arms, 2, steps, out, kept)

    here, elsewhere = plan(tmp_path), plan(tmp_path / "elsewhere")
    assert [run.path for run in here] == [run.path for run in planned], (
        "what was played comes first"
    )
    assert [run.is_kept for run in elsewhere] == [True, True, False, False]
    assert [run.finished for run in elsewhere] == [True, True, False, False]
    check_runs(elsewhere, resume=False)
    assert not any(run.is_kept for run in plan(tmp_path / "elsewhere", steps=5)), "too short"
    timed = plan(tmp_path / "elsewhere", of=replace(recipe, own_runs=True))
    assert not any(run.is_kept for run in timed), "time is measured on the machine at hand"


def test_a_kept_run_of_other_settings_is_refused(kept, arms, recipe, tmp_path):
    path = kept / "two" / "seed_1" / "config.yaml"
    path.write_text(path.read_text().replace("rows: 24", "rows: 12"))
    planned = plan_runs(recipe, arms, recipe.arms, 1, 4, tmp_path / "elsewhere", kept)
    with pytest.raises(UserError, match=r"rows=12 instead of 24; leave out --kept"):
        check_runs(planned, resume=False)


def test_a_kept_run_is_neither_resumed_nor_reported(kept):
    for command in ("resume", "report"):
        assert main([command, str(kept / "one" / "seed_1")]) == 2
    assert len(list((kept / "one" / "seed_1").iterdir())) == 3, "nothing was written"


def test_kept_runs_are_compared_like_runs(kept, tmp_path, capsys):
    found = []
    for place in (kept, tmp_path):
        arms = [f"{arm}={place / arm / 'seed_1'}" for arm in ("one", "two")]
        assert main(["compare", *arms, "--out", str(tmp_path / "page.html")]) == 0
        page = (tmp_path / "page.html").read_text()
        found.append(json.loads(re.search(r'id="data">(.*?)</script>', page, re.S)[1])["charts"])
    assert found[0] and found[0] == found[1]


def test_kept_curves_that_are_damaged_are_named(kept):
    path = kept / "one" / "seed_1" / "curves.json"
    path.write_text(path.read_text()[:100])
    with pytest.raises(UserError, match=r"one/seed_1/curves.json cannot be read.*play the run"):
        series(RunDirectory(path.parent), "solve_rate")
