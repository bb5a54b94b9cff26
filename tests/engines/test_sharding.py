"""Two processes that share the base out train the members that whole bases train, bit for bit."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from refusals import refuses

from azr_population.config.schema import LearnerConfig
from azr_population.engines.assembly import EngineSettings
from azr_population.engines.sharding import shard_base
from azr_population.weights.adapter import LoraSpec

SCRIPT = Path(__file__).with_name("sharded_rank.py")


@pytest.mark.slow
def test_members_on_a_shared_base_are_those_on_whole_ones(tmp_path):
    subprocess.run([sys.executable, str(SCRIPT), str(tmp_path)], check=True)
    results = torch.load(tmp_path / "results.pt", weights_only=False)
    # Without checkpointing, with it, and with it for long pieces only, which not all ranks have.
    for how in ((False, 0), (True, 0), (True, 40)):
        whole, shared = results[(False, *how)], results[(True, *how)]
        assert shared["held"] == pytest.approx(whole["held"] / 2, rel=0.01)
        assert len(set(shared["digests"])) == 1
        assert len(shared["members"]) == 3
        for slot in range(3):
            assert shared["updates"][slot]["updates"] == 1.0
            assert shared["updates"][slot] == whole["updates"][slot]
            for ours, theirs in zip(shared["members"][slot], whole["members"][slot], strict=True):
                assert torch.equal(ours, theirs)
                assert ours.abs().sum() > 0


@pytest.mark.parametrize("key", ["shard_base", "offload"])
def test_a_sampler_on_the_learners_own_base_is_refused(key, check):
    with refuses(key):
        check("torch", device="cuda", **{key: True})


def test_a_model_without_blocks_is_refused():
    with refuses("Linear"):
        shard_base(torch.nn.Linear(2, 2), "cpu")


@pytest.mark.parametrize(
    ("setting", "rollout", "dtype", "cap"),
    [
        (None, "torch", "float32", 0.0),
        (None, "torch", "bfloat16", 2.0),
        (None, "vllm", "float32", 2.0),
        (0.0, "vllm", "bfloat16", 0.0),
        (5.0, "torch", "float32", 5.0),
    ],
)
def test_a_sampler_that_is_not_quite_the_learner_is_corrected_for(setting, rollout, dtype, cap):
    settings = EngineSettings(
        "base",
        ("student_0",),
        LoraSpec(4, 8.0),
        dtype=dtype,
        rollout=rollout,
        learner=LearnerConfig(importance_sampling_cap=setting),
    )
    assert settings.importance_sampling_cap == cap
