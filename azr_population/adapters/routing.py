"""How the rows of one batch reach the factors of the members they belong to.

A batch is sorted by member, so it is a run of segments, one per member. Two ways compute the same
update; `benchmarks/bank.py` measures which one is faster when:

- `add_by_segment`: two matmuls per member on its own rows; the only one used under autograd.
- `add_grouped`: one batched matmul over members, rows padded to the longest segment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn

GROUPED_TOKENS_EVEN = 256
GROUPED_TOKENS_UNEVEN = 16
"""Tokens per member (of the longest segment) up to which the batched matmul beats the loop, when
all members have equally many rows and when padding is needed; measured by `benchmarks/bank.py`."""


@dataclass(frozen=True)
class Stack:
    """The factors of all P members for one layer: A[P, r, in] and B[P, out, r].

    `pairs[p]` are the leaf parameters (A[p], B[p]) that share the stacks' storage.
    """

    A: Tensor
    B: Tensor
    pairs: tuple[tuple[nn.Parameter, nn.Parameter], ...]


class Route:
    """Which rows belong to which member; built once per `Bank.routed` block."""

    def __init__(self, members: Sequence[int], device: torch.device) -> None:
        self.rows = len(members)
        self.present: list[int] = sorted(set(members))
        self.counts: list[int] = [0] * len(self.present)
        order = {member: position for position, member in enumerate(self.present)}
        for member in members:
            self.counts[order[member]] += 1
        self.longest = max(self.counts)
        self.even = min(self.counts) == self.longest
        self.consecutive = self.present[-1] - self.present[0] + 1 == len(self.present)
        self.device = device

    @cached_property
    def padding(self) -> tuple[Tensor, Tensor]:
        """(row to take for each padded place, [members * longest]; padded place of each row)."""
        take, place, row = [], [], 0
        for position, count in enumerate(self.counts):
            take += [row + min(offset, count - 1) for offset in range(self.longest)]
            place += [position * self.longest + offset for offset in range(count)]
            row += count
        return torch.tensor(take, device=self.device), torch.tensor(place, device=self.device)

    def select(self, stacked: Tensor) -> Tensor:
        """The present members' slices of a stack [P, ...]; a view when they are consecutive."""
        if self.consecutive:
            return stacked[self.present[0] : self.present[-1] + 1]
        return stacked[self.present]


def add_update(output: Tensor, x: Tensor, stack: Stack, route: Route, scaling: float) -> Tensor:
    """output + scaling * B A x for each row's own member; may change `output` in place.

    `x` is [rows, tokens, in] in the factors' dtype, `output` [rows, tokens, out] in any dtype;
    the result has `output`'s shape and dtype.
    """
    if torch.is_grad_enabled():
        return (output + segment_update(x, stack, route, scaling)).to(output.dtype)
    total = output if output.dtype == x.dtype and output.is_contiguous() else output.to(x.dtype)
    total = total.contiguous()
    limit = GROUPED_TOKENS_EVEN if route.even else GROUPED_TOKENS_UNEVEN
    if len(route.present) > 1 and route.longest * x.shape[1] <= limit:
        add_grouped(total, x, stack, route, scaling)
    else:
        add_by_segment(total, x, stack, route, scaling)
    return total.to(output.dtype)


def segment_update(x: Tensor, stack: Stack, route: Route, scaling: float) -> Tensor:
    """scaling * B A x [rows, tokens, out], member by member, through the leaf parameters.

    A member's parameters enter the graph with its own rows only, so no gradient can reach another
    member.
    """
    parts = []
    for member, rows in zip(route.present, x.split(route.counts), strict=True):
        A, B = stack.pairs[member]
        parts.append((rows @ A.t() * scaling) @ B.t())
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def add_by_segment(total: Tensor, x: Tensor, stack: Stack, route: Route, scaling: float) -> None:
    """Adds the update to `total` in place, without gradients, member by member."""
    flat_x, flat_total = x.flatten(0, 1), total.view(-1, total.shape[-1])
    start = 0
    for member, count in zip(route.present, route.counts, strict=True):
        stop = start + count * x.shape[1]
        hidden = flat_x[start:stop] @ stack.A[member].t()
        flat_total[start:stop].addmm_(hidden, stack.B[member].t(), alpha=scaling)
        start = stop


def add_grouped(total: Tensor, x: Tensor, stack: Stack, route: Route, scaling: float) -> None:
    """Adds the update to `total` in place, without gradients, as one batched matmul."""
    members, places = len(route.present), route.longest * x.shape[1]
    A, B = route.select(stack.A), route.select(stack.B)
    if route.even:
        hidden = torch.bmm(x.reshape(members, places, -1), A.transpose(1, 2))
        total.view(members, places, -1).baddbmm_(hidden, B.transpose(1, 2), alpha=scaling)
        return
    take, place = route.padding
    hidden = torch.bmm(x[take].view(members, places, -1), A.transpose(1, 2)).mul_(scaling)
    update = torch.bmm(hidden, B.transpose(1, 2))
    total.add_(update.view(members * route.longest, x.shape[1], -1)[place])
