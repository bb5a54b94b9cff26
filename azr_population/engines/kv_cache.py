"""A KV cache that is written in place.

transformers' `DynamicCache` concatenates, so each new token copies all that came before. What that
costs depends on how busy the memory is: from an eighth to a half.
"""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers.cache_utils import Cache

from azr_population.engines.attention import SharedPrefix


class GrowingCache(Cache):
    """Keys and values of each layer in a buffer with room to spare, handed out as views.

    Works with every model whose attention layers call `Cache.update` and attend to all of the past;
    layers with a sliding window see the whole past through it, and their mask cuts it.
    """

    def __init__(self, room: int) -> None:
        """`room` is how many tokens a buffer can take before it has to be moved."""
        # Cache.__init__ differs between the versions of transformers that we support; what they
        # read from it is here.
        self.layers: list[Any] = []
        self._room = room
        self._length = 0
        self._buffers: dict[int, tuple[Tensor, Tensor]] = {}

    @classmethod
    def joined(cls, caches: Sequence["GrowingCache"], room: int) -> "GrowingCache":
        """The rows of all these caches, one after the other; their tokens end where the longest
        one's do. One cache alone is given back as it is, several are emptied."""
        if len(caches) == 1:
            return caches[0]
        cache = cls(room)
        cache._length = max(each._length for each in caches)
        for layer in list(caches[0]._buffers):
            both = zip(*(each._ended_at(cache._length, layer) for each in caches), strict=True)
            keys, values = (cache._grown(torch.cat(parts)) for parts in both)
            cache._buffers[layer] = (keys, values)
        return cache

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Appends keys and values [rows, heads, tokens, head_dim]; returns all there are."""
        tokens = key_states.shape[2]
        if layer_idx == 0:
            self._length += tokens
        keys, values = (
            self._place(old, new)
            for old, new in zip(
                self._buffers.get(layer_idx, (None, None)), (key_states, value_states), strict=True
            )
        )
        self._buffers[layer_idx] = (keys, values)
        return keys[:, :, : self._length], values[:, :, : self._length]

    def get_seq_length(self, layer_idx: int | None = 0) -> int:
        """Tokens in the cache."""
        return self._length

    def get_max_cache_shape(self, layer_idx: int | None = 0) -> Any:
        """None: there is no limit."""
        return None

    def get_mask_sizes(self, query: Any, layer_idx: int = 0) -> tuple[int, int]:
        """(length, offset) of the keys that a query of so many tokens (or positions) meets."""
        tokens = query if isinstance(query, int) else query.shape[0]
        return self._length + tokens, 0

    def as_prefix(self, padding: Tensor, repeats: int) -> SharedPrefix:
        """What is in the cache, as what `repeats` rows for each of its rows share. `padding`
        [rows, tokens] is 0 where there is no token."""
        layers = {
            layer: (keys[:, :, : self._length], values[:, :, : self._length])
            for layer, (keys, values) in self._buffers.items()
        }
        return SharedPrefix(layers, padding, repeats)

    def batch_repeat_interleave(self, repeats: int) -> None:
        """Every row becomes `repeats` rows, one after the other."""
        keys, _ = self._buffers[0]
        rows = torch.arange(len(keys), device=keys.device)
        self.batch_select_indices(rows.repeat_interleave(repeats))

    def batch_select_indices(self, indices: Tensor) -> None:
        """Keeps only these rows, as often and in the order as they are named."""
        for layer, (keys, values) in self._buffers.items():
            self._buffers[layer] = (self._selected(keys, indices), self._selected(values, indices))

    def _ended_at(self, length: int, layer: int) -> tuple[Tensor, Tensor]:
        """Keys and values of a layer, which are given away, with zeros before them."""
        keys, values = self._buffers.pop(layer)
        before = (0, 0, length - self._length, 0)
        return (
            F.pad(keys[:, :, : self._length], before),
            F.pad(values[:, :, : self._length], before),
        )

    def _selected(self, old: Tensor, indices: Tensor) -> Tensor:
        # The room goes along, so that the next token needs no second copy; what nobody has written
        # to yet need not be copied: it is most of a buffer when the first rows are done.
        buffer = old.new_empty(len(indices), *old.shape[1:])
        used = buffer[:, :, : self._length]
        torch.index_select(old[:, :, : self._length], 0, indices, out=used)
        return buffer

    def _place(self, buffer: Tensor | None, new: Tensor) -> Tensor:
        if buffer is None:
            buffer = self._grown(new[:, :, :0], new.shape[2])
        elif buffer.shape[2] < self._length:
            buffer = self._grown(buffer, new.shape[2])
        buffer[:, :, self._length - new.shape[2] : self._length] = new
        return buffer

    def _grown(self, old: Tensor, more: int = 0) -> Tensor:
        rows, heads, tokens, width = old.shape
        room = max(self._room, tokens + more)
        # Half as much again, so that a buffer that has to move moves seldom.
        room = room if room <= self._room else room + room // 2
        buffer = torch.empty(rows, heads, room, width, dtype=old.dtype, device=old.device)
        buffer[:, :, :tokens] = old
        return buffer
