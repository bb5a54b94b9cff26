"""Overrides that cannot be meant are one line, in Hydra's own words."""

import sys

import pytest
from hydra import compose, initialize_config_dir
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra.errors import HydraException


@pytest.fixture(autouse=True)
def hydra_as_it_was(monkeypatch):
    load = ConfigLoaderImpl.load_configuration
    monkeypatch.setattr(ConfigLoaderImpl, "load_configuration", load)


def composed(folder, overrides):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "app.yaml").write_text("data: {train_batch_size: 64}\n")
    with initialize_config_dir(str(folder), version_base=None):
        compose("app", overrides)


@pytest.mark.parametrize(
    ("overrides", "name"),
    [
        (["+population=5t5s"], "4t4s"),
        (["population=4t4s"], "+population=4t4s"),
        (["+population=4t4s", "population.sed=1"], "population.sed"),
        (["population.seed=3"], "population.seed"),
        (["+population=4t4s", "population.seed=[1"], "[1"),
    ],
)
def test_what_hydra_refuses_is_one_line(overrides, name, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["main", *overrides])
    with pytest.raises(SystemExit):
        composed(tmp_path / "absolute_zero_reasoner" / "configs", overrides)
    message = capsys.readouterr().err
    assert message.startswith("azr-population: ") and message.count("\n") == 1 and name in message


def test_a_setting_without_a_population_does_not_start_stock_azr(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["main", "+population.seed=3"])
    composed(tmp_path / "another" / "configs", ["+population.seed=3"])
    with pytest.raises(SystemExit):
        composed(tmp_path / "absolute_zero_reasoner" / "configs", ["+population.seed=3"])
    assert "+population=4t4s" in capsys.readouterr().err


def test_other_commands_keep_hydras_errors(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["main", "trainer.project_name=population"])
    with pytest.raises(HydraException):
        composed(tmp_path / "absolute_zero_reasoner" / "configs", ["no.such=1"])
