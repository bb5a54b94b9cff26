"""What vLLM cannot do ends in one line with its reason."""

import json

import pytest
from refusals import refuses

from azr_population.bases.nano import nano_base_path
from azr_population.engines.engine import EngineSettings
from azr_population.engines.vllm_rollout import VllmRollout
from azr_population.weights.adapter import Adapter, Factors, LoraSpec

pytestmark = [pytest.mark.slow]


def rollout(base, options):
    settings = EngineSettings(str(base), ("student_0",), LoraSpec(8, 16.0), vllm=options)
    return VllmRollout(settings, frozenset())


def test_an_option_that_vllm_does_not_take_is_named():
    with refuses("rollout=torch"):
        rollout(nano_base_path(), {"max_num_sequences": 4})


def test_a_module_that_vllm_does_not_adapt_is_named(pair):
    adapter = pair.learner.read(1)
    name, factors = next(iter(adapter.factors.items()))
    odd = {name.rpartition(".")[0] + ".gate": Factors(factors.A.clone(), factors.B.clone())}
    with refuses("gate"):
        pair.rollout.push(1, Adapter(adapter.spec, {**adapter.factors, **odd}))


def test_a_context_that_the_caches_memory_cannot_hold_is_refused(tmp_path):
    nano = json.loads((nano_base_path() / "config.json").read_text())
    longer = nano | {"max_position_embeddings": 1_000_000}
    (tmp_path / "config.json").write_text(json.dumps(longer))
    with refuses("rollout=torch"):
        rollout(tmp_path, {"load_format": "dummy"})
