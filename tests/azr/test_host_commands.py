"""The commands that AZR ships, with the override added, as far as can be told without GPUs."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir

from azr_population.azr import preflight
from azr_population.azr.settings import read_settings
from azr_population.errors import UserError

AZR_HOME = os.environ.get("AZR_HOME", "")
pytestmark = [
    pytest.mark.azr,
    pytest.mark.skipif(not AZR_HOME, reason="AZR_HOME names no checkout of AZR"),
]
COMMANDS = ("3b", "7b", "14b", "coder3b", "coder7b", "coder14b", "llama", "qwen3_4b")


@pytest.mark.parametrize("arm", ["single", "4t4s", "8t8s"])
@pytest.mark.parametrize("name", COMMANDS)
def test_azrs_own_commands_pass(name: str, arm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    script = Path(AZR_HOME) / "scripts" / "selfplay" / f"{name}.sh"
    if not script.is_file():
        pytest.skip(f"this AZR has no {script.name}")
    monkeypatch.chdir(AZR_HOME)
    text = script.read_text()
    defaults = dict(re.findall(r"^(\w+)=\$\{\w+:-(.*)\}$", text, re.MULTILINE))
    overrides = re.findall(r"^ +(\+?[\w.]+=\S+)", text, re.MULTILINE)
    overrides = [re.sub(r"\$(\w+)", lambda m: defaults[m[1]], one) for one in overrides]
    overrides = [one.replace("'", "") for one in overrides]
    folder = str(Path(AZR_HOME) / "absolute_zero_reasoner" / "configs")
    with initialize_config_dir(folder, version_base=None):
        config = compose("azr_ppo_trainer", [*overrides, f"+population={arm}"])
    settings = read_settings(config.population)
    preflight.check_config(config, settings)
    assert preflight.agent_rows(config, settings) == config.data.train_batch_size
    config.algorithm.adv_estimator = "gae"
    with pytest.raises(UserError):
        preflight.check_config(config, settings)


def test_the_host_has_the_surface_that_is_hooked(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("verl", reason="verl is not installed (extra: verl)")
    monkeypatch.syspath_prepend(AZR_HOME)
    import absolute_zero_reasoner.main_azr_ppo as main

    preflight.check_host(main)
