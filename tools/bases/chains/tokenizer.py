"""Marks, pieces of the operations, a digit with the comma before it, single characters.

A list of n digits is n + 2 tokens. Printable ASCII and newline survive encode and decode.
"""

import json
import re
from pathlib import Path
from typing import Any

from azr_population.domains.code.formats import MARKS

PAD, EOS, UNKNOWN = "<pad>", "<eos>", "<unk>"
PIECES = (
    "def f(x):", "\n    ", "]\n    ", "    return ", "\n    return ", " = ", " + ", "[::-1]",
    "[1:]", "[:1]", "[-1:]", "[:-1]", "[1::-1]", "[2:]", "[1:-1]", "[:-2] + ", "[:-3:-1]", "[1:]]",
    " = [(d + 1) % 10 for d in ", " = [(d + 3) % 10 for d in ", " = [(d + 7) % 10 for d in ",
    " = [9 - d for d in ", " = [d * 3 % 10 for d in ", " + [(d + ", "[0]) % 10 for d in ",
    "=[", "]\n", *(f", {digit}" for digit in range(10)),
)  # fmt: skip
CHARACTERS = "\n" + "".join(map(chr, range(32, 127)))


def build_tokenizer() -> Any:
    """A `PreTrainedTokenizerFast`."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = dict.fromkeys([PAD, EOS, UNKNOWN, *MARKS, *CHARACTERS, *PIECES])
    vocabulary = {word: position for position, word in enumerate(words)}
    pieces = [re.escape(word) for word in sorted((*MARKS, *PIECES), key=len, reverse=True)]
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN))
    pattern = Regex("|".join([*pieces, r"[\s\S]"]))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(pattern, behavior="isolated")
    tokenizer.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        eos_token=EOS,
        unk_token=UNKNOWN,
        clean_up_tokenization_spaces=False,
        padding_side="left",
        model_max_length=512,
        model_input_names=["input_ids", "attention_mask"],
    )


def save_tokenizer(tokenizer: Any, folder: Path) -> None:
    """Without its class, by which transformers 5 would take Qwen2's splitting rules."""
    tokenizer.save_pretrained(str(folder))
    file = folder / "tokenizer_config.json"
    fields = json.loads(file.read_text(encoding="utf-8"))
    del fields["tokenizer_class"]
    file.write_text(json.dumps(fields, indent=2) + "\n", encoding="utf-8")
