import importlib
import sys
from pathlib import Path

import pytest
from recipe_plans import plan

RECIPES = Path(__file__).parents[2] / "recipes"


@pytest.fixture
def recipe_script(monkeypatch):
    """Imports a script of a recipe, by its path in recipes/."""
    imported = []

    def load(path):
        monkeypatch.syspath_prepend(RECIPES / Path(path).parent)
        imported.append(Path(path).stem)
        return importlib.import_module(imported[-1])

    yield load
    for name in imported:
        sys.modules.pop(name)


@pytest.fixture
def planned(tmp_path):
    return plan(tmp_path).runs
