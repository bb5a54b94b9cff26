import os
from pathlib import Path

import pytest
import torch
from random_adapters import random_adapter, same

from azr_population.cli import main as cli
from azr_population.weights.breeding import breed
from azr_population.weights.peft_folder import load_adapter, save_adapter


def main(words):
    return cli(["evolve", *words])


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Parents a, b (rank 4), c (rank 6) in the current folder."""
    monkeypatch.chdir(tmp_path)
    for seed, (name, rank) in enumerate({"a": 4, "b": 4, "c": 6}.items()):
        save_adapter(random_adapter(seed, rank), name, "tiny")
    return tmp_path


def test_a_child_is_the_one_that_breed_makes(folders):
    words = ["svd_subspace", "a", "b", "--out", "child", "--seed", "7", "--set", "k=2"]
    assert main(words) == 0
    parents = [load_adapter("a"), load_adapter("b")]
    mix, options = {"svd_subspace": 1.0}, {"svd_subspace": {"k": 2}}
    expected, _ = breed(mix, parents, torch.Generator().manual_seed(7), options)
    assert same(load_adapter("child"), expected)
    readme = Path("child/README.md").read_text()
    for fact in ("base: tiny", "operator: svd_subspace", "options: k=2", "seed: 7", "parent 1: a"):
        assert f"- {fact}" in readme


@pytest.fixture
def flawed(folders):
    """Besides, a parent that is cut short, one with a NaN, one of another base, and a folder."""
    for name in ("short", "nan"):
        adapter = random_adapter(1)
        if name == "nan":
            adapter.factors["q_proj"].B[0, 0] = float("nan")
        save_adapter(adapter, name, "tiny")
    weights = folders / "short" / "adapter_model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-10])
    save_adapter(random_adapter(1), "other", "large")
    (folders / "there").mkdir()
    return folders


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("", "--list"),
        ("dare a b", "--out FOLDER"),
        ("dare a --out child", "dare"),
        ("dare a b c --out child", "dare"),
        ("dare a zz --out child", "zz"),
        ("dare a b --out child --set q=1", "q"),
        ("dare a b --out child --set p=half", "p=half"),
        ("dare a b --out child --set p", "--set p"),
        ("dares a b --out child", "operator=dares"),
        ("layer_wise a c --out child", "rank"),
        ("dare a b --out child --seed -1", "--seed"),
        ("dare a b --out child --sed 1", "--sed"),
        ("layer_selective_gaussian nan --out child --set fraction=0", "q_proj"),
        ("dare a b --out a/README.md/child", "a/README.md"),
        ("dare a short --out child", "short"),
        ("dare a other --out child", "large"),
        ("dare a b --out there", "there"),
    ],
)
def test_refusals_say_why_in_one_line_and_leave_nothing_behind(flawed, capsys, words, named):
    before = sorted(os.listdir(flawed))
    assert main(words.split()) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1 and named in captured.err
    assert sorted(os.listdir(flawed)) == before
