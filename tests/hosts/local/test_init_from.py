"""A run whose founders somebody has trained before."""

import pytest
from test_local_run import train

from azr_population.weights.peft_folder import load_adapter

pytestmark = pytest.mark.integration


def test_founders_are_members_of_another_run_one_each_and_of_a_smaller_rank(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    assert train(first, "run.steps=1", "base.lora.rank=2") == 0
    folders = [first / "members" / "student_1", first / "members" / "student_0"]
    started = [f"population.init_from.student=[{','.join(map(str, folders))}]"]
    started.append("population.student_lr=0")
    assert train(second, "run.steps=1", "base.lora.rank=3", *started) == 0
    children = [load_adapter(folder) for folder in sorted((second / "members").glob("student_*"))]
    for parent, child in zip(map(load_adapter, folders), children, strict=True):
        for name, pair in child.factors.items():
            theirs = parent.factors[name]
            expected = parent.spec.scaling * theirs.B @ theirs.A
            update = child.spec.scaling * pair.B @ pair.A
            assert (update - expected).abs().max() <= 1e-6 * expected.abs().max() + 1e-12
