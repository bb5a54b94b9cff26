"""Overrides of the command line that cannot be meant, told before Hydra composes."""

from __future__ import annotations

import sys

import pytest
from hydra._internal.config_search_path_impl import ConfigSearchPathImpl

from azr_population.hosts.azr.command_line import override_error
from hydra_plugins.azr_population_search_path import AzrPopulationSearchPath


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["+population=5t5s"], ["+population=5t5s", "1t1s"]),
        (["population=4t4s"], ["+population=4t4s"]),
        (["population.seed=3"], ["population.seed", "+population="]),
        (["+population=4t4s", "population.zzzz=1"], ["population.zzzz", "log_completions"]),
        (["+population=4t4s", "population.sed=1"], ["population.sed", "population.seed"]),
        (
            ["population.evolution.intervall=2", "+population=4t4s"],
            ["population.evolution.intervall", "population.evolution.interval?"],
        ),
    ],
)
def test_what_cannot_be_meant_is_told_in_one_line(arguments: list[str], names: list[str]) -> None:
    line = override_error(["data.train_batch_size=2", *arguments])
    assert line is not None and "\n" not in line and all(name in line for name in names)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["trainer.project_name=population"],
        ["+population=4t4s", "population.evolution.interval=2", "++population.lora.rank=8"],
        ["+population='single'", "+population.evolution.operators.dare=2"],
        # A user's own directory may hold further arms.
        ["--config-dir", "mine", "+population=5t5s"],
        ["--config-dir=mine", "population=5t5s"],
    ],
)
def test_everything_else_is_left_to_hydra(arguments: list[str]) -> None:
    assert override_error(arguments) is None


def test_the_plugin_ends_azrs_command_and_no_other(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["main", "+population=5t5s"])
    another = ConfigSearchPathImpl()
    another.append("main", "pkg://another.configs")
    AzrPopulationSearchPath().manipulate_search_path(another)
    azr = ConfigSearchPathImpl()
    azr.append("main", "pkg://absolute_zero_reasoner.configs")
    with pytest.raises(SystemExit) as caught:
        AzrPopulationSearchPath().manipulate_search_path(azr)
    message = capsys.readouterr().err
    assert caught.value.code == 1
    assert message.count("\n") == 1 and message.startswith(
        "azr-population: +population=5t5s is unknown"
    )
