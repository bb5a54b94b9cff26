"""Every known way in which vLLM serves something else without a word, provoked and caught."""

import pytest
import torch
from refusals import refuses

from azr_population.engines import vllm_versions
from azr_population.weights import peft_folder
from azr_population.weights.peft_folder import peft_tensors, save_adapter

pytestmark = pytest.mark.slow


def test_names_of_modules_that_do_not_match(pair, monkeypatch):
    """vLLM then answers as the bare base (vllm#34186)."""

    def misnamed(adapter):
        return {
            name.replace(".layers.", ".blocks."): tensor
            for name, tensor in peft_tensors(adapter).items()
        }

    monkeypatch.setattr(peft_folder, "peft_tensors", misnamed)
    pair.rollout.push(2, pair.learner.read(2))
    with refuses("student_0"):
        pair.check()


def test_two_members_that_were_swapped(pair):
    pair.rollout.push(0, pair.learner.read(1))
    pair.rollout.push(1, pair.learner.read(0))
    with refuses("teacher_0"):
        pair.check()


def test_an_old_version_that_a_prefix_cache_kept(pair, monkeypatch):
    """vllm#42125, #48352: a key that is used again gives the tokens of the old version."""
    pair.check()
    if not pair.rollout.llm.llm_engine.vllm_config.cache_config.enable_prefix_caching:
        pytest.skip("this vLLM has no prefix cache on a CPU")
    served = pair.rollout._requests[3]
    monkeypatch.setattr(vllm_versions, "lora_request", lambda *key: type(served)(
        served.lora_name, served.lora_int_id, served.lora_path))  # fmt: skip
    adapter = pair.loud(7)
    save_adapter(adapter, served.lora_path, "base")
    pair.learner.write(3, adapter)
    pair.rollout.push(3, adapter)
    pair.rollout._stale_prefixes = False
    with refuses("student_1"):
        pair.check()


def test_an_old_version_under_a_number_that_is_used_again(pair, monkeypatch):
    """vLLM does not load a number that it has, whatever lies under the path now."""
    served = pair.rollout._requests[3]
    monkeypatch.setattr(vllm_versions, "lora_request", lambda *key: served)
    monkeypatch.setattr(pair.rollout.llm.llm_engine, "remove_lora", lambda number: True)
    pair.change(3, 8)
    with refuses("student_1"):
        pair.check()


def test_an_adapter_that_was_dropped_for_another(pair):
    """There is room for the base and four members."""
    with refuses("slot"):
        pair.rollout.push(4, pair.loud(9))
    gone = pair.rollout._requests.pop(4)
    pair.rollout.llm.llm_engine.remove_lora(gone.lora_int_id)
    for slot in list(pair.rollout._requests):
        pair.rollout._requests.pop(slot)
    for number in list(pair.rollout.llm.llm_engine.list_loras()):
        pair.rollout.llm.llm_engine.remove_lora(number)


def test_a_self_test_leaves_the_members_as_they_are(pair):
    before = [pair.learner.read(slot) for slot in range(4)]
    pair.canary.self_test(pair.rollout, pair.learner, 4)
    for slot, member in enumerate(before):
        for name, both in pair.learner.read(slot).factors.items():
            assert torch.equal(both.A, member.factors[name].A)
            assert torch.equal(both.B, member.factors[name].B)
    pair.check()
