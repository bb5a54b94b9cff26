"""`azr-population azr`: AZR's main under the veRL that is there, or one line that says why not."""

import importlib.util
import json
import os
import sys

import needs
import pytest
from refusals import refuses

from azr_population.cli import main
from azr_population.hosts.azr import launch
from azr_population.patches import verl_shims

MAIN = """
import json, os, sys
hook = os.environ.get("RAY_RUNTIME_ENV_HOOK")
with open("seen.json", "w") as file:
    json.dump([__name__, sys.argv[1:], sys.path[0], hook], file)
"""


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A stand-in for AZR's, in which the command is started."""
    folder = tmp_path / "absolute_zero_reasoner"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "main_azr_ppo.py").write_text(MAIN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p != os.environ.get("AZR_HOME")])
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.delenv("RAY_RUNTIME_ENV_HOOK", raising=False)
    for name in ("absolute_zero_reasoner", launch.ENTRY):
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield tmp_path
    os.environ.pop("RAY_RUNTIME_ENV_HOOK", None)
    for name in ("absolute_zero_reasoner", launch.ENTRY):
        sys.modules.pop(name, None)


def under(monkeypatch, version):
    """As if this veRL were installed."""
    find = importlib.util.find_spec
    has = {"0.4.1": object(), "0.9.1": None}
    monkeypatch.setattr(launch, "installed", lambda name: version)
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name: has.get(version) if name == verl_shims.WORKERS else find(name),
    )


@pytest.mark.parametrize("version", ["0.4.1", "0.9.1"])
def test_it_is_azrs_main_with_these_overrides(version, checkout, monkeypatch):
    under(monkeypatch, version)
    typed = ["data.train_batch_size=4", "+population=4t4s", "--cfg", "job"]
    assert main(["azr", *typed]) == 0
    name, overrides, place, hook = json.loads((checkout / "seen.json").read_text())
    assert (name, overrides, place) == ("__main__", typed, str(checkout))
    if version == "0.4.1":
        assert hook is None
    else:
        needs.module("ray", "-e '.[verl]'")
        from ray._private.runtime_env.setup_hook import load_class

        environment = load_class(hook)({"env_vars": {"A": "1"}})
        assert environment["env_vars"] == {"A": "1"}
        assert load_class(environment["worker_process_setup_hook"]) is verl_shims.install


def test_the_stock_arm_runs_under_azrs_pins_alone(checkout, monkeypatch, capsys):
    under(monkeypatch, "0.4.1")
    assert main(["azr", "trainer.nnodes=1"]) == 0
    under(monkeypatch, "0.9.1")
    assert main(["azr", "trainer.nnodes=1"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "veRL 0.4.1, which 0.9.1 no longer has: add +population=single" in line


def test_another_module_of_azrs_runs_the_same_way(checkout, monkeypatch):
    """AZR's own data are made by one that imports what veRL 0.9.1 has renamed."""
    (checkout / "absolute_zero_reasoner" / "makes.py").write_text(MAIN)
    under(monkeypatch, "0.9.1")
    assert main(["azr", "--module", "absolute_zero_reasoner.makes", "--length", "7"]) == 0
    name, arguments, *_ = json.loads((checkout / "seen.json").read_text())
    assert (name, arguments) == ("__main__", ["--length", "7"])
    assert any(isinstance(finder, verl_shims._Finder) for finder in sys.meta_path)


def test_another_verl_is_told_of_and_tried(checkout, monkeypatch, capsys):
    under(monkeypatch, "0.7.0")
    assert main(["azr", "+population=single"]) == 0
    assert "this is 0.7.0" in capsys.readouterr().out


@pytest.mark.parametrize(("ends", "code"), [("interrupted", 130), ("exit", 3)])
def test_a_ctrl_c_that_azrs_main_takes_for_success_is_130(
    ends, code, checkout, monkeypatch, capsys
):
    needs.module("ray", "-e '.[verl]'")
    under(monkeypatch, "0.4.1")
    caught = (
        "try:\n    raise KeyboardInterrupt\nexcept KeyboardInterrupt:\n    raise SystemExit(0)\n"
    )
    text = caught if ends == "interrupted" else "raise SystemExit(3)\n"
    (checkout / "absolute_zero_reasoner" / "main_azr_ppo.py").write_text(text)
    with pytest.raises(SystemExit) as stopped:
        launch.launch(["+population=single"])
    assert stopped.value.code == code
    assert (launch.RESUMES in capsys.readouterr().err) == (ends == "interrupted")


def test_without_verl_or_azr_it_says_so(checkout, tmp_path, monkeypatch):
    under(monkeypatch, None)
    with refuses("veRL is not installed"):
        launch.launch(["+population=single"])
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    under(monkeypatch, "0.4.1")
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p != str(checkout)])
    with refuses("start the command in AZR's checkout"):
        launch.launch(["+population=single"])
