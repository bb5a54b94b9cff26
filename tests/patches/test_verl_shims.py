"""Stand-ins for modules of veRL 0.4.1 under later ones: what they stand for, and what works."""

import ast
import importlib
import importlib.util
import sys
from pathlib import Path

import needs
import pytest
from refusals import refuses

from azr_population.patches import verl_shims
from azr_population.patches.mechanism import digest
from azr_population.patches.verl_shims import SHIMS, WORKERS


@pytest.fixture
def installed(monkeypatch):
    needs.verl()
    # Tests of AZR in the same process have installed them.
    ours = (verl_shims._Finder, verl_shims._Patcher)
    others = [finder for finder in sys.meta_path if not isinstance(finder, ours)]
    monkeypatch.setattr(sys, "meta_path", others)
    for name in SHIMS:
        monkeypatch.delitem(sys.modules, name, raising=False)
    gone = {name for name in SHIMS if importlib.util.find_spec(name) is None}
    verl_shims.install()
    verl_shims.install()
    assert sum(isinstance(f, verl_shims._Finder) for f in sys.meta_path) == 1
    yield gone
    for name in gone:
        sys.modules.pop(name, None)


@pytest.mark.parametrize("module", SHIMS)
def test_they_stand_for_the_code_of_verl_0_4_1(module, installed):
    if module in installed:
        pytest.skip("needs veRL 0.4.1")
    try:
        importlib.import_module(module)
    except ImportError as error:  # veRL's module of vLLM needs packages of vLLM's
        pytest.skip(f"needs {error.name}")
    assert digest(module, SHIMS[module].names) == SHIMS[module].digest


def test_where_nothing_is_gone_the_modules_are_verls_own(installed):
    if installed:
        pytest.skip("needs veRL 0.4.1")
    module = importlib.import_module("verl.utils.reward_score.math")
    assert module.__spec__.origin != "azr_population"


def test_what_is_called_works_and_the_rest_says_what_to_use(installed):
    if not installed:
        pytest.skip("needs a veRL of today")
    math = importlib.import_module("verl.utils.reward_score.math")
    assert math.remove_boxed(math.last_boxed_only_string(r"so \boxed{4} is it")) == "4"
    for module in set(SHIMS) - {"verl.utils.reward_score.math"}:
        for name in SHIMS[module].names:
            with refuses("use veRL 0.4.1"):
                getattr(importlib.import_module(module), name)()


def test_a_function_that_is_another_is_refused(installed, monkeypatch):
    if not installed:
        pytest.skip("needs a veRL of today")
    name = "verl.utils.reward_score.math"
    monkeypatch.setitem(SHIMS, name, verl_shims.Shim(("remove_boxed",), "0", SHIMS[name].make))
    with refuses("remove_boxed of verl.utils.reward_score.math_reward"):
        importlib.import_module(name)


@pytest.mark.azr
def test_all_that_azr_imports_from_verl_is_there(installed):
    lacking = set()
    for file in (Path(needs.AZR_HOME) / "absolute_zero_reasoner").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("verl"):
                try:
                    module = importlib.import_module(node.module)
                except ModuleNotFoundError as error:
                    lacking.add(error.name)
                    continue
                names = {alias.name for alias in node.names}
                assert all(hasattr(module, name) for name in names), (node.module, names)
    # AZR's own branch for Megatron cannot run: it reads a key that its configuration lacks.
    megatron = {"verl.single_controller.ray.megatron", "verl.workers.megatron_workers"}
    assert lacking <= megatron | {"megatron", "msgspec"}
    assert WORKERS not in lacking
