"""A sample of text that a base must read and score as it did when the sample was taken.

A library that reads a base's files in another way (another release of transformers, say) goes wrong
without a word: a tokenizer without its spaces, rotary tables with another period. The sample lies
beside the weights, in `sample.json`.
"""

import json
from pathlib import Path
from typing import Any

import torch
from torch import nn

from azr_population.errors import UserError

FILE = "sample.json"

TOLERANCE = 0.05
"""Nats, the mean over tokens of how far their log-probabilities are off. On the nano base bfloat16
is off by 0.006, a rotary table of period 1e6 in place of 1e4 by 0.28."""


def write_sample(folder: str | Path, model: nn.Module, tokenizer: Any, text: str) -> None:
    """Writes the sample of the base that lies in `folder`: the text, its token ids, their
    log-probabilities (nats, each given those before it)."""
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    logprobs = [round(float(value), 4) for value in _logprobs(model, ids)]
    sample = {"text": text, "token_ids": ids, "logprobs": logprobs}
    (Path(folder) / FILE).write_text(json.dumps(sample) + "\n", encoding="utf-8")


def check_sample(folder: str | Path, model: nn.Module, tokenizer: Any) -> None:
    """Compares a loaded base with the sample in its folder; without one there is nothing to do.
    Raises UserError: the text becomes other tokens, or they another text, or their scores are
    others."""
    file = Path(folder) / FILE
    if not file.exists():
        return
    sample = json.loads(file.read_text(encoding="utf-8"))
    text, ids = sample["text"], sample["token_ids"]
    encoded = tokenizer(text, add_special_tokens=False)["input_ids"]
    if encoded != ids:
        raise _refusal(
            folder, f"encodes its sample as {len(encoded)} tokens, not as its {len(ids)}"
        )
    decoded = tokenizer.decode(ids, clean_up_tokenization_spaces=False)
    if decoded != text:
        raise _refusal(folder, f"decodes its sample as {decoded!r}, not as {text!r}")
    off = float((_logprobs(model, ids) - torch.tensor(sample["logprobs"])).abs().mean())
    if not off <= TOLERANCE:
        raise _refusal(folder, f"scores the tokens of its sample {off:.2f} nats off, on average")


def _refusal(folder: str | Path, what: str) -> UserError:
    import transformers

    return UserError(
        f"base.path={folder}: with transformers {transformers.__version__} this base {what}; "
        "use a release that this package was tested with (constraints/), or remove the folder's "
        f"{FILE} if you changed the base on purpose",
        key="base.path",
    )


@torch.inference_mode()
def _logprobs(model: nn.Module, ids: list[int]) -> torch.Tensor:
    """[tokens - 1] in float32, on the CPU."""
    tokens = torch.tensor([ids], device=next(model.parameters()).device)
    logits = model(input_ids=tokens).logits[0, :-1].float()
    return torch.log_softmax(logits, -1).gather(1, tokens[0, 1:, None])[:, 0].cpu()
