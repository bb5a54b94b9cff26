"""`examples/azr_ab.sh` with stand-ins for AZR and for our command."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "examples" / "azr_ab.sh"
AZR = """\
echo "$*" >>"$PLAYED"
case "$*" in *experiment_name="${REFUSED:-none}"*) exit 1 ;; esac
case "$*" in *dry_run=true* | *"--cfg job"*) exit 0 ;; esac
case "$*" in *experiment_name="${BREAKS:-none}"*) exit 7 ;; esac
case "$*" in *experiment_name="${STOPPED:-none}"*)
    trap 'echo stopped; exit 0' INT  # as AZR's main does
    echo begun
    until [ -s "$OUT/stock/seed_2.log" ]; do :; done
    kill -INT 0 ;;
esac
echo 'step:1 - pred_code_o/accuracy:0.5'
"""
PYTHON = '#!/bin/sh\nprintf "%s\\n" "$@" >"$COMPARED"\n'


@pytest.fixture
def script(tmp_path):
    """Runs the script; returns its exit code, AZR's commands as words, and what was compared."""
    azr = tmp_path / "azr" / "scripts" / "selfplay" / "coder7b.sh"
    azr.parent.mkdir(parents=True)
    azr.write_text(AZR)
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text(PYTHON)
    python.chmod(0o755)

    def run(*typed, **settings):
        played, compared = tmp_path / "played", tmp_path / "compared"
        played.write_text("")
        compared.unlink(missing_ok=True)
        environment = {"AZR_HOME": str(tmp_path / "azr"), "OUT": str(tmp_path / "out"), **settings}
        environment |= {"PLAYED": str(played), "COMPARED": str(compared)}
        environment["PATH"] = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", str(SCRIPT), *typed],
            env={**os.environ, **environment},
            capture_output=True,
            start_new_session=True,  # the group that a Ctrl-C reaches
            # A script in the background of another one ignores it, and what it starts, too.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        commands = [line.split() for line in played.read_text().splitlines()]
        lines = compared.read_text().splitlines() if compared.exists() else []
        return done.returncode, commands, lines

    return run


def names(commands):
    """(experiment, whether it is a rehearsal) of AZR's commands."""
    return [
        (
            next(word.partition("=")[2] for word in words if "experiment_name" in word),
            "population.dry_run=true" in words or "--cfg" in words,
        )
        for words in commands
    ]


def test_all_arms_are_rehearsed_then_seeds_are_played_in_turn_and_compared(script, tmp_path):
    code, commands, compared = script("data.x=1", SEEDS="1 2")
    assert code == 0 and all("data.x=1" in words for words in commands)
    rehearsals, plays = names(commands)[:3], names(commands)[3:]
    assert rehearsals == [(f"{arm}_seed_1", True) for arm in ("stock", "single", "4t4s")]
    assert plays == [
        (f"{arm}_seed_{n}", False) for n in (1, 2) for arm in ("stock", "single", "4t4s")
    ]
    steps = {
        name: next(word for word in words if "total_training_steps" in word)
        for (name, _), words in zip(names(commands), commands, strict=True)
    }
    assert steps["stock_seed_1"].endswith("=201") and steps["single_seed_2"].endswith("=200")
    assert "+population=4t4s" in commands[-1] and "population.seed=2" in commands[-1]
    assert not any("population" in word for word in commands[3])
    rewards = ["population.teacher_reward=learnability" in words for words in commands]
    assert rewards == [False, True, True] * 3  # equal wherever a member proposes
    out = tmp_path / "out"
    assert [word for word in compared if "=" in word] == [
        f"{arm}={out}/{arm}/seed_{n}{'.log' * (arm == 'stock')}"
        for n in (1, 2)
        for arm in ("stock", "single", "4t4s")
    ]
    assert (out / "stock" / "seed_1.log").read_text() == "step:1 - pred_code_o/accuracy:0.5\n"


def test_dry_rehearses_and_plays_nothing(script):
    code, commands, compared = script(
        "a.b=1", DRY="1", ARMS="stock 4t4s", GPU_MEMORY="80", SEEDS="3 4", TEACHER_REWARD="stock"
    )
    assert "population.teacher_reward=stock" in commands[1]
    assert commands[0][-2:] == ["--cfg", "job"]  # Hydra takes no override behind it
    assert (code, compared) == (0, [])
    assert ["population.gpu_memory=80" in words for words in commands] == [False, True]
    # One that is refused does not hide what the others would be, and nothing is played.
    for settings in ({"DRY": "1"}, {}):
        code, rehearsed, _ = script(ARMS="single stock 4t4s", REFUSED="single_seed_1", **settings)
        assert code == 1 and [rehearsal for _, rehearsal in names(rehearsed)] == [True] * 3
    assert names(commands) == [("stock_seed_3", True), ("4t4s_seed_3", True)]


@pytest.mark.parametrize(("how", "ends_with"), [("BREAKS", 7), ("STOPPED", 130)])
def test_an_interrupted_run_is_continued_and_finished_ones_are_left_alone(
    script, tmp_path, how, ends_with
):
    settings = {"SEEDS": "1 2", "ARMS": "stock single"}
    code, _, compared = script(**{how: "stock_seed_2"}, **settings)
    assert code == ends_with and not compared
    # The last line of a stopped command is in its log too.
    log = (tmp_path / "out" / "stock" / "seed_2.log").read_text()
    assert log == "begun\nstopped\n" * (how == "STOPPED")
    code, commands, compared = script(**settings)
    assert code == 0 and compared
    assert names(commands)[2:] == [("stock_seed_2", False), ("single_seed_2", False)]
    assert all("trainer.resume_mode=auto" in words for words in commands)
