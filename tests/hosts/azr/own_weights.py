"""A sampler with weights of its own and without vLLM: torch's, on a base that it loads itself."""

import torch

from azr_population.engines.base_model import load_base
from azr_population.engines.torch_rollout import TorchRollout, make_bank


class OwnWeights(TorchRollout):
    own_weights = True

    @classmethod
    def make(cls, model, bank, stop_ids, settings):
        own, _ = load_base(settings.base, settings.dtype, "cpu")
        generators = [torch.Generator()] * settings.slots
        return cls(own, make_bank(own, settings.lora, generators), stop_ids)
