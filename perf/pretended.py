"""A GPU pretended on a CPU, for code whose course depends on what it computes: counts launches,
copies to and from it, waits for it, and bytes that its kernels read and write.

Tensors on `DEVICE` are wrappers around real ones on the CPU, so all results are right.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

aten = torch.ops.aten
DEVICE = torch.device("meta")
"""Where pretended tensors say that they are: a device that needs no driver."""
_FREE = (aten.detach, aten.alias, aten._unsafe_view, aten.empty, aten.empty_like, aten.new_empty)


class Pretended(torch.Tensor):
    """A tensor on the pretended GPU; `contents` is the real one."""

    contents: torch.Tensor

    @staticmethod
    def __new__(cls, real: torch.Tensor) -> Pretended:
        wrapper: Pretended = torch.Tensor._make_wrapper_subclass(
            cls, real.shape, real.stride(), real.storage_offset(), dtype=real.dtype, device=DEVICE
        )
        wrapper.contents = real
        return wrapper

    def tolist(self) -> Any:
        """Torch refuses it for subclasses."""
        return self.cpu().tolist()

    @classmethod
    def __torch_dispatch__(cls, func: Any, *_: Any, **__: Any) -> Any:
        raise RuntimeError(f"{func} on a pretended GPU outside of PretendedGpu")


class PretendedGpu(TorchDispatchMode):
    """A context in which tensors can be moved to `DEVICE`. `counts` has launches, waits, copies and
    bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs, packet = dict(kwargs or {}), func._overloadpacket
        inputs = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Pretended)]
        to = kwargs.get("device")
        on_gpu = bool(inputs) if to is None else torch.device(to).type == DEVICE.type
        moved = packet is aten._to_copy and on_gpu != bool(inputs)
        if to is not None:
            kwargs["device"] = "cpu"
        output = func(*tree_map(_real, args), **tree_map(_real, kwargs))
        if packet is aten._to_copy and output is args[0]:
            output = output.clone()
        if packet is aten._local_scalar_dense and inputs:
            self.counts["waits"] += 1
            return output
        if moved:
            # A GPU reads small memory of the host at once; what is read back is waited for.
            self.counts["copies to it" if on_gpu else "copies from it"] += 1
            self.counts["waits"] += bool(inputs) or not kwargs.get("non_blocking")
        elif on_gpu and not func.is_view and packet not in _FREE:
            self.counts["launches"] += 1
            tensors = [leaf for leaf in tree_leaves(output) if isinstance(leaf, torch.Tensor)]
            read = [leaf.contents for leaf in inputs]
            self.counts["bytes"] += sum(each.numel() * each.itemsize for each in (*read, *tensors))
        if not on_gpu:
            return output
        # What was changed in place stays itself.
        there = {id(leaf.contents): leaf for leaf in inputs}
        return tree_map(
            lambda leaf: there[id(leaf)] if id(leaf) in there else _pretended(leaf), output
        )


def _pretended(value: Any) -> Any:
    return Pretended(value) if isinstance(value, torch.Tensor) else value


def _real(value: Any) -> Any:
    return value.contents if isinstance(value, Pretended) else value
