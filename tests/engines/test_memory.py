"""The sums of a run's memory, held against the models themselves and the learner's own code, run at
7B's shapes on tensors without contents."""

from dataclasses import replace

import counts
import drawn
import pytest
import torch
from counted import Counted

from azr_population.config.schema import LearnerConfig
from azr_population.engines import memory, offload
from azr_population.engines.architecture import Architecture
from azr_population.engines.engine import EngineSettings, Hyperparameters
from azr_population.engines.memory import GpuLayout
from azr_population.engines.torch_learner import TorchLearner
from azr_population.engines.torch_rollout import make_bank
from azr_population.weights.adapter import LoraSpec
from azr_population.weights.bank import Bank

QWEN_7B = {
    "vocab_size": 152_064, "hidden_size": 3584, "intermediate_size": 18_944,
    "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4,
}  # fmt: skip
H100 = 84.9e9
RATE = Hyperparameters(1e-5)


def sample(prompt, answer):
    """A row of so many tokens."""
    return drawn.sample(0, [1] * (prompt + answer), prompt, 1.0)


def config(kind, **sizes):
    from transformers import LlamaConfig, Qwen2Config, Qwen3Config

    return {"qwen2": Qwen2Config, "qwen3": Qwen3Config, "llama": LlamaConfig}[kind](**sizes)


def architecture(sizes=QWEN_7B):
    return Architecture.of(config("qwen2", **sizes))


@pytest.mark.parametrize("kind", ["qwen2", "qwen3", "llama"])
@pytest.mark.parametrize("tied", [False, True])
def test_weights_are_those_of_the_model(kind, tied):
    from transformers import AutoModelForCausalLM

    described = config(
        kind, vocab_size=1000, hidden_size=96, intermediate_size=200, num_hidden_layers=3,
        num_attention_heads=6, num_key_value_heads=2, head_dim=16, tie_word_embeddings=tied,
    )  # fmt: skip
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(described)
    shape = Architecture.of(described)
    assert shape.weights == sum(p.numel() for p in model.parameters())
    for targets in (("all-linear",), ("q_proj", "down_proj")):
        bank = Bank(model, LoraSpec(8, 16.0, targets), 1)
        assert shape.adapter(8, targets) == sum(p.numel() for p in bank.parameters_of(0))


def test_what_these_sums_are_not_made_for_has_none():
    from transformers import GPT2Config, MixtralConfig

    assert Architecture.of(GPT2Config()) is None
    assert Architecture.of(MixtralConfig()) is None


def test_a_base_with_linear_attention_is_not_taken_for_llama():
    import transformers

    if not hasattr(transformers, "Qwen3_5TextConfig"):
        pytest.skip("transformers 4 has no Qwen3.5")
    sizes = {"num_hidden_layers": 4, "vocab_size": 1000, "hidden_size": 256}
    assert Architecture.of(transformers.Qwen3_5TextConfig(**sizes)) is None


def test_layers_with_a_window_attend_to_it_alone():
    """Of Gemma 3 every sixth layer attends to all."""
    from transformers import Gemma3TextConfig, MistralConfig

    sizes = {"num_hidden_layers": 6, "vocab_size": 1000, "num_attention_heads": 2}
    shape = Architecture.of(Gemma3TextConfig(hidden_size=256, sliding_window=512, **sizes))
    assert (shape.windowed, shape.window) == (5, 512)
    assert shape.attended(500) == 500 and shape.attended(2000) == (5 * 512 + 2000) / 6
    sizes |= {"hidden_size": 64, "intermediate_size": 96, "num_key_value_heads": 2}
    assert Architecture.of(MistralConfig(sliding_window=100, **sizes)).attended(300) == 100
    assert Architecture.of(MistralConfig(sliding_window=None, **sizes)).attended(300) == 300
    assert architecture().attended(9000) == 9000


def learner(sizes, checkpointing, offload=False, **settings):
    model = drawn.drawn(config("qwen2", **sizes), torch.bfloat16, "cpu")
    settings = {"lora_dtype": "bfloat16", **settings}
    config_of = LearnerConfig(gradient_checkpointing=checkpointing, offload=offload, **settings)
    return TorchLearner(model, Bank(model, LoraSpec(32, 64.0), 8), config_of, parallel=True)


@pytest.mark.parametrize("lora_dtype", ["bfloat16", "float32"])
def test_products_that_are_kept_take_what_the_dry_run_says(lora_dtype):
    sizes = QWEN_7B | {"num_hidden_layers": 8}
    more = {"lora_bytes": getattr(torch, lora_dtype).itemsize, "no_recompute_tokens": 2000}
    layout = GpuLayout(architecture(sizes), 8, 32, 1500, 500, micro_batch_tokens=2000, **more)
    with Counted() as counted:
        limits = {"recompute_above_tokens": 2000, "micro_batch_tokens": 2000}
        trained, rates = learner(sizes, True, lora_dtype=lora_dtype, **limits), {0: RATE}
        trained.update({0: [sample(8, 8)]}, rates)
        run = counted.of(lambda: trained.update({0: [sample(1500, 500)] * 2}, rates))
    expected = memory.phases(layout, H100)["update"]["work"]
    print(f"counted {run['peak'] / 1e9:.2f} GB, worked out {expected / 1e9:.2f}")
    assert run["peak"] == pytest.approx(expected, rel=0.1)


def test_what_is_kept_fits_beside_the_rest_and_more_room_keeps_more():
    layout = GpuLayout(architecture(), 8, 32, 6144, 8096, lora_bytes=2)
    tokens = [memory.kept_tokens(layout, total) for total in (40e9, 60e9, H100)]
    assert 0 == tokens[0] < tokens[1] < tokens[2] == layout.micro_batch_tokens
    again, keeping = (
        memory.phases(replace(layout, no_recompute_tokens=keep), H100)["update"]
        for keep in (0, tokens[1])
    )
    assert keeping["work"] > again["work"]
    assert sum(keeping.values()) < 0.8 * H100
    assert memory.kept_tokens(replace(layout, checkpointing=False), H100) == 0


@pytest.mark.parametrize("offloaded", [False, True])
def test_the_device_holds_what_the_dry_run_says_in_each_phase(offloaded, monkeypatch):
    """At 7B's widths, on tensors without contents."""
    sizes = QWEN_7B | {"num_hidden_layers": 2}
    more = {"micro_batch_tokens": 1024, "offload": offloaded}
    layout = GpuLayout(architecture(sizes), 8, 32, 1500, 500, lora_bytes=2, **more)
    expected = memory.phases(layout, H100)
    on_host = offload._on_host

    def elsewhere(tensor):
        copied = on_host(tensor)
        counted.elsewhere(copied)
        return copied

    monkeypatch.setattr(offload, "_on_host", elsewhere)
    with Counted() as counted:
        trained = learner(sizes, checkpointing=True, offload=offloaded)
        rates = dict.fromkeys(range(layout.slots), RATE)
        # Moments come with the first update.
        trained.update({slot: [sample(8, 8)] for slot in rates}, rates)
        resting = counted.live
        peaks = {}
        for name, run in {
            "score": lambda: trained.log_probs([[1] * 1500], [[1] * 500], [0]),
            # Two rows, so that there is a sum of gradients beside the second one's work.
            "update": lambda: trained.update({0: [sample(1500, 500)] * 2}, rates),
        }.items():
            before = counted.live
            peaks[name] = before + counted.of(run)["peak"]
            assert counted.live - before <= expected["score"]["their copies"]
    parts = ("base", "members, float32", "AdamW's moments")
    estimate = sum(expected["generate"][part] for part in parts)
    assert resting == pytest.approx(estimate, rel=1e-3, abs=1e6)
    for name, measured in peaks.items():
        estimate = sum(expected[name].values()) - expected[name]["CUDA, NCCL, graphs"]
        print(f"{name}: counted {measured / 1e9:.2f} GB, worked out {estimate / 1e9:.2f}")
        assert measured == pytest.approx(estimate, rel=0.1)


def test_sampling_holds_what_the_dry_run_says():
    """Where torch samples, at 7B's widths: prompts are read straight into the cache."""
    described = config("qwen2", **QWEN_7B | {"num_hidden_layers": 2})
    rows, prompt, tokens = 64, 2048, 3
    shape = Architecture.of(described)
    more = {"vllm": False, "generate_tokens": rows * (prompt + tokens)}
    layout = GpuLayout(shape, 8, 32, prompt, tokens, lora_bytes=2, **more)
    expected = memory.phases(layout, H100)["generate"]
    with Counted() as counted:
        model = drawn.drawn(described, torch.bfloat16, "cpu")
        bank = make_bank(model, LoraSpec(32, 64.0), drawn.seeds(8))
        slots = [row // 8 for row in range(rows)]
        peak = counted.of(lambda: counts.decode(model, bank, [[1] * prompt] * rows, slots, tokens))[
            "peak"
        ]
    estimate = sum(expected[part] for part in ("KV cache", "work", "their copies"))
    assert peak == pytest.approx(estimate, rel=0.1)


def test_an_offloaded_learner_gives_vllm_its_room():
    layout = GpuLayout(architecture(), 8, 32, 6144, 8096, lora_bytes=2, vllm_fraction=0.6)
    away = replace(layout, offload=True)
    card = 25.5e9
    assert memory.check_memory(replace(layout, vllm_fraction=0.9), card)
    parts = memory.phases(layout, H100)["score"]
    learner_held = sum(parts[name] for name in ("base", "members, float32", "AdamW's moments"))
    for phase in ("generate", "wake"):
        resident, left = (sum(memory.phases(each, H100)[phase].values()) for each in (layout, away))
        assert resident - left >= learner_held
    assert memory.vllm_utilisation(away, H100) == away.vllm_fraction
    resident, left = (memory.host_bytes(each, H100) for each in (layout, away))
    assert left > resident + learner_held - 1


def test_a_base_decides_by_its_size_on_what_the_settings_leave_open():
    open_ended = EngineSettings("base", ("a",), LoraSpec(8, 16.0), device="cuda")

    def decided(settings, weights):
        settled = settings.for_base(weights)
        return settled.learner.gradient_checkpointing, settled.generate_rows

    assert decided(open_ended, 10**6) == (False, 4096)
    assert decided(open_ended, 10**9) == (True, 512)
    assert decided(replace(open_ended, device="cpu"), 10**9) == (False, 512)
    given = replace(open_ended, generate_rows=7, learner=LearnerConfig(gradient_checkpointing=True))
    assert decided(given, 10**6) == (True, 7)
    layout = GpuLayout.of(architecture(), open_ended, 1000, 100)
    assert layout.checkpointing and layout.generate_tokens == min(512 * 1100, 393_216)
