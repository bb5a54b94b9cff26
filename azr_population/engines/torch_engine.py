"""The engine in plain torch: CPU or one GPU, any Hugging Face causal LM, one bank for both halves.

Not covered: several GPUs (the workers under veRL put the same pieces together) and continuous
batching.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from azr_population.engines import torch_rollout
from azr_population.engines.attention import use_strided_attention
from azr_population.engines.base_model import load_base, stop_ids
from azr_population.engines.engine import Rollout
from azr_population.engines.local import LocalEngine
from azr_population.engines.text import TextEngine
from azr_population.engines.torch_learner import TorchLearner
from azr_population.engines.torch_rollout import TorchRollout
from azr_population.weights.adapter import LoraSpec
from azr_population.weights.bank import Bank


class TorchEngine(TextEngine):
    """A frozen base, a bank of members on it, and what samples from it and trains it."""

    def __init__(
        self,
        model: nn.Module,
        tokenizer: Any,
        spec: LoraSpec,
        slots: int,
        generator: torch.Generator,
        *,
        rollout: Rollout | None = None,
        generate_rows: int = torch_rollout.ROWS,
        chat: bool = False,
        **options: Any,
    ) -> None:
        """`model` is frozen and gets the bank's adapters; `generator` draws their first weights.

        `rollout` samples in place of torch; `options` are the learner's; `chat` as in `TextEngine`.
        """
        self.model = model
        self.bank = make_bank(model, spec, [generator] * slots)
        rollout = rollout or TorchRollout(
            model, self.bank, stop_ids(model, tokenizer), generate_rows
        )
        engine = LocalEngine(rollout, TorchLearner(model, self.bank, **options))
        super().__init__(engine, tokenizer, chat)

    @classmethod
    def from_folder(
        cls,
        path: str | Path,
        spec: LoraSpec,
        slots: int,
        generator: torch.Generator,
        *,
        dtype: str = "float32",
        device: str = "cpu",
        **options: Any,
    ) -> TorchEngine:
        """An engine on the base model in a Hugging Face folder; options as in `__init__`."""
        model, tokenizer = load_base(path, dtype, device)
        return cls(model, tokenizer, spec, slots, generator, **options)


def make_bank(model: nn.Module, spec: LoraSpec, generators: Sequence[torch.Generator]) -> Bank:
    """A bank on a model made ready to sample from; slot i is drawn by `generators[i]`."""
    if next(model.parameters()).device.type == "cpu":
        use_strided_attention(model)
    bank = Bank(model, spec, len(generators))
    for slot, generator in enumerate(generators):
        bank.init_member(slot, generator)
    return bank
