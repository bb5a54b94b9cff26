"""The same scripted completions under AZR's pins and under today's versions give the same run.

By hand, in one of `.venv-pins` and `.venv-current` (bash scripts/verl.sh); OTHER_PYTHON names the
Python of another environment:

    AZR_HOME=... .venv-pins/bin/python -m pytest -m azr THIS_FILE
"""

import json
import os
import sys
from pathlib import Path

import host
import needs
import pytest
import torch
from test_run_in_azr import POPULATION, run_directory
from tokenizers import Regex, Tokenizer, normalizers, pre_tokenizers
from transformers.models.qwen2.tokenization_qwen2 import PRETOKENIZE_REGEX

from azr_population.weights.peft_folder import load_adapter

ROOT = Path(__file__).parents[3]
STACK = "current" if host.pinned() else "pins"
OTHER = Path(os.environ.get("OTHER_PYTHON", ROOT / f".venv-{STACK}" / "bin" / "python"))

pytestmark = [
    pytest.mark.azr,
    pytest.mark.slow,
    pytest.mark.skipif(not OTHER.is_file(), reason=f"needs {OTHER}: LINE={STACK} scripts/verl.sh"),
]

# Computed by two versions of transformers; they differ by rounding.
SCORES = {"log_prob"}


def read_alike(base):
    """Splits text as Qwen2's own tokenizer does: transformers 5 takes that for every Qwen2, and the
    same text would be other tokens. The class that transformers 5 writes, 4 does not know."""
    configuration = base / "tokenizer_config.json"
    written = {
        **json.loads(configuration.read_text()),
        "tokenizer_class": "PreTrainedTokenizerFast",
    }
    configuration.write_text(json.dumps(written))
    tokenizer_file = base / "tokenizer.json"
    tokenizer = Tokenizer.from_file(str(tokenizer_file))
    tokenizer.normalizer = normalizers.NFC()
    words = pre_tokenizers.Split(Regex(PRETOKENIZE_REGEX), "isolated")
    letters = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([words, letters])
    tokenizer.save(str(tokenizer_file))


def records(run, name):
    lines = [json.loads(line) for line in (run / f"{name}.jsonl").read_text().splitlines()]
    return [{key: value for key, value in row.items() if key not in SCORES} for row in lines]


def updates(folder):
    """dW of each module: an operator that factors it anew may choose other factors."""
    member = load_adapter(folder)
    return {
        name: member.spec.scaling * pair.B.double() @ pair.A.double()
        for name, pair in member.factors.items()
    }


def test_the_same_completions_give_the_same_run(tmp_path, monkeypatch):
    needs.verl()
    host.prepare(tmp_path)
    read_alike(tmp_path / "base")
    # The command of ours runs under both.
    monkeypatch.setattr(host, "command", lambda: ["-m", "azr_population.cli", "azr"])
    runs = []
    for out, python in (("here", sys.executable), ("there", str(OTHER))):
        monkeypatch.setattr(sys, "executable", python)
        host.played(tmp_path, [
            "+population=4t4s", *POPULATION, "population.dtype=float32",
            "population.log_completions=10000", "trainer.total_training_steps=3",
            "trainer.save_freq=3", f"trainer.default_local_dir={tmp_path / out}",
        ])  # fmt: skip
        runs.append(run_directory(tmp_path, out))
    versions = [json.loads((run / "environment.json").read_text())["packages"] for run in runs]
    assert versions[0]["verl"] != versions[1]["verl"], versions
    # Matches with ratings, births, tasks with rewards, rows with rewards and advantages.
    for name in ("matches", "lineage", "tasks", "completions", "validations"):
        here, there = (records(run, name) for run in runs)
        assert here and here == there, name
    worst = 0.0
    for member in sorted(path.name for path in (runs[0] / "members").glob("*_*")):
        here, there = (updates(run / "members" / member) for run in runs)
        assert here.keys() == there.keys()
        for name, update in here.items():
            assert torch.allclose(update, there[name], rtol=0, atol=1e-6), (member, name)
            worst = max(worst, float((update - there[name]).abs().max()))
    print(f"members differ by {worst:.1e} at most: {versions}")
