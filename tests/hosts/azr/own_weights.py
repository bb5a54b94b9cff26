"""A sampler with weights of its own and without vLLM: torch's, on a base that it loads itself."""

import torch

from azr_population.engines.base_model import load_base
from azr_population.engines.rollouts import RolloutKind
from azr_population.engines.torch_rollout import TorchRollout, make_bank


class OwnWeights(RolloutKind):
    own_weights = True

    def make(self, served, settings):
        model, _ = load_base(served.base, served.dtype, "cpu")
        bank = make_bank(model, served.bank.spec, [torch.Generator()] * served.bank.slots)
        return TorchRollout(model, bank, served.stop_ids)
