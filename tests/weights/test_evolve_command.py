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
    for fact in ("operator: svd_subspace", "options: k=2", "seed: 7", "parent 1: a"):
        assert f"- {fact}" in readme


def test_parents_of_other_rank_are_converted_when_asked(folders):
    assert main(["layer_wise", "a", "c", "--out", "child"]) == 2
    assert main(["layer_wise", "a", "c", "--out", "child", "--rank", "5"]) == 0
    spec = load_adapter("child").spec
    assert (spec.rank, spec.alpha) == (5, 10.0)


def broken(name, folder):
    """Words of a command that has to be refused."""
    if name == "truncated":
        weights = folder / "b" / "adapter_model.safetensors"
        weights.write_bytes(weights.read_bytes()[:-10])
    if name.startswith("nan"):
        adapter = random_adapter(1)
        adapter.factors["q_proj"].B[0, 0] = float("nan")
        save_adapter(adapter, "b", "tiny", overwrite=True)
    if name == "other base":
        save_adapter(random_adapter(1), "b", "large", overwrite=True)
    if name == "out exists":
        (folder / "child").mkdir()
    return {
        "no operator": [],
        "no out": ["dare", "a", "b"],
        "one parent": ["dare", "a", "--out", "child"],
        "three parents": ["dare", "a", "b", "c", "--out", "child"],
        "missing parent": ["dare", "a", "zz", "--out", "child"],
        "unknown option": ["dare", "a", "b", "--out", "child", "--set", "q=1"],
        "no number": ["dare", "a", "b", "--out", "child", "--set", "p=half"],
        "no value": ["dare", "a", "b", "--out", "child", "--set", "p"],
        "unknown": ["dares", "a", "b", "--out", "child"],
        "rank one": ["svd_subspace", "a", "b", "--out", "child", "--rank", "1"],
        "bad seed": ["dare", "a", "b", "--out", "child", "--seed", "-1"],
        "bad rank": ["dare", "a", "b", "--out", "child", "--rank", "half"],
        "bad word": ["dare", "a", "b", "--out", "child", "--sed", "1"],
        "nan in a layer that is not touched": [
            *("layer_selective_gaussian", "b", "--out", "child", "--set", "fraction=0")
        ],
        "nan in a parent that is not drawn": ["layer_wise", "a", "b", "--out", "child"],
        "unwritable": ["dare", "a", "b", "--out", "a/README.md/child"],
    }.get(name, ["dare", "a", "b", "--out", "child"])


@pytest.mark.parametrize(
    ("name", "named"),
    [
        ("no operator", "--list"),
        ("no out", "--out FOLDER"),
        ("one parent", "dare"),
        ("three parents", "dare"),
        ("missing parent", "zz"),
        ("unknown option", "q"),
        ("no number", "p=half"),
        ("no value", "--set p"),
        ("unknown", "operator=dares"),
        ("rank one", "rank"),
        ("bad seed", "--seed"),
        ("bad rank", "--rank"),
        ("bad word", "--sed"),
        ("nan in a layer that is not touched", "q_proj"),
        ("nan in a parent that is not drawn", "q_proj"),
        ("unwritable", "a/README.md"),
        ("truncated", "b"),
        ("nan", "q_proj"),
        ("other base", "large"),
        ("out exists", "child"),
    ],
)
def test_refusals_say_why_in_one_line_and_leave_nothing_behind(folders, capsys, name, named):
    words = broken(name, folders)
    before = sorted(os.listdir(folders))
    assert cli(["evolve", *words]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1 and named in captured.err
    assert sorted(os.listdir(folders)) == before
