"""Runs as children: their order, their failures, and a stop that reaches them."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from azr_population.errors import UserError
from azr_population.experiments import runner
from azr_population.experiments.runner import Runner, build_base, run_command
from azr_population.experiments.runs import plan_runs


@pytest.fixture
def planned(arms, recipe, tmp_path):
    return plan_runs(recipe, arms, recipe.arms, seeds=2, steps=4, out=tmp_path)


@pytest.fixture
def children(monkeypatch):
    """Makes the children run this Python text, with the run's name as its argument."""

    def use(text):
        monkeypatch.setattr(
            runner, "run_command", lambda run: [sys.executable, "-c", text, run.name]
        )

    return use


def test_a_run_is_started_or_gone_on_with_by_our_own_command(planned, fake_run, metrics):
    run = planned[0]
    typed = run_command(run)
    assert typed[1:5] == ["-m", "azr_population.cli", "train", "exam.attempts=2"]
    assert typed[-2:] == [f"run.dir={run.path}", "run.steps=4"]
    fake_run(run.path, run.overrides, [metrics(1, 0.5)])
    assert run_command(run)[3:] == ["resume", str(run.path), "run.steps=4"]


def test_runs_are_played_in_their_order_and_their_output_kept(planned, children):
    children("import sys; print('step 1/4 | 0.5 s, 0:01 left |'); print('played', sys.argv[1])")
    said = []
    assert Runner(1, said.append).play(planned) == 0
    assert [line.split(":")[0] for line in said if "starts" in line] == [
        "[1/4] one seed 1",
        "[2/4] two seed 1",
        "[3/4] one seed 2",
        "[4/4] two seed 2",
    ]
    assert "played one seed 1" in planned[0].path.with_name("seed_1.log").read_text()


def test_a_failing_run_is_told_with_its_last_line_and_no_other_is_started(planned, children):
    children("import sys; print('azr-population: disk is full'); sys.exit('one' in sys.argv[1])")
    said = []
    with pytest.raises(UserError, match=r"one seed 1 failed \(exit code 1\): .*disk is full.*log"):
        Runner(1, said.append).play(planned)
    assert not any("two seed 1" in line for line in said)


def test_a_stop_reaches_the_children_once_and_nothing_new_is_started(planned, children):
    children(
        "import signal, sys\n"
        "signal.signal(signal.SIGINT, lambda *_: sys.exit(130))\n"
        "print('step 1/4 | 0.5 s, 0:01 left |', flush=True)\n"
        "signal.pause()"
    )
    said = []
    before = signal.getsignal(signal.SIGINT)  # ignored, where the tests run in the background
    ready = threading.Event()
    play = Runner(2, said.append)
    # Both children have told of a step, so both have their handlers.
    heard = set()
    note = play._note_progress

    def note_progress(run, step, seconds):
        note(run, step, seconds)
        heard.add(run.name)
        if len(heard) == 2:
            os.kill(os.getpid(), signal.SIGINT)
            ready.set()

    play._note_progress = note_progress
    assert play.play(planned) == 130
    assert ready.is_set()
    assert "stopping after the steps at hand; once more to stop at once" in said
    assert [line.split(":")[1] for line in said[-2:]] == [" stopped after step 0 of 4"] * 2
    assert not any("seed 2: starts" in line for line in said)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_base_is_made_once_and_a_build_that_was_cut_off_is_made_again(monkeypatch, tmp_path):
    typed = []

    def build(command, check):
        typed.append(command[1:])
        if len(typed) > 1:
            (tmp_path / "build.json").write_text("{}")
        return subprocess.CompletedProcess(command, 0 if len(typed) > 1 else 1)

    monkeypatch.setattr(runner.subprocess, "run", build)
    said = []
    with pytest.raises(UserError, match=r"could not be made \(exit code 1\)"):
        build_base(tmp_path, 12.0, 1, said.append)
    build_base(tmp_path, 12.0, 1, said.append)
    build_base(tmp_path, 12.0, 1, said.append)
    assert len(typed) == 2
    assert typed[0][1:4] == ["azr_population.cli", "nano", "build"]
    assert typed[0][4:] == [str(tmp_path), "--minutes", "12", "--seed", "1", "--threads", "1"]
    assert said == [f"making the nano base {tmp_path}: 12 minutes"] * 2


def test_progress_is_told_with_the_time_that_is_left(planned, children, monkeypatch):
    monkeypatch.setattr(runner, "_SECONDS_BETWEEN_LINES", 0.0)
    children("print('step 2/4 | 3.0 s, 0:06 left |')")
    said = []
    Runner(1, said.append).play(planned[:1])
    assert "[1/1] one seed 1: step 2/4, 3.0 s a step, 0:06 left; all runs: about 0:06 left" in said
