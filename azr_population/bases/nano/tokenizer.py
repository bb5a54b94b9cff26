"""The nano base's tokenizer: marks, frequent pieces of Python, numbers up to 99, single characters.

A word-level model behind one regular expression, so a text has exactly one reading. The numbers
10-99 are one token each (not inside longer numbers, which are spelt digit by digit): sums of small
numbers are then one step. Printable ASCII and newline survive encode and decode unchanged; any
other character becomes `<unk>`.
"""

import json
import re
from pathlib import Path
from typing import Any

from azr_population.domains.code.formats import MARKS

PAD, EOS, UNKNOWN = "<pad>", "<eos>", "<unk>"

PIECES = (
    "def f(", "):\n    ", ":\n        ", ":\n            ", "\n    ", "\n        ",
    "\n            ", "return ", "else", "while ", "for ", "if ", " for ", " in ", " if ",
    " else ", " for v in ", " for c in ", " for i in range(", "range(", "len(", "sum(", "max(",
    "min(", "abs(", "str(", "sorted(", "''.join(", ".count(", ".find(", ".replace(", ".append(",
    ".insert(0, ", ".reverse()", ".sort()", ".pop()", ".pop(0)", ".upper()", ", reverse=True",
    "[::-1]", "[::2]", "[1:]", "[2:]", "[:2]", "[:3]", "[:-1]", "[0]", "[-1]", "[-2]", "[1]",
    " = ", " += ", " -= ", " *= ", " + ", " - ", " * ", " % ", " // ", " == ", " != ", " > ",
    " < ", " and ", " or ", "not ", "True", "False", "None", ", ", "''", "pass",
)  # fmt: skip

CHARACTERS = "\n" + "".join(map(chr, range(32, 127)))


def vocabulary() -> dict[str, int]:
    """Token text -> id; specials first."""
    numbers = [str(number) for number in range(10, 100)]
    words = [PAD, EOS, UNKNOWN, *MARKS, *CHARACTERS, *numbers, *PIECES]
    return {word: position for position, word in enumerate(dict.fromkeys(words))}


def build_tokenizer() -> Any:
    """A `PreTrainedTokenizerFast`, ready for `save_pretrained`; ids as in `vocabulary`."""
    # Imported late: importing this module must not import transformers.
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    number = r"(?<![0-9])[1-9][0-9](?![0-9])"
    pieces = [re.escape(word) for word in sorted((*MARKS, *PIECES), key=len, reverse=True)]
    pattern = "|".join([*pieces, number, r"[\s\S]"])
    tokenizer = Tokenizer(models.WordLevel(vocabulary(), unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(pattern), behavior="isolated")
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


def save_tokenizer(folder: str | Path) -> None:
    """Build it and write tokenizer.json and its configuration into a folder.

    The model's config.json has to name its class: in the tokenizer's own configuration transformers
    5 would read the name, find the base to be a Qwen2 and take Qwen2's splitting rules instead.
    """
    build_tokenizer().save_pretrained(str(folder))
    file = Path(folder) / "tokenizer_config.json"
    fields = json.loads(file.read_text(encoding="utf-8"))
    del fields["tokenizer_class"]
    file.write_text(json.dumps(fields, indent=2) + "\n", encoding="utf-8")
