import copy

import peft
import pytest
import torch
from refusals import refuses
from tiny_models import gpt2, qwen2
from torch import nn
from transformers import Qwen2MoeConfig, Qwen2MoeForCausalLM

from azr_population.weights import bank as banks
from azr_population.weights.adapter import Adapter, Factors, LoraSpec
from azr_population.weights.bank import Bank
from azr_population.weights.peft_folder import save_adapter

MIXES = [[0, 1, 2, 3], [0, 0, 1, 1, 2, 2], [0, 2, 2, 2, 3], [1, 3], [2, 2], [0, 0, 0, 0, 0, 1]]


def bank_of(model, slots=4, **spec):
    """A bank whose members all differ from the base and from one another."""
    bank = Bank(model, LoraSpec(rank=4, alpha=6.0, **spec), slots)
    for slot in range(slots):
        generator = torch.Generator().manual_seed(slot)
        bank.init_member(slot, generator)
        with torch.no_grad():
            for factor in bank.parameters_of(slot)[1::2]:
                factor.normal_(std=0.3, generator=generator)
    return bank


def with_peft(make, adapter, folder):
    save_adapter(adapter, folder, "base")
    return peft.PeftModel.from_pretrained(make(), str(folder)).eval()


@pytest.mark.filterwarnings("ignore:fan_in_fan_out")
def test_each_row_equals_peft_with_its_members_adapter_alone(make_model, tmp_path):
    model = make_model()
    bank = bank_of(model)
    alone = [with_peft(make_model, bank.read(slot), tmp_path / str(slot)) for slot in range(4)]
    ids = torch.randint(0, 50, (6, 9), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        plain = model(ids).logits
        for mix in MIXES:
            rows = ids[: len(mix)]
            with bank.adapters_active(torch.tensor(mix)):
                logits = model(rows).logits
            for row, member in enumerate(mix):
                expected = alone[member](rows[row : row + 1]).logits[0]
                assert (logits[row] - expected).abs().max() <= 1e-5
                assert (logits[row] - plain[row]).abs().max() > 1e-2
        assert torch.equal(model(ids).logits, plain)


def test_gradients_equal_peft_and_stay_with_their_member(make_model):
    model = make_model()
    bank = bank_of(model)
    mix = torch.tensor([0, 0, 2, 2, 2])
    ids = torch.randint(0, 50, (5, 7), generator=torch.Generator().manual_seed(3))
    with bank.adapters_active(mix):
        model(ids).logits[2:].square().mean().backward()
    assert all(factor.grad is None for slot in (1, 3) for factor in bank.parameters_of(slot))
    # Member 0 is in the batch but not in the loss: its gradient is exactly zero.
    assert all(not factor.grad.any() for factor in bank.parameters_of(0))
    together = [factor.grad.clone() for factor in bank.parameters_of(2)]
    assert all(grad.abs().max() > 0 for grad in together)
    for factor in bank.parameters_of(2):
        factor.grad = None
    with bank.adapters_active(mix[2:]):
        model(ids[2:]).logits.square().mean().backward()
    for grad, factor in zip(together, bank.parameters_of(2), strict=True):
        torch.testing.assert_close(grad, factor.grad, rtol=1e-4, atol=1e-7)
    assert all(parameter.grad is None for parameter in model.parameters())


def test_read_and_write_are_exact_and_copies():
    bank = bank_of(qwen2())
    adapter = bank.read(0)
    copied = copy.deepcopy(adapter)
    bank.write(3, adapter)
    for name in bank.names:
        assert torch.equal(bank.read(3).factors[name].A, adapter.factors[name].A)
        assert torch.equal(bank.read(3).factors[name].B, adapter.factors[name].B)
    with torch.no_grad():
        for factor in bank.parameters_of(0) + bank.parameters_of(3):
            factor.zero_()
    assert torch.equal(adapter.factors[bank.names[0]].B, copied.factors[bank.names[0]].B)


def test_init_is_pefts_and_repeatable():
    bank = Bank(qwen2(), LoraSpec(rank=16), 2)
    bank.init_member(0, torch.Generator().manual_seed(5))
    bank.init_member(1, torch.Generator().manual_seed(5))
    first, second = bank.read(0), bank.read(1)
    for name in bank.names:
        A = first.factors[name].A
        assert torch.equal(A, second.factors[name].A)
        limit = A.shape[1] ** -0.5
        assert A.abs().max() <= limit
        assert A.abs().mean() == pytest.approx(limit / 2, rel=0.2)
        assert not first.factors[name].B.any()


@pytest.mark.filterwarnings("ignore:fan_in_fan_out")
def test_names_of_all_linear_are_pefts():
    model = gpt2()
    bank = Bank(gpt2(), LoraSpec(), 1)
    wrapped = peft.get_peft_model(model, peft.LoraConfig(target_modules="all-linear"))
    theirs = [name for name, module in wrapped.named_modules() if hasattr(module, "lora_A")]
    assert bank.names == [name.removeprefix("base_model.model.") for name in theirs]


def test_the_base_keeps_its_state_dict_and_is_frozen():
    model = qwen2()
    names = list(model.state_dict())
    bank_of(model)
    assert list(model.state_dict()) == names
    assert not any(parameter.requires_grad for parameter in model.parameters())


def test_targets_that_do_not_exist_are_named_with_those_that_do():
    with refuses("query_key"):
        Bank(qwen2(), LoraSpec(target_modules=("query_key",)), 2)
    with refuses("target_modules=['v_porj']; it has down_proj"):
        Bank(qwen2(), LoraSpec(target_modules=("q_proj", "v_porj")), 2)
    # A name is meant as a whole, by PEFT's rule.
    with refuses("target_modules=['proj']"):
        Bank(qwen2(), LoraSpec(target_modules=("proj",)), 2)
    with refuses("target_modules"):
        Bank(nn.Embedding(3, 3), LoraSpec(), 2)


def test_experts_are_refused():
    config = Qwen2MoeConfig(
        vocab_size=20,
        hidden_size=8,
        intermediate_size=8,
        moe_intermediate_size=8,
        shared_expert_intermediate_size=8,
        num_hidden_layers=1,
        num_attention_heads=1,
        num_key_value_heads=1,
        num_experts=2,
        num_experts_per_tok=1,
    )
    # transformers 4 has a linear layer for each expert, transformers 5 one parameter for all.
    for targets in (("all-linear",), ("q_proj", "down_proj"), ("shared_expert.up_proj",)):
        with refuses("model.layers.0.mlp"):
            Bank(Qwen2MoeForCausalLM(config), LoraSpec(target_modules=targets), 2)
    assert Bank(Qwen2MoeForCausalLM(config), LoraSpec(target_modules=("q_proj",)), 2).names


def misfits(adapter):
    name = next(iter(adapter.factors))
    pair = adapter.factors[name]
    spec, targets = adapter.spec, adapter.spec.target_modules

    def changed(factors):
        return Adapter(spec, {**adapter.factors, name: factors})

    return {
        "rank": Adapter(LoraSpec(8, spec.alpha, targets), adapter.factors),
        "alpha": Adapter(LoraSpec(spec.rank, 1.0, targets), adapter.factors),
        "layers": Adapter(spec, {name: pair}),
        "32x31": changed(Factors(pair.A[:, 1:], pair.B)),
        "not torch.float32": changed(Factors(pair.A, pair.B.half())),
    }


@pytest.mark.parametrize("what", ["rank", "alpha", "layers", "32x31", "not torch.float32"])
def test_an_adapter_that_does_not_fit_is_refused_and_changes_nothing(what):
    bank = bank_of(qwen2())
    before = bank.read(2)
    with refuses(what):
        bank.write(2, misfits(bank.read(0))[what])
    after = bank.read(2)
    assert all(torch.equal(before.factors[n].A, after.factors[n].A) for n in bank.names)


def test_routes_that_make_no_sense_and_a_batch_of_another_size_are_refused():
    model = qwen2()
    bank = bank_of(model)
    for members in ([], [1, 0], [-1, 0], [0, 4]):
        with pytest.raises(ValueError), bank.adapters_active(torch.tensor(members)):
            pass
    with pytest.raises(RuntimeError), bank.adapters_active(torch.tensor([0, 1])):
        model(torch.zeros(3, 4, dtype=torch.long))


def test_a_copy_in_the_bases_dtype_follows_the_factors(monkeypatch):
    monkeypatch.setattr(banks, "COPIED_TOKENS", 1)
    model = qwen2().to(torch.bfloat16)
    bank = bank_of(model)
    mix, ids = torch.tensor([0, 1, 1]), torch.arange(15).view(3, 5)

    def logits(dtype):
        with torch.inference_mode(), bank.adapters_active(mix, dtype):
            return model(ids).logits.float()

    for _ in range(2):
        exact, served = logits(None), logits(torch.bfloat16)
        assert not torch.equal(exact, served)
        torch.testing.assert_close(exact, served, rtol=0.05, atol=0.1)
        # By an optimizer first, which works in place on the leaves, then by another member's.
        optimizer = torch.optim.AdamW(bank.parameters_of(1), lr=0.5)
        for factor in bank.parameters_of(1):
            factor.grad = torch.ones_like(factor)
        optimizer.step()
        changed = logits(torch.bfloat16)
        assert torch.equal(changed[0], served[0])
        assert (changed[1:] - served[1:]).abs().amax(dim=(1, 2)).min() > 0.2
        bank.write(1, bank.read(2))


@pytest.mark.parametrize("tokens", [1, 10**6], ids=["copies", "masters"])
def test_a_bfloat16_base_is_served_alike_in_every_way(monkeypatch, tokens):
    monkeypatch.setattr(banks, "COPIED_TOKENS", tokens)
    model = qwen2().to(torch.bfloat16)
    bank = bank_of(model)
    ids = torch.randint(0, 50, (6, 4), generator=torch.Generator().manual_seed(1))
    for mix in MIXES:
        rows = ids[: len(mix)]
        with bank.adapters_active(torch.tensor(mix)):
            learned = model(rows).logits.float()
        with torch.inference_mode(), bank.adapters_active(torch.tensor(mix), torch.bfloat16):
            served = model(rows).logits.float()
        torch.testing.assert_close(served, learned, rtol=0.05, atol=0.1)


@pytest.mark.parametrize("make", [qwen2, gpt2])
def test_an_update_added_in_place_has_the_gradients_of_one_beside(make, monkeypatch):
    """In float64, where nothing but a mistake could tell them apart."""
    model = make().double().eval()
    bank = Bank(model, LoraSpec(4, 6.0), 2, torch.float64)
    for slot in range(2):
        bank.init_member(slot, torch.Generator().manual_seed(slot))
        for factor in bank.parameters_of(slot)[1::2]:
            factor.data.normal_(std=0.3, generator=torch.Generator().manual_seed(slot))
    ids = torch.randint(0, 40, (3, 7), generator=torch.Generator().manual_seed(1))

    def learned():
        with bank.adapters_active(torch.tensor([1, 1, 1])):
            logits = model(ids).logits
            loss = logits.log_softmax(-1)[:, :-1].gather(-1, ids[:, 1:, None]).sum()
            return (logits.detach(), *torch.autograd.grad(loss, bank.parameters_of(1)))

    in_place = learned()
    monkeypatch.setattr(banks._Added, "apply", None)
    with pytest.raises(TypeError):
        learned()
    monkeypatch.setattr(
        banks._Added,
        "apply",
        # Where the weight is given, `output` is detached.
        lambda output, x, weight, A, B, scaling: (
            (output if weight is None else x @ weight.t() + (output - x @ weight.t()).detach())
            + (x @ A.t() * scaling) @ B.t()
        ),
    )
    for ours, theirs in zip(in_place, learned(), strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-9, atol=1e-12)
        assert ours.abs().sum() > 0
