"""The commands that AZR ships, with the override added, as far as can be told without GPUs."""

import os
import re
import subprocess
from pathlib import Path

import host
import pytest
from hydra import compose, initialize_config_dir

from azr_population.hosts.azr import checks
from azr_population.hosts.azr.azr_plan import resolve

AZR_HOME = os.environ.get("AZR_HOME", "")
pytestmark = [pytest.mark.azr, pytest.mark.usefixtures("vllm_is_there")]
COMMANDS = ("7b", "14b", "coder3b", "coder7b", "coder14b", "llama", "qwen3_4b")


HERE = ["trainer.logger=[console]", "actor_rollout_ref.model.path=no/such/base"]
"""What this machine need not have: the wandb of AZR's pins, and a base."""


def composed(overrides):
    """AZR's configuration by these overrides."""
    folder = str(Path(AZR_HOME) / "absolute_zero_reasoner" / "configs")
    with initialize_config_dir(folder, version_base=None):
        return compose("azr_ppo_trainer", overrides)


@pytest.mark.parametrize("arm", ["single", "4t4s", "8t8s"])
@pytest.mark.parametrize("name", COMMANDS)
def test_azrs_own_commands_pass(name, arm, monkeypatch):
    script = Path(AZR_HOME) / "scripts" / "selfplay" / f"{name}.sh"
    monkeypatch.chdir(AZR_HOME)
    text = script.read_text()
    defaults = dict(re.findall(r"^(\w+)=\$\{\w+:-(.*)\}$", text, re.MULTILINE))
    overrides = re.findall(r"^ +(\+?[\w.]+=\S+)", text, re.MULTILINE)
    overrides = [re.sub(r"\$(\w+)", lambda m: defaults[m[1]], override) for override in overrides]
    overrides = [override.replace("'", "") for override in overrides]
    config = composed([*overrides, f"+population={arm}", *HERE])
    plan = resolve(config)
    assert not list(checks.faults(config, plan))
    assert plan.rows == config.data.train_batch_size
    config.algorithm.adv_estimator, config.algorithm.gamma = "gae", 0.5
    keys = [fault.key for fault in checks.faults(config, plan)]
    assert keys == ["algorithm.adv_estimator", "algorithm.gamma"]


EXAMPLES = Path(__file__).parents[3] / "examples"


ADDED = {
    "+trainer.val_before_train",
    "+population",
    "+actor_rollout_ref.model.override_config._attn_implementation",
}


def commands_of(script, folder, *arguments):
    """The overrides of each AZR command that an example runs, by a `python` that only notes them.

    So AZR's own script is part of it, and the shell does the quoting.
    """
    (folder / "bin").mkdir()
    python = folder / "bin" / "python"
    python.write_text('#!/bin/sh\nprintf "%s\\n" "$@" "" >> "$CALLS"\n')
    python.chmod(0o755)
    variables = {
        "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}",
        "CALLS": str(folder / "calls"),
        "OUT": str(folder / "out"),
        "BASE": str(folder),
    }
    subprocess.run(
        ["bash", str(EXAMPLES / script), *arguments],
        env=os.environ | variables,
        check=False,  # azr_ab.sh looks for the runs' folders at its end.
        capture_output=True,
    )
    calls = [call.split("\n") for call in (folder / "calls").read_text().split("\n\n") if call]
    starts = (["-m", host.ENTRY], ["-m", "azr_population.cli", "azr"])
    played = [
        call[len(start) :] for call in calls for start in starts if call[: len(start)] == start
    ]
    return [[word for word in call if word not in ("--cfg", "job")] for call in played]


@pytest.mark.parametrize(
    ("script", "arguments", "arms"),
    [
        ("azr.sh", ["coder7b_8gpus", "population.seed=2"], ["4t4s"]),
        ("azr.sh", ["qwen3_4b_8gpus", "+population=single"], ["single"]),
        ("azr.sh", ["coder7b_24gb"], ["4t4s"]),
        ("azr.sh", ["coder3b_24gb"], ["4t4s"]),
        ("azr_ab.sh", [], [None, "single", "4t4s"] * 2),  # rehearsed, then played
        ("azr_cpu.sh", ["azr.reward.n_samples=1"], [None]),
        ("azr_cpu.sh", ["+population=2t2s"], ["2t2s"]),
    ],
)
def test_every_override_of_our_examples_is_one_of_azrs(
    script, arguments, arms, tmp_path, monkeypatch
):
    commands = commands_of(script, tmp_path, *arguments)
    assert len(commands) == len(arms)
    monkeypatch.chdir(AZR_HOME)
    for overrides, arm in zip(commands, arms, strict=True):
        # Hydra refuses a key that AZR's configuration does not have, unless it is added by a plus.
        added = [override for override in overrides if override.startswith("+")]
        assert {override.split("=")[0] for override in added} <= ADDED
        config = composed([*overrides, *HERE])
        assert ("population" in config) == (arm is not None)
        if arm is not None:
            plan = resolve(config)
            assert plan.settings.name == arm
            assert not list(checks.faults(config, plan))
