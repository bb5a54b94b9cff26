"""A base of a few thousand random weights, to see the machinery of an AZR run on CPUs.

    python examples/tiny_base.py FOLDER TEXT_FILE...

The tokenizer is trained on the files and gives every text back letter by letter. Random weights
never write a program: such a run shows that everything works, and nothing about learning.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

TEMPLATE = "{%- for message in messages -%}{{- message['content'] -}}{%- endfor -%}"


def save_tiny_base(
    folder: Path, texts: Iterable[str] = (), vocabulary: int = 300, hidden: int = 32
) -> Path:
    """Writes a random Qwen2 and a byte-level BPE trained on `texts`; always the same."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=["<pad>", "<eos>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        eos_token="<eos>",
        chat_template=TEMPLATE,
        clean_up_tokenization_spaces=False,
    )
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=len(fast),
        hidden_size=hidden,
        intermediate_size=2 * hidden,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=8192,
        tie_word_embeddings=True,
        eos_token_id=fast.eos_token_id,
        pad_token_id=fast.pad_token_id,
        bos_token_id=None,
    )
    Qwen2ForCausalLM(config).save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    texts = [Path(name).read_text(encoding="utf-8") for name in sys.argv[2:]]
    # Heads of 32, the smallest that vLLM has on a CPU.
    print(save_tiny_base(Path(sys.argv[1]), texts, vocabulary=3000, hidden=64))
