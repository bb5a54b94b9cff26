"""Offload of a learner into the host's memory while the sampler is awake.

Parameters stay the same objects; what moves is where their contents are. Tensors move as copies, on
a CPU too, so a test on a CPU sees what a GPU would.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from azr_population.weights.bank import Bank


class Offload:
    """Base and members of a learner, on its device inside `on_device` only.

    The base is frozen, so its copy on the host stays and is never written back. The scales of a
    quantised one stay on the device.
    """

    def __init__(self, model: nn.Module, bank: Bank) -> None:
        self._bank = bank
        self._device = bank.device
        self._base = [*model.parameters(), *model.buffers()]
        self._host = [_on_host(tensor.data) for tensor in self._base]
        self._leave()

    @contextmanager
    def on_device(self) -> Iterator[None]:
        """Inside, base and members are on the device."""
        try:
            for tensor, copy in zip(self._base, self._host, strict=True):
                tensor.data = self._on_device(copy)
            self._bank.move(self._on_device)
            yield
        finally:
            self._leave()

    @contextmanager
    def moments_on_device(self, optimizer: torch.optim.Optimizer) -> Iterator[None]:
        """Inside, the state of one member's optimizer is on the device."""
        _move_state(optimizer, self._on_device)
        try:
            yield
        finally:
            _move_state(optimizer, _on_host)

    def _leave(self) -> None:
        for tensor, copy in zip(self._base, self._host, strict=True):
            tensor.data = copy
        self._bank.move(_on_host)
        if self._device.type == "cuda":
            # vLLM maps its own memory, beside what torch keeps for its next tensors.
            torch.cuda.empty_cache()

    def _on_device(self, tensor: Tensor) -> Tensor:
        return tensor.to(self._device, copy=True)


def _on_host(tensor: Tensor) -> Tensor:
    """A copy there, not pinned: torch rounds pinned memory up to powers of two, and the few seconds
    a step that it would save are not worth half as much again of the host's memory."""
    return tensor.to("cpu", copy=True)


def _move_state(optimizer: torch.optim.Optimizer, move: Callable[[Tensor], Tensor]) -> None:
    for state in optimizer.state.values():
        for name, value in state.items():
            # AdamW's count of steps is a single number, which stays on the host.
            if isinstance(value, Tensor) and value.numel() > 1:
                state[name] = move(value)
