"""A run on a base in NF4, with a child and PEFT folders."""

import pytest
from test_local_run import records, train

from azr_population.weights.peft_folder import load_adapter

pytestmark = pytest.mark.integration


def test_a_population_learns_and_evolves_on_a_quantised_base(tmp_path):
    pytest.importorskip("bitsandbytes", reason="pip install azr_population[quantization]")
    evolve = ["evolution.interval=2", "evolution.grace_period=0"]
    assert train(tmp_path, "run.steps=3", "base.quantization=nf4", *evolve) == 0
    assert len((tmp_path / "lineage.jsonl").read_text().splitlines()) > 0
    folders = sorted((tmp_path / "members").glob("*_*"))
    changed = [load_adapter(folder).factors.values() for folder in folders]
    assert all(any(pair.B.abs().max() > 0 for pair in pairs) for pairs in changed)
    assert records(tmp_path)
