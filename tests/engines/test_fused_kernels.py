"""Liger's kernels in our learner, in Triton's interpreter, beside transformers' modules."""

import importlib.util
import os
import subprocess
import sys

import pytest
import torch
import transformers
from refusals import refuses
from transformers import AutoModelForCausalLM, LlamaConfig, Qwen2Config, Qwen3Config

from azr_population.config.schema import LearnerConfig
from azr_population.engines.base_model import use_fused_kernels
from azr_population.engines.engine import Completion, Hyperparameters, TrainingSample
from azr_population.engines.torch_learner import TorchLearner
from azr_population.engines.torch_rollout import make_bank
from azr_population.weights.adapter import LoraSpec

SIZES = {
    "vocab_size": 40,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}
KINDS = {"llama": LlamaConfig, "qwen2": Qwen2Config, "qwen3": Qwen3Config}
SAMPLES = [
    TrainingSample(Completion(0, (3, 4, 5), (6, 7, 8, 9), (-3.0,) * 4, True), 1.0),
    TrainingSample(Completion(0, (3, 4, 5), (9, 8), (-3.0,) * 2, True), -1.0),
]


def gradients(kind, dtype, keep, fused):
    """A member's gradients after one update, in one vector."""
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(KINDS[kind](**SIZES)).to(dtype).eval()
    if fused:
        use_fused_kernels(model)
    settings = LearnerConfig(
        gradient_checkpointing=keep is not None, recompute_above_tokens=keep, share_prefix=False
    )
    settings.lora_dtype = str(dtype).removeprefix("torch.")
    bank = make_bank(model, LoraSpec(4, 8.0), [torch.Generator().manual_seed(0)])
    for factor in bank.parameters_of(0)[1::2]:
        factor.data.normal_(std=0.1, generator=torch.Generator().manual_seed(1))
    learner, taken = TorchLearner(model, bank, settings), []
    learner._optimizers[0].step = lambda: taken.extend(f.grad for f in bank.parameters_of(0))
    learner.update({0: SAMPLES}, {0: Hyperparameters(0.1)})
    return torch.cat([gradient.flatten() for gradient in taken])


def ready_interpreter():
    """Has Triton's interpreter pass floats as a GPU gets them (by itself it leaves them Python's,
    on which kernels cannot call `to`), and gives it a root that is not in NVIDIA's library."""
    import numpy as np
    import triton.language as tl
    from liger_kernel.ops import rms_norm
    from triton.runtime import interpreter

    rms_norm.rsqrt = lambda x: tl.math.rsqrt(x)
    convert = interpreter._implicit_cvt

    def converted(argument):
        if not isinstance(argument, float):
            return convert(argument)
        handle = interpreter.TensorHandle(np.array([argument], np.float32), tl.float32)
        return tl.tensor(handle, tl.float32)

    interpreter._implicit_cvt = converted


def main(kind):
    ready_interpreter()
    # All plain ones first: Liger changes transformers' module for good. float16 in place of
    # bfloat16, in which numpy does not compute.
    cases = [(dtype, keep) for dtype in (torch.float32, torch.float16) for keep in (None, 0, 1000)]
    plain = [gradients(kind, *case, fused=False) for case in cases]
    for (dtype, keep), expected in zip(cases, plain, strict=True):
        ours = gradients(kind, dtype, keep, fused=True)
        off = float((ours - expected).norm() / expected.norm())
        print(kind, dtype, keep, off)
        assert 0 < off < (1e-5 if dtype == torch.float32 else 0.005)


def test_a_bfloat16_base_learns_alike_whatever_is_kept():
    """Updates are added to the base's products in place there."""
    everything, inputs, products = (
        gradients("qwen2", torch.bfloat16, keep, fused=False) for keep in (None, 0, 1000)
    )
    assert everything.any()
    assert torch.equal(everything, inputs) and torch.equal(everything, products)


def test_a_liger_that_does_not_take_this_transformers_is_one_line(monkeypatch):
    monkeypatch.setattr("azr_population.engines.base_model.installed", lambda package: "0.8.5")
    monkeypatch.setitem(sys.modules, "liger_kernel.transformers", None)
    with refuses("fused_kernels"):
        use_fused_kernels(None)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_fused_kernels_learn_what_transformers_modules_learn(kind):
    for package in ("triton", "liger_kernel"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"needs {package}")
    if transformers.__version__.startswith("4."):
        pytest.skip("Liger needs transformers 5")
    done = subprocess.run(
        [sys.executable, __file__, kind],
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


if __name__ == "__main__":
    main(sys.argv[1])
