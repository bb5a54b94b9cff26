import io
import os
import subprocess
import sys

import numpy
import pytest
import torch
from refusals import refuses

from azr_population import registry as registry_module
from azr_population.config.schema import Config
from azr_population.errors import UserError
from azr_population.registry import EVERYTHING, Registry, trust


@pytest.fixture(autouse=True)
def nothing_trusted(monkeypatch):
    monkeypatch.setattr(registry_module, "_trusted", set())


def test_names_are_found_listed_and_unique():
    registry = Registry("task.colour")

    @registry.register("red", "Goethe 1810")
    def red():
        return 1

    assert registry.find("red") is red
    assert list(registry) == ["red"]
    with pytest.raises(ValueError):
        registry.register("red", "again")(red)


@pytest.mark.parametrize("name", ["rde", "", "x", ["red"], None])
def test_an_unknown_name_names_the_key_and_the_choices(name):
    registry = Registry("task.colour")
    registry.register("red", "Goethe 1810")(lambda: 1)
    with refuses("task.colour"):
        registry.find(name)


def test_a_path_names_a_function_anywhere():
    registry = Registry("task.colour")
    trust(EVERYTHING)
    assert registry.find("math.floor")(2.5) == 2
    with refuses("task.colour"):
        registry.find("math.flor")
    with refuses("task.colour"):
        registry.find("no.module")


def test_a_path_is_looked_for_in_the_current_folder(tmp_path, monkeypatch):
    """As from a console script, which has its own folder in the place of the current one."""
    (tmp_path / "in_the_current_folder.py").write_text("def blue(): return 3\nworth = 3\n")
    (tmp_path / "that_does_not_run.py").write_text("def blue(): return 3\n1 / 0\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    registry = Registry("task.colour")
    trust(EVERYTHING)
    assert registry.find("in_the_current_folder.blue")() == 3
    with refuses("task.colour"):
        registry.find("in_the_current_folder.worth")
    with refuses("task.colour"):
        registry.find("that_does_not_run.blue")


def test_a_registry_of_made_things_says_what_makes_them():
    registry = Registry("task.colour", int, "@colour")
    trust("math.floor")
    with refuses("task.colour"):
        registry.find("math.floor")


def test_only_what_the_user_typed_is_imported(tmp_path, monkeypatch):
    mark = f"from pathlib import Path\nPath({str(tmp_path / 'was_run')!r}).touch()\n"
    (tmp_path / "typed_by_nobody.py").write_text(f"{mark}def blue(): return 3\n")
    monkeypatch.chdir(tmp_path)
    registry = Registry("task.colour")
    for typed in ("", "typed_by_nobody", "typed_by_nobody.red", {"a": ["typed_by_nobody.blu"]}):
        trust(typed)
        with pytest.raises(UserError) as refused:
            registry.find("typed_by_nobody.blue")
        assert refused.value.key == "task.colour" and "--trust" in str(refused.value)
    assert not (tmp_path / "was_run").exists()
    config = Config()
    config.evolution.operators = {"full_gaussian+typed_by_nobody.blue": 1.0}
    trust(config)
    assert registry.find("typed_by_nobody.blue")() == 3


def test_an_installed_package_offers_names_that_need_no_trust(tmp_path, monkeypatch):
    facts = tmp_path / "colours-1.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: colours\nVersion: 1\n")
    (facts / "entry_points.txt").write_text(
        "[azr_population.colours]\n"
        "violet = installed_colours:violet\nred = installed_colours:violet\n"
        "broken = installed_colours:nowhere\nfive = installed_colours:five\n"
    )
    (tmp_path / "installed_colours.py").write_text("five = 5\ndef violet(): return 1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    registry = Registry("task.colour", group="colours")
    registry.register("red", "Goethe 1810")(lambda: 1)
    assert registry.find("red")() == 1, "an installed package replaces none of ours"
    with pytest.raises(
        UserError, match=r"task.colour=violet failed in .*installed_colours.py, line"
    ):
        registry.find("violet")()
    for name, about in (
        ("broken", "nowhere"),
        ("five", "neither"),
        ("viole", "did you mean violet"),
    ):
        with pytest.raises(UserError, match=about) as refused:
            registry.find(name)
        assert refused.value.key == "task.colour"
    with pytest.raises(UserError, match="unknown"):
        Registry("task.shape").find("violet")


STATE = """
import os, sys
import numpy, torch

torch.set_default_dtype(torch.float64)

def changes():
    torch.set_default_dtype(torch.float16)
    torch.set_num_threads(torch.get_num_threads() + 1)
    torch.set_grad_enabled(False)
    numpy.seterr(all="raise")
    sys.setrecursionlimit(300)
    os.chdir("/")
    sys.stdout = None

def ends(): raise SystemExit(3)

def closes():
    own = os.open(os.devnull, os.O_RDONLY)
    os.closerange(own - 1, own + 1)

def closes_many():
    os.closerange(3, 200)
    global pipe
    pipe = os.pipe()

def closes_output(): os.close(1)

def closes_stream(): sys.stdout.close()
"""


@pytest.fixture
def state_registry(tmp_path, monkeypatch):
    (tmp_path / "own_state.py").write_text(STATE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "own_state", raising=False)
    trust(EVERYTHING)
    return Registry("task.colour")


def test_what_code_of_ones_own_changes_in_the_process_is_put_back(state_registry):
    def state():
        threads, grad = torch.get_num_threads(), torch.is_grad_enabled()
        process = sys.getrecursionlimit(), os.getcwd(), sys.stdout, numpy.geterr()
        return process, torch.get_default_dtype(), threads, grad

    before = state()
    changes = state_registry.find("own_state.changes")
    assert state() == before, "its module changed it"
    changes()
    assert state() == before


def test_probes_that_cannot_all_be_opened_are_known_to_be_open(monkeypatch):
    opened, pipe = [], os.pipe

    def one_pipe():
        if opened:
            raise OSError(24, "Too many open files")
        opened.extend(pipe())
        return opened

    monkeypatch.setattr(os, "pipe", one_pipe)
    probes = registry_module._probes()
    for number in opened:
        os.close(number)
    assert list(probes) == opened and None not in probes.values()


def test_code_of_ones_own_that_ends_the_process_is_named(state_registry, tmp_path):
    with refuses("task.colour"):
        state_registry.find("own_state.ends")()
    (tmp_path / "own_script.py").write_text("import sys\nsys.exit()\n")
    with refuses("task.colour"):
        state_registry.find("own_script.main")


CLOSING = """
import os, own_state
from azr_population.errors import UserError
from azr_population.registry import EVERYTHING, Registry, trust

trust(EVERYTHING)
registry = Registry("task.colour")
try:
    registry.find("own_state.closes_many")()
except UserError as error:
    print(error)
print([os.fstat(number).st_ino > 0 for number in own_state.pipe])
os.rmdir(os.getcwd())
print(registry.find("own_state.fine")())
"""


def test_the_users_own_files_stay_open_and_its_folder_may_go(tmp_path):
    """In a process of its own, whose descriptors may all be closed."""
    (tmp_path / "own_state.py").write_text(f"{STATE}\ndef fine(): return 1\n")
    (tmp_path / "gone").mkdir()
    python = [sys.executable, "-c", CLOSING]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.getcwd()])}
    said = subprocess.run(
        python, cwd=tmp_path / "gone", env=environment, capture_output=True, text=True, check=True
    ).stdout.split("\n")
    assert "closes files that it has not opened" in said[0]
    assert said[1:3] == ["[True, True]", "1"]


def test_code_of_ones_own_that_closes_files_of_ours_is_named(state_registry, monkeypatch):
    # `closes` closes the descriptor below its own, which is ours where no lower one is free.
    last, fillers = max(map(int, os.listdir("/proc/self/fd"))), list[int]()
    while not fillers or fillers[-1] < last:
        fillers.append(os.open(os.devnull, os.O_RDONLY))
    with pytest.raises(UserError, match=r"own_state\.closes closes files") as refused:
        state_registry.find("own_state.closes")()
    for number in fillers:
        os.close(number)
    assert refused.value.key == "task.colour"
    output = os.dup(1)
    try:
        with pytest.raises(UserError, match="descriptor 1"):
            state_registry.find("own_state.closes_output")()
    finally:
        os.dup2(output, 1)
        os.close(output)
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    with pytest.raises(UserError, match=r"sys\.stdout"):
        state_registry.find("own_state.closes_stream")()
