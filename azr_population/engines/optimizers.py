"""Optimizers of the members' adapters, by name."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from azr_population.registry import Registry, own_code

OPTIMIZERS: Registry[Callable[..., torch.optim.Optimizer]] = Registry("engine.optimizer")
"""Called with a member's parameters, `lr` (0; each update sets its own) and `weight_decay`."""
OPTIMIZERS.register("adamw", "Loshchilov and Hutter 2019 (arXiv 1711.05101)")(torch.optim.AdamW)


def moments(name: str) -> tuple[str, int]:
    """The optimizer's class name, and how many tensors of its parameter's size it keeps: 2 for
    AdamW. Counted in one step."""
    kind = OPTIMIZERS.find(name)
    parameter = nn.Parameter(torch.zeros(2))
    parameter.grad = torch.zeros(2)
    with own_code("engine.optimizer", name):
        optimizer = kind([parameter], lr=0.0, weight_decay=0.0)
        optimizer.step()
    state = optimizer.state[parameter].values()
    return kind.__name__, sum(isinstance(value, Tensor) and value.numel() == 2 for value in state)
