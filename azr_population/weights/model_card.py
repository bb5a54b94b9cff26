"""The README.md of an adapter's folder: what it is, where it comes from, how to load it.

It has the name of the base but never its local path.
"""

import json
import re
from collections.abc import Mapping
from pathlib import PurePath

from azr_population.weights.adapter import Adapter

HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
"""`Qwen/Qwen2.5-Coder-1.5B`; not a path that begins with `.`, `/` or `~`."""


def is_nano(base: str) -> bool:
    """Whether a base's name or path is that of the embedded one, which has another path on every
    machine, and none in what is pushed."""
    return base == "nano" or base.endswith("nano/weights")


_CARD = """\
---
{front}library_name: peft
tags: [lora, population-based-training]
---

LoRA adapter, rank {rank}, alpha {alpha:g}, {layers} layers.

{facts}In transformers and PEFT, from this folder:

```python
from peft import PeftModel
from transformers import AutoModelForCausalLM, {tokenizer}
{imports}
base = {base}
tokenizer = {tokenizer}.from_pretrained(base)
model = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(base), ".")
```
"""


def base_name(base: str) -> str:
    """The name of a base: a name on the Hub as it is, a folder without its path."""
    if is_nano(base):
        return "nano"
    return base if HUB_NAME.fullmatch(base) else PurePath(base).name


def model_card(adapter: Adapter, base: str, facts: Mapping[str, object]) -> str:
    """The text of the card with one line per fact."""
    name = base_name(base)
    nano = name == "nano"
    listed = "".join(f"- {key}: {value}\n" for key, value in facts.items())
    return _CARD.format(
        # The Hub takes it for the name of a repository.
        front=f"base_model: {json.dumps(name)}\n" if HUB_NAME.fullmatch(name) else "",
        rank=adapter.spec.rank,
        alpha=adapter.spec.alpha,
        layers=len(adapter.factors),
        facts=f"{listed}\n" if listed else "",
        # transformers 5 gives AutoTokenizer splitting rules of its own for the embedded base.
        tokenizer="PreTrainedTokenizerFast" if nano else "AutoTokenizer",
        imports="\nfrom azr_population.bases.nano import nano_base_path\n" if nano else "",
        base="nano_base_path()"
        if nano
        else f"{json.dumps(name)}  # its folder, or name on the Hub",
    )
