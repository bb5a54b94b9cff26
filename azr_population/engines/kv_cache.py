"""A KV cache whose room is there before it is written: prompts are read straight into it, and a
token is written in place. transformers' own is copied as a whole for every token.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch
from torch import Tensor

ATTENDING = {"full_attention", "sliding_attention", "chunked_attention"}
"""Kinds of layers that keep keys and values, as transformers calls them."""


def new_cache(prompts: int, room: int, repeats: int = 1) -> Any:
    """An empty `RoomyCache` for `repeats` rows of each of `prompts`, one after the other, with room
    for `room` tokens each."""
    return _cache_class()(_Storage(prompts * repeats, room, repeats))


@dataclass
class _Storage:
    """Keys and values by layer, each [rows, kv_heads, room, dim]."""

    rows: int
    room: int
    repeats: int
    """Rows that have the same tokens: those of a prompt, as long as prompts are read."""
    layers: list[tuple[Tensor, Tensor]] = field(default_factory=list)

    def of(self, layer: int, like: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """The layer's keys and values, made like tokens' [any, kv_heads, any, dim] if need be."""
        if layer == len(self.layers):
            keys, values = (t.new_empty(self.rows, t.shape[1], self.room, t.shape[3]) for t in like)
            self.layers.append((keys, values))
        return self.layers[layer]


@cache
def _cache_class() -> type[Any]:
    # Imported late: transformers takes seconds, and `--help` must not.
    from transformers import DynamicCache

    class RoomyCache(DynamicCache):
        """A cache for models of transformers 4 and 5; it stores the layers that attend."""

        def __init__(self, rooms: _Storage, rows: slice | None = None, start: int = 0) -> None:
            super().__init__()
            self._rooms = rooms
            self._prompts, self._start = rows, start
            """The prompts that are read, and the first column of their tokens."""
            self._used: list[int] = []
            """Tokens by layer: while a model runs, its first layers have more."""
            self._column: Tensor | None = None

        def part(self, prompts: slice, start: int) -> RoomyCache:
            """To read some prompts, padded so that they begin in column `start`."""
            return RoomyCache(self._rooms, prompts, start)

        def end_prefill(self, width: int) -> None:
            """All parts have been read, to column `width`."""
            self._used = [width] * len(self._rooms.layers)
            self._rooms.repeats = 1

        def update(
            self, keys: Tensor, values: Tensor, layer: int, *_: Any, **__: Any
        ) -> tuple[Tensor, Tensor]:
            rooms = self._rooms.of(layer, (keys, values))
            if self._prompts is not None:
                for room, tokens in zip(rooms, (keys, values), strict=True):
                    rows = room.view(-1, self._rooms.repeats, *room.shape[1:])[self._prompts]
                    # Attention multiplies what is not there by 0, so it must be finite.
                    rows[..., : self._start, :] = 0
                    rows[..., self._start : self._start + tokens.shape[2], :] = tokens.unsqueeze(1)
                return keys, values
            if self._column is not None:
                for room, tokens in zip(rooms, (keys, values), strict=True):
                    room.index_copy_(2, self._column, tokens)
                end = self._used[layer]
                return rooms[0][:, :, :end], rooms[1][:, :, :end]
            if layer == len(self._used):
                self._used.append(0)
            used = self._used[layer]
            self._used[layer] = end = used + keys.shape[2]
            rooms[0][:, :, used:end], rooms[1][:, :, used:end] = keys, values
            return rooms[0][:, :, :end], rooms[1][:, :, :end]

        def __iter__(self) -> Any:
            """Keys and values by layer."""
            for (keys, values), used in zip(self._rooms.layers, self._used, strict=True):
                yield keys[:, :, :used], values[:, :, :used]

        def hold(self, column: Tensor, used: int, end: int) -> None:
            """From now on tokens go to that column [1], and models get all columns before `end`, of
            which those from `used` on are 0."""
            self._column, self._used = column, [end] * len(self._rooms.layers)
            for layer in self._rooms.layers:
                for room in layer:
                    room[:, :, used:end] = 0

        def keep(self, rows: Tensor, room: int, used: int | None = None) -> None:
            """Only these rows go on, in ascending order, with room for `room` tokens; where columns
            are held, `used` of them have tokens."""
            rooms = self._rooms
            if used is not None:
                self._column, self._used = None, [used] * len(rooms.layers)
            rooms.rows, rooms.room = len(rows), room
            for index, (layer, used) in enumerate(zip(rooms.layers, self._used, strict=True)):
                copies = []
                for old in layer:
                    new = old.new_empty(len(rows), old.shape[1], room, old.shape[3])
                    torch.index_select(old[:, :, :used], 0, rows, out=new[:, :, :used])
                    copies.append(new)
                rooms.layers[index] = (copies[0], copies[1])

        def get_seq_length(self, layer: int = 0, *_: Any) -> int:
            return self._used[layer] if layer < len(self._used) else 0

        get_query_offset = get_seq_length

        def get_mask_sizes(self, query: Any, layer: int = 0) -> tuple[int, int]:
            # transformers 4 gives the tokens' places, 5 their number.
            tokens = query if isinstance(query, int) else len(query)
            return self.get_seq_length(layer) + tokens, 0

    return RoomyCache
