"""Counts live bytes, products, and bytes beside them, of real code, without the hardware.

Tensors are fake (`FakeTensorMode`): they have shapes and no contents, so a learner of 7B's shapes
runs in seconds on any machine, operator by operator. Whole numbers and masks are real beside that,
so code can read token ids, lengths and members; numbers computed in floating point (`float(loss)`)
read as 1.

Attention is counted as a flash kernel does it: no matrix of scores, half the products when causal.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

import torch
from torch._subclasses.fake_tensor import (
    FakeTensor,
    FakeTensorMode,
)
from torch._subclasses.fake_tensor import (
    unset_fake_temporarily as real_tensors,
)
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.flop_counter import flop_registry
from transformers import masking_utils

aten = torch.ops.aten
_FLASH = (
    aten._scaled_dot_product_flash_attention_for_cpu,
    aten._scaled_dot_product_flash_attention_for_cpu_backward,
)
_FREE = (aten.detach, aten.alias, aten._unsafe_view, aten.empty, aten.empty_like, aten.new_empty)
"""Operators that move no data."""


class Counted(TorchDispatchMode):
    """A context in which tensors are fake and operators are counted.

    `live` and `peak` are bytes of all storages made inside; `flops` and `beside` (bytes read and
    written by operators that compute and multiply no matrices) are sums.
    """

    def __init__(self) -> None:
        super().__init__()
        self.live = self.peak = self.flops = self.beside = 0
        self._known: dict[int, int] = {}
        """Bytes of each storage by its address; 0 of those that are elsewhere."""
        self._fakes = FakeTensorMode(allow_non_fake_inputs=True)
        self._stack: Any = None

    def __enter__(self) -> Counted:
        self._stack = ExitStack()
        self._stack.enter_context(self._fakes)
        if hasattr(masking_utils, "is_tracing"):
            # transformers 5 treats fake tensors as a trace, and makes a mask [width, width] that a
            # run without padding never has.
            self._stack.enter_context(
                patch.object(masking_utils, "is_tracing", lambda tensor=None: False)
            )
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self._stack.close()

    def of(self, run: Callable[[], Any]) -> dict[str, int]:
        """The counts of `run` alone; `peak` is relative to the bytes that were live before."""
        flops, beside, start = self.flops, self.beside, self.live
        self.peak = start
        run()
        sums = {"flops": self.flops - flops, "beside": self.beside - beside}
        return {**sums, "peak": self.peak - start}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        packet = func._overloadpacket
        if packet is aten._local_scalar_dense:
            with real_tensors():
                real = _real(args[0])
                return 1.0 if real is None else real.item()
        if packet is aten.nonzero:
            return fake(_places(args[0]))
        if packet is aten.index and any(_is_mask(index) for index in args[1]):
            places: list[Any] = []
            for index in args[1]:
                places += fake(_places(index)).unbind(1) if _is_mask(index) else [index]
            args = (args[0], places)
        output = func(*args, **kwargs)
        self._count(func, packet, args, kwargs, output)
        return _follow(func, args, kwargs, output)

    def _count(self, func: Any, packet: Any, args: Any, kwargs: Any, output: Any) -> None:
        outputs = [leaf for leaf in tree_leaves(output) if isinstance(leaf, torch.Tensor)]
        for tensor in outputs:
            self._hold(tensor)
        if not self.moves_data(func):
            return
        if packet in _FLASH:
            self.flops += _flash(packet, args, kwargs)
        elif packet in flop_registry:
            self.flops += flop_registry[packet](*args, **kwargs, out_val=output)
        else:
            inputs = [it for it in tree_leaves((args, kwargs)) if isinstance(it, torch.Tensor)]
            self.beside += sum(tensor.numel() * tensor.itemsize for tensor in (*inputs, *outputs))

    @staticmethod
    def moves_data(func: Any) -> bool:
        """Whether an operator reads or writes; reading a fake tensor's device is one that does
        not."""
        free = func.is_view or func.namespace == "prim" or func._overloadpacket in _FREE
        return not free

    def _hold(self, tensor: Any) -> None:
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self._known:
            return
        self._known[key] = size = storage.nbytes()
        self.live += size
        self.peak = max(self.peak, self.live)
        weakref.finalize(storage, self._drop, key)

    def elsewhere(self, tensor: Any) -> None:
        """Leaves the tensor's storage out: on a machine with two memories it is in the other."""
        storage = tensor.untyped_storage()
        self.live -= self._known[storage._cdata]
        self._known[storage._cdata] = 0

    def _drop(self, key: int) -> None:
        self.live -= self._known.pop(key)


def _flash(packet: Any, args: Any, kwargs: Any) -> int:
    """Two products of [tokens, past] forward, five backward; half of them where causal."""
    backward = packet is _FLASH[1]
    query, key = args[1:3] if backward else args[:2]
    rows, heads, tokens, width = query.shape
    causal = kwargs.get("is_causal", args[7 if backward else 4] if len(args) > 4 else False)
    flops = (5 if backward else 2) * 2 * rows * heads * tokens * key.shape[2] * width
    return flops // 2 if causal else flops


def _is_mask(index: Any) -> bool:
    return isinstance(index, torch.Tensor) and index.dtype == torch.bool


def _real(value: Any) -> Any:
    """The contents of a fake tensor of whole numbers; other values are themselves."""
    if isinstance(value, FakeTensor):
        return value.__dict__.get("contents")
    return value


def _places(mask: Any) -> torch.Tensor:
    """Where a mask is set, [places, dimensions]; nowhere, where numbers computed in floating point
    decide."""
    with real_tensors():
        real = _real(mask)
        return torch.zeros(0, mask.dim(), dtype=torch.long) if real is None else real.nonzero()


def fake(real: torch.Tensor) -> Any:
    """A fake tensor of these contents, inside a `Counted`."""
    return _remember(torch.empty_like(real), real)


def _remember(fake: Any, real: torch.Tensor) -> Any:
    fake.__dict__["contents"] = real
    return fake


def _follow(func: Any, args: Any, kwargs: Any, output: Any) -> Any:
    """Does to whole numbers and masks what was done to the fake ones."""
    outputs = [leaf for leaf in tree_leaves(output) if isinstance(leaf, torch.Tensor)]
    if not outputs or any(leaf.dtype.is_floating_point for leaf in outputs):
        return output
    missing = [
        leaf
        for leaf in tree_leaves((args, kwargs))
        if isinstance(leaf, torch.Tensor) and _real(leaf) is None
    ]
    if not missing:
        with real_tensors():
            real = func(*tree_map(_real, args), **tree_map(_real, kwargs))
        for fake, leaf in zip(outputs, tree_leaves(real), strict=True):
            _remember(fake, leaf)
    return output
