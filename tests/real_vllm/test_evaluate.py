"""`azr-population benchmark --rollout vllm`: the answers that torch gives."""

import pytest
import torch
from random_adapters import loud

from azr_population.bases.nano import nano_base_path
from azr_population.engines.base_model import load_base
from azr_population.engines.torch_rollout import make_bank
from azr_population.weights.adapter import LoraSpec
from azr_population.weights.peft_folder import save_adapter

pytestmark = pytest.mark.slow


def member(spec, seed):
    """An adapter on the nano base that changes much."""
    model, _ = load_base(nano_base_path(), "float32", "cpu")
    return loud(make_bank(model, spec, [torch.Generator().manual_seed(0)]).read(0), seed)


def test_greedy_answers_are_those_of_torch(tmp_path):
    """The base and three members of two shapes, so that two engines start one after the other."""
    provider = pytest.importorskip("azr_population.eval.benchmark.provider")
    from inspect_ai.model import ChatMessageUser

    names = [str(nano_base_path())]
    for number, spec in enumerate([LoraSpec(8, 16.0), LoraSpec(8, 16.0), LoraSpec(4, 8.0)]):
        names.append(str(tmp_path / f"student_{number}"))
        save_adapter(member(spec, number), names[-1], str(nano_base_path()))
    texts = [f"def f(x):\n    return x + {n}\n\nf({n}) == " for n in (1, 5, 12)]

    def answers(rollout):
        completions = {}
        for name in names:
            api = provider.PopulationAPI(name, rollout=rollout)
            requests = [
                provider.Request(
                    api.target,
                    [ChatMessageUser(content=text, metadata={"raw": True})],
                    24,
                    (0.0, 1.0, 0),
                    (),
                )
                for text in texts
            ]
            outputs = api.shared.generate(requests)
            completions |= {(name, t): o.completion for t, o in zip(texts, outputs, strict=True)}
        return completions

    by_torch, by_vllm = answers("torch"), answers("vllm")
    assert by_torch == by_vllm
    assert len(by_torch) == 12
    assert len(set(by_torch.values())) > 4
