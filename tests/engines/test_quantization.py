"""The base in NF4, on a CPU by bitsandbytes."""

import pytest
import torch
from refusals import refuses

from azr_population.bases.nano import nano_base_path
from azr_population.engines import vllm_versions
from azr_population.engines.architecture import Architecture
from azr_population.engines.base_model import load_base
from azr_population.engines.canary import random_adapter
from azr_population.engines.memory import GpuLayout
from azr_population.engines.offload import Offload
from azr_population.weights.adapter import LoraSpec
from azr_population.weights.bank import Bank

bitsandbytes = pytest.importorskip(
    "bitsandbytes", reason="pip install azr_population[quantization]"
)


@pytest.fixture(scope="module")
def quantized():
    model, _ = load_base(nano_base_path(), "float32", "cpu", quantization="nf4")
    return model


def dequantized(quantized):
    """The same weights in float32."""
    from bitsandbytes.functional import dequantize_4bit

    model, _ = load_base(nano_base_path(), "float32", "cpu")
    for name, layer in quantized.named_modules():
        if isinstance(layer, bitsandbytes.nn.Linear4bit):
            weight = dequantize_4bit(layer.weight.data, layer.weight.quant_state)
            model.get_submodule(name).weight.data = weight.float()
    return model


def member():
    """Factors that change something."""
    model, _ = load_base(nano_base_path(), "float32", "cpu")
    return random_adapter(Bank(model, LoraSpec(8, 16.0), 1).read(0), 1)


def loss_and_gradients(model, adapter):
    bank = Bank(model, adapter.spec, 1)
    bank.write(0, adapter)
    ids = torch.arange(20, 60).view(2, 20)
    with torch.no_grad(), bank.adapters_active(torch.tensor([0, 0])):
        model(input_ids=ids)  # sampling comes before learning, and must not spoil it
    with bank.adapters_active(torch.tensor([0, 0])):
        loss = model(input_ids=ids).logits.log_softmax(-1)[..., 5].mean()
        loss.backward()
    return loss, [factor.grad for factor in bank.parameters_of(0)]


def test_the_sums_know_its_bytes(quantized):
    layout = GpuLayout(Architecture.of(quantized.config), 1, 8, 10, 10, size=4, nf4=True)
    states = [
        layer.weight.quant_state
        for layer in quantized.modules()
        if isinstance(layer, bitsandbytes.nn.Linear4bit)
    ]
    # Of the scales; beside them each layer has a table of 1 KB.
    scales = sum(state.absmax.nbytes + state.state2.absmax.nbytes for state in states)
    assert layout.weights == pytest.approx(quantized.get_memory_footprint() + scales, rel=1e-3)


def test_gradients_are_those_of_the_dequantised_base(quantized):
    reference, adapter = dequantized(quantized), member()
    loss, ours = loss_and_gradients(quantized, adapter)
    expected, theirs = loss_and_gradients(reference, adapter)
    assert loss.item() == pytest.approx(expected.item(), abs=1e-4)
    for gradient, exact in zip(ours, theirs, strict=True):
        assert exact.norm() > 0
        assert (gradient - exact).norm() <= 1e-2 * exact.norm()


def test_in_bfloat16_an_update_adds_to_layers_that_return_views():
    """As on a GPU. autograd refuses a change in place of what bitsandbytes' layers return."""
    adapter, found = member(), []
    layers, _ = load_base(nano_base_path(), "bfloat16", "cpu", quantization="nf4")
    for model in (layers, dequantized(layers).bfloat16()):
        bank = Bank(model, adapter.spec, 1)
        bank.write(0, adapter)
        ids = torch.arange(20, 60).view(2, 20)
        with bank.adapters_active(torch.tensor([0, 0]), torch.bfloat16):
            model(input_ids=ids).logits.float().log_softmax(-1)[..., 5].mean().backward()
        found.append(torch.cat([f.grad.flatten() for f in bank.parameters_of(0)]))
    gradient, exact = found
    assert (gradient - exact).norm() <= 0.05 * exact.norm()


def test_it_comes_back_from_the_host_as_it_was(quantized):
    ids = torch.arange(20, 60).view(2, 20)
    with torch.no_grad():
        before = quantized(input_ids=ids).logits
        away = Offload(quantized, Bank(quantized, LoraSpec(8, 16.0), 1))
        with away.on_device():
            assert torch.equal(quantized(input_ids=ids).logits, before)


@pytest.mark.parametrize(
    ("vllm", "device"),
    [({"tensor_parallel_size": 2}, "cuda"), ({}, "cpu")],
    ids=["tensor parallelism", "vLLM on a CPU"],
)
def test_what_cannot_compute_with_it_is_refused(vllm, device, check, monkeypatch):
    monkeypatch.setattr(vllm_versions, "version", lambda: (0, 28, 0))
    check("torch", quantization="nf4")
    with refuses("base.quantization"):
        check("vllm", quantization="nf4", device=device, vllm=vllm)
