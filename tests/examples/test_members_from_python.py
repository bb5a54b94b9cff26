"""The examples that read members, called wrongly or with adapters of other ranks."""

import runpy
import sys
from pathlib import Path

import pytest
from random_adapters import random_adapter

from azr_population.weights.peft_folder import load_adapter, save_adapter

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def example(monkeypatch):
    """Runs a file of examples/ with these arguments."""

    def run(name, *arguments):
        monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")

    return run


def parents(folder, rank):
    """Two PEFT folders of adapters of this rank."""
    paths = [folder / f"parent_{seed}" for seed in (0, 1)]
    for seed, path in enumerate(paths):
        save_adapter(random_adapter(seed, rank), str(path), "tiny")
    return paths


@pytest.mark.parametrize("rank", [2, 3, 8])
def test_operators_make_a_child_of_any_rank_above_one(example, tmp_path, rank):
    example("use_operators.py", *parents(tmp_path, rank), tmp_path / "child")
    assert load_adapter(str(tmp_path / "child")).spec.rank == rank


def test_parents_of_rank_one_are_refused_in_a_line(example, tmp_path):
    with pytest.raises(SystemExit) as ended:
        example("use_operators.py", *parents(tmp_path, 1), tmp_path / "child")
    assert "svd_subspace needs rank 2 or more" in ended.value.code
    assert "\n" not in ended.value.code and not (tmp_path / "child").exists()


@pytest.mark.parametrize("name", ["use_operators.py", "load_member.py"])
def test_a_call_without_arguments_says_how_to_call(example, name):
    if name == "load_member.py":
        pytest.importorskip("peft", reason="needs peft: pip install peft")
    with pytest.raises(SystemExit) as ended:
        example(name)
    assert ended.value.code.startswith(f"usage: python examples/{name} ")
