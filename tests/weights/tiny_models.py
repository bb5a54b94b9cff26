"""Random causal language models of a few thousand parameters."""

from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
)

SIZE = {"vocab_size": 50, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2}


def qwen2():
    config = Qwen2Config(
        **SIZE, num_attention_heads=4, num_key_value_heads=2, tie_word_embeddings=True
    )
    return Qwen2ForCausalLM(config)


def llama():
    return LlamaForCausalLM(LlamaConfig(**SIZE, num_attention_heads=4, tie_word_embeddings=False))


def gpt2():
    return GPT2LMHeadModel(GPT2Config(vocab_size=50, n_embd=32, n_layer=2, n_head=4))


ARCHITECTURES = {"qwen2": qwen2, "llama": llama, "gpt2": gpt2}
