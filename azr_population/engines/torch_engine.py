"""A base in torch with a bank of members on it."""

from collections.abc import Sequence

import torch
from torch import nn

from azr_population.engines.attention import use_strided_attention
from azr_population.weights.adapter import LoraSpec
from azr_population.weights.bank import Bank


def make_bank(model: nn.Module, spec: LoraSpec, generators: Sequence[torch.Generator]) -> Bank:
    """A bank on a model made ready to sample from; slot i is drawn by `generators[i]`."""
    if next(model.parameters()).device.type == "cpu":
        use_strided_attention(model)
    bank = Bank(model, spec, len(generators))
    for slot, generator in enumerate(generators):
        bank.init_member(slot, generator)
    return bank
