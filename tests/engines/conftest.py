"""A tiny random Qwen2 model with grouped-query attention, and a tokenizer of single characters."""

from dataclasses import replace

import pytest
import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

from azr_population.config.schema import LearnerConfig
from azr_population.engines.assembly import assemble, check_settings
from azr_population.engines.engine import EngineSettings
from azr_population.engines.text import TextEngine
from azr_population.weights.adapter import LoraSpec

ALPHABET = "abcdefghijklmnopqrstuvwxyz 0123456789"


def make_model():
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=2 + len(ALPHABET),
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=128,
        eos_token_id=1,
        initializer_range=0.3,
    )
    return Qwen2ForCausalLM(config).eval()


def make_tokenizer():
    vocabulary = {"<pad>": 0, "<eos>": 1} | {c: i + 2 for i, c in enumerate(ALPHABET)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<pad>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("."), behavior="isolated")
    tokenizer.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>")


def make_engine(slots=3, generate_rows=512, chat=False, **learner):
    generator = torch.Generator().manual_seed(5)
    settings = EngineSettings(
        "",
        tuple(f"slot {slot}" for slot in range(slots)),
        LoraSpec(rank=4, alpha=8.0),
        generate_rows=generate_rows,
        learner=LearnerConfig(**learner),
    )
    model, tokenizer = make_model(), make_tokenizer()
    new_engine = assemble(model, tokenizer, settings, [generator] * slots)
    engine = TextEngine(new_engine, tokenizer, chat)
    engine.model, engine.bank = model, new_engine.learner.bank
    # B starts at zero, which would make all members alike.
    with torch.no_grad():
        for slot in range(slots):
            for factor in engine.bank.parameters_of(slot):
                factor += 0.2 * torch.randn(factor.shape, generator=generator)
    return engine


@pytest.fixture
def check():
    """Checks the settings of an engine; `learner` are fields of its `LearnerConfig`."""

    def check_engine(rollout, rank=8, quantization=None, device="cpu", vllm=None, **learner):
        settings = EngineSettings("", (), LoraSpec(rank, 8.0), device, quantization=quantization)
        learner = LearnerConfig(**learner)
        check_settings(replace(settings, rollout=rollout, vllm=vllm or {}, learner=learner))

    return check_engine


@pytest.fixture
def engine():
    return make_engine()


@pytest.fixture
def another_engine():
    """Makes an engine with the same weights as `engine` and the given options."""
    return make_engine


@pytest.fixture
def model():
    return make_model()
