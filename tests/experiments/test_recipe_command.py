"""`azr-population recipe` as it is typed."""

import io
import json
from argparse import Namespace

import pytest

from azr_population.cli import main
from azr_population.experiments import recipe_command
from azr_population.experiments.arms import read_arms
from azr_population.experiments.recipe import read_recipe, recipe_names
from azr_population.experiments.recipe_command import is_planned_look


def test_the_list_has_every_recipe_with_its_arms_and_its_time(capsys):
    assert main(["recipe", "--list"]) == 0
    told = capsys.readouterr().out
    for name in recipe_names():
        assert f"\n{name} " in told
    assert "Fig 9" in told and "4t4s" in told and " min" in told


def test_without_a_name_there_is_the_list(capsys):
    assert main(["recipe"]) == 0
    assert "fig3_dynamics" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (
            ["fig4_complexities"],
            "there is no recipe fig4_complexities (did you mean fig4_complexity",
        ),
        (["fig"], "there is no recipe fig"),
        (["fig3_dynamics", "--kep"], "unrecognized arguments: --kep"),
        (["fig3_dynamics", "--arms", "3t3s"], "there is no arm 3t3s; choose from: 1t1s, "),
        (["ablation_shaping", "--scale", "7b"], "ablation_shaping has no 7b scale"),
        (["fig3_dynamics", "--draw"], "there is no run of fig3_dynamics in "),
        (["table2_wallclock", "--jobs", "2"], "so its runs go one by one: --jobs 1"),
        (
            ["table2_wallclock", "--kept"],
            "12 runs of table2_wallclock are not kept, because it measures the time",
        ),
        (
            ["fig3_dynamics", "--kept", "--seeds", "30-30"],
            "3 runs of fig3_dynamics are not kept, at 100 steps: single seed 30, 1t1s seed 30, ",
        ),
    ],
)
def test_mistakes_are_told_in_one_line(typed, said, capsys, tmp_path):
    assert main(["recipe", *typed, "--out", str(tmp_path)]) == 2
    told = capsys.readouterr().err
    assert said in told and told.count("\n") == 1


def test_a_base_that_is_to_be_made_first_is_told_before_a_run(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["recipe", "real_base", "--out", str(tmp_path / "out")]) == 2
    told = capsys.readouterr()
    assert "base.path=./bases/smollm2 is not there yet" in told.err and told.out == ""
    assert "azr-population base smollm2" in told.err and not (tmp_path / "out").exists()


def test_at_7b_the_commands_are_written_and_nothing_is_run(capsys, tmp_path):
    typed = ["table1_benchmarks", "--scale", "7b", "--seeds", "1", "--out", str(tmp_path)]
    assert main(["recipe", *typed]) == 0
    told = capsys.readouterr()
    lines = (tmp_path / "table1_benchmarks.sh").read_text().splitlines()
    assert told.out.splitlines() == lines
    assert lines[-1].startswith(f"azr-population evaluate {tmp_path}/single/seed_1 ")
    assert lines[-1].endswith('--data "${BENCHMARK_DATA:?name the folder of the benchmarks}"')
    assert lines[-2] == (
        '(cd "${AZR_HOME:?name your AZR checkout}" && bash scripts/selfplay/coder7b.sh '
        "trainer.total_training_steps=200 trainer.experiment_name=4t4s_seed_1 "
        "trainer.n_gpus_per_node=8 trainer.project_name=azr_population "
        f"+population=4t4s population.seed=1 population.run_dir={tmp_path}/4t4s/seed_1)"
    )
    assert "nothing was run, because 7B wants an AZR checkout and GPUs" in told.err
    assert "HumanEval+" in told.err and "OlympiadBench" in told.err


def test_a_recipes_own_programme_is_run_with_its_place_for_results(
    capfd, tmp_path, monkeypatch, recipe
):
    (tmp_path / "own.py").write_text(
        "import sys, pathlib; pathlib.Path(sys.argv[1], 'out.txt').write_text('ran')"
    )
    monkeypatch.setattr(type(recipe), "folder", tmp_path)
    own = type(recipe)("own", "t", "f", "s", scripts=("own.py {results}",))
    monkeypatch.setattr(recipe_command, "read_recipe", lambda name, arms: own)
    assert main(["recipe", "own", "--out", str(tmp_path / "runs")]) == 0
    assert (tmp_path / "runs/results/own/out.txt").read_text() == "ran"
    (tmp_path / "own.py").write_text("raise SystemExit(3)")
    assert main(["recipe", "own", "--out", str(tmp_path / "runs")]) == 2
    assert "own.py of own failed (exit code 3)" in capfd.readouterr().err


def test_only_what_is_asked_for_overwrites_the_record(tmp_path):
    recipe = read_recipe("fig3_dynamics", read_arms())

    def folder(*typed):
        parser = recipe_command.argparse.ArgumentParser()
        recipe_command.add_arguments(parser)
        return recipe_command.results_folder(recipe, parser.parse_args(["x", *typed]), tmp_path)

    trial = tmp_path / "results" / "fig3_dynamics"
    assert folder("--record") == recipe.folder.resolve() / "results" / "nano"
    for typed in (
        [],
        ["--jobs", "2"],
        ["--steps", "3"],
        ["--seeds", "1"],
        ["--arms", "single"],
        ["--draw"],
    ):
        assert folder(*typed) == trial
    assert folder("--results", "elsewhere").name == "elsewhere"


def test_the_command_to_go_on_is_the_same_with_resume():
    parser = recipe_command.argparse.ArgumentParser()
    recipe_command.add_arguments(parser)
    arguments = parser.parse_args(["fig3_dynamics", "--steps", "3", "--out", "my runs"])
    assert recipe_command.resume_command(arguments) == (
        "azr-population recipe fig3_dynamics --steps 3 --out 'my runs' --jobs 1 --resume --yes"
    )
    arguments = parser.parse_args(["fig3_dynamics", "--with", "seed=1", "base.path=a b"])
    assert " --with seed=1 'base.path=a b' --jobs" in recipe_command.resume_command(arguments)


def test_overrides_of_all_arms_make_runs_of_their_own(tmp_path, capsys):
    typed = ["recipe", "fig5_ratings", "--seeds", "1", "--arms", "1t1s", "--steps", "2"]
    added = ["--with", "task.domain=puzzles", "task.types=[puzzle]", "task.refuse=[trivial]"]
    assert main([*typed, *added]) == 2
    assert "--with wants --out" in capsys.readouterr().err
    assert main([*typed, *added, "--out", str(tmp_path), "--kept"]) == 2
    assert "no --kept" in capsys.readouterr().err
    assert main([*typed, *added, "--out", str(tmp_path), "--dry-run"]) == 0
    assert "would play 1t1s seed 1 to step 2" in capsys.readouterr().err
    assert main([*typed, *added, "task.types=[code_o]", "--out", str(tmp_path)]) == 2
    assert "task.types=code_o is unknown; choose from puzzle" in capsys.readouterr().err


def test_times_are_told_as_people_tell_them():
    assert recipe_command.estimate([1200.0, 600.0]) == "30 min"
    assert recipe_command.estimate([9000.0]) == "2.5 h"


@pytest.mark.slow
def test_a_recipe_runs_is_stopped_at_a_run_and_draws_what_it_played(tmp_path, capsys):
    """The real thing, small: two arms of two steps, then two more by --resume."""
    typed = ["recipe", "fig5_ratings", "--seeds", "1", "--arms", "1t1s", "--out", str(tmp_path)]
    assert main([*typed, "--steps", "1"]) == 0
    assert main([*typed, "--steps", "2"]) == 2
    assert "stands at step 1 of 2" in capsys.readouterr().err
    assert main([*typed, "--steps", "2", "--resume"]) == 0
    results = tmp_path / "results" / "fig5_ratings"
    assert "mu of teachers (end)" in (results / "summary.md").read_text()
    assert json.loads((results / "versions.json").read_text())["runs"] == {"1t1s seed 1": 2}


def test_the_beginning_of_a_name_is_not_taken_for_it(capsys, tmp_path):
    """`recipe table1` once began an hour's work."""
    assert main(["recipe", "fig4", "--draw", "--out", str(tmp_path)]) == 2
    assert "no recipe fig4 (did you mean fig4_complexity?)" in capsys.readouterr().err


def test_a_long_recipe_asks_before_it_plays(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    typed = ["recipe", "fig3_dynamics", "--out", str(tmp_path)]
    assert main(typed) == 2
    told = capsys.readouterr().err
    assert "fig3_dynamics plays for about " in told and "add --yes to play it" in told
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda prompt: "n")
    assert main(typed) == 2
    assert "fig3_dynamics was not started" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_dry_run_tells_what_would_be_played_and_where(capsys, tmp_path):
    typed = ["recipe", "fig3_dynamics", "--seeds", "1", "--dry-run", "--out", str(tmp_path)]
    assert main(typed) == 0
    told = capsys.readouterr().err
    assert f"would play 1t1s seed 1 to step 100 in {tmp_path}/longtail/1t1s/seed_1" in told
    assert f"results would be in {tmp_path}/results/fig3_dynamics; nothing was started" in told
    assert not list(tmp_path.iterdir())


def test_a_record_is_of_the_whole_recipe(capsys):
    for asked in (["fig3_dynamics", "--seeds", "1"], ["line1_roles", "--seeds", "31-33"]):
        assert main(["recipe", *asked, "--record"]) == 2
        assert "--record is of the whole recipe" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "seeds", "planned"),
    [
        ("line1_roles", "31-34", True),
        ("line1_roles", "32-35", False),
        ("line1_roles", "31-35", False),
        ("line1_roles", None, False),
        ("fig3_dynamics", "1", False),
    ],
)
def test_the_seeds_of_a_planned_look_are_recorded(name, seeds, planned):
    arms = read_arms()
    assert is_planned_look(read_recipe(name, arms), arms, Namespace(seeds=seeds)) is planned


def test_kept_runs_are_drawn_outside_the_checkout(tmp_path, monkeypatch, capsys):
    """Another machine's libraries change the last digits of what is committed."""
    monkeypatch.chdir(tmp_path)
    assert main(["recipe", "fig4_complexity", "--kept"]) == 0
    drawn = capsys.readouterr().err.splitlines()[-1].removeprefix("results: ")
    assert (tmp_path / drawn).is_relative_to(tmp_path / "runs" / "recipes")
