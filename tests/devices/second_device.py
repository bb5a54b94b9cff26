"""A second device on any machine: torch's meta, whose tensors have shapes and no contents. An
operator that is given tensors of two devices fails, as on a GPU.

Contents of whole numbers and masks are known beside that, so code can read token ids, lengths and
members. Numbers computed in floating point read as 1.
"""

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_leaves, tree_map

aten = torch.ops.aten
META = torch.device("meta")


def on_meta(contents):
    """A tensor on the second device, of known contents."""
    return _with(torch.empty_like(contents, device=META), contents)


def _with(tensor, contents):
    if tensor.device == META:
        vars(tensor)["contents"] = contents
    return tensor


def _contents(value):
    """None where they are not known; what is not on the second device is itself."""
    if isinstance(value, torch.Tensor) and value.device == META:
        return vars(value).get("contents")
    return value


def _places(mask):
    """[places, dimensions] where a mask is set; nowhere if that is not known."""
    contents = _contents(mask)
    if contents is None:
        return torch.zeros(0, mask.dim(), dtype=torch.long)
    return contents.nonzero()


def _is_mask(index):
    return isinstance(index, torch.Tensor) and index.dtype == torch.bool


class SecondDevice(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs, packet = kwargs or {}, func._overloadpacket
        if packet is aten._local_scalar_dense:
            contents = _contents(args[0])
            with _disable_current_modes():
                return 1.0 if contents is None else contents.item()
        if packet is aten.nonzero and args[0].device == META:
            with _disable_current_modes():
                return on_meta(_places(args[0]))
        if packet is aten.index:
            args = (args[0], [part for index in args[1] for part in _split(index)])
        if packet is aten._to_copy and args[0].device == META != kwargs.get("device", META):
            return self._copied_back(args[0], kwargs)
        if packet is aten.copy_ and args[1].device == META != args[0].device:
            return args[0]
        return self._followed(func, args, kwargs, func(*args, **kwargs))

    def _copied_back(self, tensor, options):
        contents, dtype = _contents(tensor), options.get("dtype") or tensor.dtype
        with _disable_current_modes():
            return (
                torch.zeros(tensor.shape, dtype=dtype) if contents is None else contents.to(dtype)
            )

    def _followed(self, func, args, kwargs, output):
        """The output, with the contents that it has if those of its inputs are known."""
        outputs = [leaf for leaf in tree_leaves(output) if isinstance(leaf, torch.Tensor)]
        if not outputs or any(leaf.dtype.is_floating_point for leaf in outputs):
            return output
        inputs = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        if any(_contents(leaf) is None for leaf in inputs):
            return output
        here = {name: "cpu" if name == "device" else value for name, value in kwargs.items()}
        with _disable_current_modes():
            real = func(*tree_map(_contents, args), **tree_map(_contents, here))
        for leaf, contents in zip(outputs, tree_leaves(real), strict=True):
            _with(leaf, contents)
        return output


def _split(index):
    """A mask as the places where it is set, which have a known number."""
    if not (_is_mask(index) and index.device == META):
        return [index]
    with _disable_current_modes():
        return list(map(on_meta, _places(index).unbind(1)))
