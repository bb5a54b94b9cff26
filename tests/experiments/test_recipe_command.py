"""`azr-population recipe`: plays what is missing, one process a run."""

import csv
import signal
import sys

import pytest
from recipe_plans import played
from refusals import refuses

from azr_population.cli import main
from azr_population.config.load import load_config, to_yaml
from azr_population.experiments import command, recipes
from azr_population.runs import RunDirectory


@pytest.fixture
def children(monkeypatch):
    """Makes the children run this Python text, with the run's name as its argument."""

    def use(text):
        typed = lambda run: [sys.executable, "-c", text, run.name]  # noqa: E731
        monkeypatch.setattr(command, "run_command", typed)

    return use


def test_runs_are_played_in_their_order_and_their_output_is_logged(planned, children, capsys):
    children("import sys; print('played', sys.argv[1])")
    assert command.play(planned, 1) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("[")]
    assert [line.split(":")[0] for line in lines] == [
        f"[{n}/4] {run.name}" for n, run in enumerate(planned, 1)
    ]
    assert planned[0].path.with_name("seed_1.log").read_text() == "played one seed 1\n"


def test_a_failing_run_is_named_and_no_other_is_started(planned, children, capsys):
    children("import sys; print('disk is full'); sys.exit('one' in sys.argv[1])")
    with refuses("disk is full"):
        command.play(planned, 1)
    assert "two seed 1" not in capsys.readouterr().err


def test_a_stop_reaches_the_children_and_nothing_new_is_started(planned, children, capsys):
    children(
        "import os, signal, sys\n"
        "signal.signal(signal.SIGINT, lambda *_: sys.exit(130))\n"
        "os.kill(os.getppid(), signal.SIGTERM)\n"
        "signal.pause()"
    )
    before = signal.getsignal(signal.SIGTERM)
    assert command.play(planned, 1) == 128 + signal.SIGTERM
    assert "two seed 1" not in capsys.readouterr().err
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_run_is_started_by_its_overrides_and_resumed_by_its_folder(planned):
    run = planned[0]
    typed = command.run_command(run)
    assert typed[3] == "train" and typed[-1] == "run.steps=4"
    assert load_config(typed[4:-2]) == run.config
    played(run, 1)
    assert command.run_command(run)[3:] == ["resume", str(run.path), "run.steps=4"]


@pytest.mark.parametrize(
    "typed",
    [
        ["fig"],
        ["fig3_dynamics", "--arms", "3t3s"],
        ["fig3_dynamics", "--from-results", "--seeds", "30-30"],
        ["what_ships", "--steps", "101", "--from-results"],
    ],
)
def test_what_cannot_be_played_is_refused_in_one_line(typed, capsys, tmp_path):
    assert main(["recipe", *typed, "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err.strip().splitlines()[-1].startswith("azr-population: ")


def test_a_run_of_another_configuration_is_refused_before_anything_is_played(tmp_path, capsys):
    run = RunDirectory(tmp_path / "defaults" / "4t4s" / "seed_81")
    run.create(to_yaml(load_config(["population=4t4s", "seed=81"])), {})
    typed = ["recipe", "fig5_ratings", "--seeds", "81-81", "--out", str(tmp_path)]
    assert main([*typed, "--dry-run"]) == 2
    assert f"{run.path} is another run: it has " in capsys.readouterr().err


def test_a_dry_run_names_what_it_would_play_and_starts_nothing(tmp_path, capsys):
    typed = ["recipe", "fig5_ratings", "--seeds", "81-82", "--out", str(tmp_path)]
    assert main([*typed, "--dry-run"]) == 0
    printed = capsys.readouterr().err.splitlines()
    assert printed[0] == "fig5_ratings: 4 runs, 0 finished; about 72 min of one core to go"
    assert (
        f"would play 4t4s seed 82 from step 0 to 60 in {tmp_path}/defaults/4t4s/seed_82" in printed
    )
    assert not list(tmp_path.iterdir())


def test_hours_are_not_played_without_a_yes(tmp_path, capsys, monkeypatch):
    typed = ["recipe", "fig5_ratings", "--out", str(tmp_path)]
    assert main(typed) == 2
    assert "fig5_ratings plays for about 3.6 h of one core; add --yes" in capsys.readouterr().err
    monkeypatch.setattr(command, "play", lambda runs, jobs: 130)
    assert main([*typed, "--yes"]) == 130
    assert "the same command continues" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.integration
def test_the_study_is_played_in_parts_and_decided(tmp_path, monkeypatch, capsys):
    """A miniature of population_or_not: its arms of two lengths, two commands that each play a
    part, a table at steps that all have reached, six hypotheses decided at its number of seeds."""
    arms, study = recipes.read_arms(), recipes.read_recipe("population_or_not", recipes.read_arms())
    small = {
        **{"steps": 4, "seeds": "101-102"},
        "arm_steps": dict.fromkeys(arms.protocols[study.protocol].arm_steps, 2),
        "common": (
            *("eval.tasks_per_type=12", "eval.samples=1", "eval.every=2", "run.snapshot_every=2"),
            *("population.batch_size=4", "population.samples_per_task=2", "run.checkpoint_every=2"),
            *("engine.threads=1", "referee.workers=1"),
        ),
    }
    protocol = arms.protocols[study.protocol].model_copy(update=small)
    protocols = {**arms.protocols, study.protocol: protocol}
    rows = [row.model_copy(update={"step": row.step // 30}) for row in study.table]
    study = study.model_copy(update={"table": tuple(rows)})
    monkeypatch.setattr(
        command, "read_arms", lambda: arms.model_copy(update={"protocols": protocols})
    )
    monkeypatch.setattr(command, "read_recipe", lambda name, arms: study)
    typed = ["recipe", "population_or_not", "--yes", "--out", str(tmp_path)]
    assert main([*typed, "--seeds", "101-101", "--jobs", "2"]) == 0
    assert "not decided (planned for 2 seeds, here 1)" in capsys.readouterr().out
    assert main([*typed, "--seeds", "102-102"]) == 0
    capsys.readouterr()
    assert main([*typed, "--from-results"]) == 0
    shown = capsys.readouterr().out
    assert "10 of 10 runs, seeds 101 to 102, 2 to 4 steps" in shown
    folder = tmp_path / "results" / "population_or_not"
    with (folder / "table.csv").open() as lines:
        counts = {(line["row"], line["arm"]): line["n"] for line in csv.DictReader(lines)}
    early, late = "deep tasks at step 60, weakest student", "deep tasks at step 120"
    assert [counts[early, arm] for arm in study.arms] == ["2"] * 5
    assert [counts.get((late, arm)) for arm in study.arms] == ["2"] * 3 + [None] * 2
    with (folder / "hypotheses.csv").open() as lines:
        tested = list(csv.DictReader(lines))
    assert len(tested) == 6 and {line["n"] for line in tested} == {"2"}
    snapshots = tmp_path / "population_or_not" / "4t4s" / "seed_102" / "snapshots"
    assert [path.name for path in snapshots.iterdir()] == ["step_2"]
