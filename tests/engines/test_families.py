"""A tiny random base of each family: what is sampled is what is learned from, and a member's PEFT
folder gives PEFT the same logits; families that the torch sampler cannot carry are refused."""

import copy

import peft
import pytest
import torch
import transformers
from refusals import refuses

from azr_population.engines.engine import Sampling, TrainingSample
from azr_population.engines.micro_batches import collate
from azr_population.engines.token_log_probs import token_log_probs
from azr_population.engines.torch_rollout import TorchRollout, check_sampling, make_bank
from azr_population.weights.adapter import LoraSpec
from azr_population.weights.peft_folder import load_adapter, save_adapter

SIZES = dict(
    hidden_size=32,
    intermediate_size=48,
    num_hidden_layers=2,
    num_attention_heads=2,
    num_key_value_heads=1,
    max_position_embeddings=512,
)
WIDE = SIZES | {"head_dim": 16}
SLIDING = WIDE | {"sliding_window": 8}
EXPERTS = {"num_experts_per_tok": 2, "moe_intermediate_size": 16}
LINEAR = {f"linear_{kind}": n for kind, n in (("num_key_heads", 2), ("num_value_heads", 2))} | {
    f"linear_{kind}_head_dim": 8 for kind in ("key", "value")
}
FAMILIES = {
    "Qwen2": SIZES,
    "Qwen3": WIDE,
    "Llama": SIZES,
    "Mistral": SIZES,
    "Ministral3": WIDE,
    "Gemma2": SLIDING | {"query_pre_attn_scalar": 16},
    "Gemma3Text": SLIDING | {"query_pre_attn_scalar": 16},
    "SmolLM3": SIZES | {"pad_token_id": 0},
    "Phi3": SIZES | {"pad_token_id": 0},
    "Olmo2": SIZES,
    "Olmo3": SIZES | {"sliding_window": 8},
    "Granite": SIZES,
    "Glm4": WIDE | {"pad_token_id": 0},
    "Cohere2": SLIDING,
    "Starcoder2": SIZES,
    "GPT2": dict(n_embd=32, n_layer=2, n_head=2, n_positions=512),
    "GPTNeoX": {k: v for k, v in SIZES.items() if k != "num_key_value_heads"},
    "Qwen3Moe": WIDE | EXPERTS | {"num_experts": 4},
    "Mixtral": SIZES | {"num_local_experts": 4, "num_experts_per_tok": 2},
    "GptOss": SLIDING | {"num_local_experts": 4, "num_experts_per_tok": 2},
}
RECURRENT = {
    "Qwen3_5Text": WIDE | LINEAR | {"layer_types": ["linear_attention", "full_attention"]},
    "Lfm2": SIZES | {"layer_types": ["conv", "full_attention"], "block_ff_dim": 48},
    "FalconH1": SIZES | dict(mamba_d_ssm=32, mamba_n_heads=4, mamba_d_head=8, mamba_n_groups=1),
}
TARGETS = ("q_proj", "v_proj", "o_proj", "qkv_proj", "c_attn", "query_key_value")


def make(family):
    if not hasattr(transformers, family + "Config"):
        pytest.skip(f"transformers {transformers.__version__} has no {family}")
    torch.manual_seed(0)
    sizes = (FAMILIES | RECURRENT)[family] | {
        "vocab_size": 64,
        "bos_token_id": 1,
        "eos_token_id": 1,
    }
    config = getattr(transformers, family + "Config")(**sizes)
    return transformers.AutoModelForCausalLM.from_config(config).eval()


def spec_of(model):
    """Adapters on those of the `TARGETS` that the model has."""
    names = {name.rpartition(".")[2] for name, _ in model.named_modules()}
    return LoraSpec(2, 4.0, tuple(name for name in TARGETS if name in names))


@pytest.mark.parametrize("family", FAMILIES)
def test_what_is_sampled_is_what_is_learned_from_and_what_peft_loads(family, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")  # PEFT would look for the base's vocabulary
    model = make(family)
    plain, generator = copy.deepcopy(model), torch.Generator().manual_seed(1)
    spec = spec_of(model)
    bank = make_bank(model, spec, [generator])
    check_sampling(model, bank)
    noise = bank.read(0).map(lambda f: torch.randn(f.shape, generator=generator) / 5)
    save_adapter(noise, tmp_path / "member", "base")
    bank.write(0, load_adapter(tmp_path / "member"))

    prompts = [list(range(5, 5 + length)) for length in (2, 7, 23)]
    sampler = TorchRollout(model, bank, frozenset({1}))
    groups = sampler.generate(prompts, [0] * 3, Sampling(12, n=2), seed=3)
    samples = [[TrainingSample(done, 1.0)] for group in groups for done in group]
    batch = collate(samples, torch.device("cpu"))
    with bank.adapters_active(torch.zeros(len(batch.input_ids), dtype=torch.long)):
        scores, _ = token_log_probs(model, batch)
        scores.sum().backward()
    assert float((scores - batch.old_logprobs).abs().max()) < 2e-4
    assert all(factor.grad.abs().sum() > 0 for factor in bank.parameters_of(0))

    ids = torch.arange(5, 40)[None]
    with torch.no_grad():
        with bank.adapters_active(torch.tensor([0])):
            ours = model(ids).logits
        bare = plain(ids).logits
        theirs = peft.PeftModel.from_pretrained(plain, tmp_path / "member").eval()(ids).logits
    assert float((ours - theirs).abs().max()) < 1e-4 < 1e-2 < float((ours - bare).abs().max())


@pytest.mark.parametrize("family", RECURRENT)
def test_a_base_that_keeps_a_state_is_refused_by_name(family):
    with refuses(f"{family.removesuffix('Text')}ForCausalLM keeps a state"):
        check_sampling(make(family), None)


def test_a_base_whose_sampler_is_not_its_learner_is_refused(monkeypatch):
    model = make("Llama")
    bank = make_bank(model, spec_of(model), [torch.Generator()])
    own = model.forward
    # As a model that does not see which tokens are padding.
    monkeypatch.setattr(model, "forward", lambda **a: own(**a | {"attention_mask": None}))
    with refuses("LlamaForCausalLM samples after prompts of unlike length"):
        check_sampling(model, bank)
