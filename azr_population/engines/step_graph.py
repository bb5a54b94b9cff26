"""A decoding step as one launch. A step of a 7B base launches 1,400 kernels, 2,000 with members on
it; on a GPU that takes twice as long as their work does."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor

COLUMNS = 256
"""Attention sees a multiple of so many columns of the cache: a graph lasts as many steps, and
records again after that for about three."""

Forward = Callable[[Tensor, Tensor, Tensor, Any], Tensor]
"""Logits [rows, vocabulary] of tokens [rows, 1], positions [rows, 1], a mask and a cache."""


class StepGraph:
    """A step of these rows, with the same shapes each time: attention gets all columns before
    `end`, and a mask hides those that have no token yet.

    On a GPU it is recorded as a CUDA graph and replayed; on a CPU it runs as it is.
    """

    def __init__(self, forward: Forward, cache: Any, mask: Tensor, column: int, room: int) -> None:
        """`mask` [rows, 1, 1, at least room] is added to scores; columns before `column` have
        tokens. Factors must not change from here on."""
        self.end = min(room, -(-(column + 1) // COLUMNS) * COLUMNS)
        rows, device = len(mask), mask.device
        self._tokens, self._positions = torch.zeros(2, rows, 1, dtype=torch.long, device=device)
        self._column = torch.zeros(1, dtype=torch.long, device=device)
        self._mask = mask.clone()
        self._mask[..., column:] = -torch.inf
        cache.hold(self._column, column, self.end)
        # Not by `self`: in a cycle the cache would stay until Python looks for cycles.
        shown = self._mask[..., : self.end]
        self._run = partial(forward, self._tokens, self._positions, shown, cache)
        self._graph: torch.cuda.CUDAGraph | None = None
        self._logits = mask

    def __call__(self, tokens: Tensor, positions: Tensor, column: int) -> Tensor:
        """Logits after `tokens` [rows] in that column, which the cache then has; they last until
        the next call."""
        self._tokens.copy_(tokens.unsqueeze(1))
        self._positions.copy_(positions.unsqueeze(1))
        self._column.fill_(column)
        self._mask[..., column] = 0
        if self._mask.device.type != "cuda":
            return self._run()
        if self._graph is None:
            self._record()
        assert self._graph is not None
        self._graph.replay()
        return self._logits

    def _record(self) -> None:
        device = self._mask.device
        stream = _stream(device)
        stream.wait_stream(torch.cuda.current_stream(device))
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.stream(stream):
            # What is made on a first call (copies of factors, workspaces) is no part of a step.
            self._run()
            before = _latest.get(device)
            pool = before.pool() if before else torch.cuda.graph_pool_handle()
            # Not `torch.cuda.graph`, which gives all cached memory back first.
            graph.capture_begin(pool, capture_error_mode="thread_local")
            try:
                self._logits = self._run()
            finally:
                graph.capture_end()
        torch.cuda.current_stream(device).wait_stream(stream)
        self._graph = _latest[device] = graph


_latest: dict[torch.device, torch.cuda.CUDAGraph] = {}
"""The graph that was recorded last, by device. The next one takes over its memory, which a graph
that is gone keeps from everyone else until the device runs out of memory. So only one may run at a
time."""


@cache
def _stream(device: torch.device) -> torch.cuda.Stream:
    """The stream on which steps are recorded: for each stream torch keeps a workspace for matrix
    products (32 MiB on an H100), and memory that no other stream gets."""
    return torch.cuda.Stream(device)
