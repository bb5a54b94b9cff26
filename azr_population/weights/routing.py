"""Routing: each row of a batch is multiplied by the factors of its member.

A batch is sorted by member, so it consists of one segment per member, with two products each. (One
batched product over members, padded to the longest segment, was not faster in a step of the nano
base.)
"""

from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

COPIED_TOKENS = 12
"""Tokens per member from which a CPU uses a copy of float32 factors in the base's dtype: for fewer
tokens products in float32 are faster than in bfloat16."""


@dataclass(frozen=True)
class Stack:
    """The factors of all P members for one layer: A[P, r, in] and B[P, out, r].

    `pairs[p]` are the leaf parameters (A[p], B[p]) that share the stacks' storage.
    """

    A: Tensor
    B: Tensor
    pairs: tuple[tuple[nn.Parameter, nn.Parameter], ...]
    _copies: dict[torch.dtype, tuple[tuple[int, int], Tensor, Tensor]] = field(default_factory=dict)

    def served(self, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """A and B in `dtype`: the stacks themselves, or a cached copy that is renewed after
        changes.

        Changes are detected by torch's version counters, which leaves and stacks share; a write
        through `.data` is not detected.
        """
        if dtype == self.A.dtype:
            return self.A, self.B
        versions = (self.A._version, self.B._version)
        copied, A, B = self._copies.get(dtype, (None, self.A, self.B))
        if copied != versions:
            A, B = self.A.to(dtype), self.B.to(dtype)
            self._copies[dtype] = (versions, A, B)
        return A, B

    def drop_copies(self) -> None:
        """Frees the cached copies; they are made again when needed."""
        self._copies.clear()


class Route(NamedTuple):
    """Which rows belong to which member: `counts[i]` rows to the member `present[i]`; and the dtype
    in which factors are applied."""

    dtype: torch.dtype
    rows: int
    present: tuple[int, ...]
    counts: tuple[int, ...]

    def dtype_for(self, x: Tensor, factors: torch.dtype) -> torch.dtype:
        """The dtype in which factors are applied to `x` [rows, tokens, in]."""
        few = x.device.type == "cpu" and max(self.counts) * x.shape[1] < COPIED_TOKENS
        return factors if few else self.dtype


@lru_cache(maxsize=32)
def route_of(members: tuple[int, ...], dtype: torch.dtype) -> Route:
    """The route of these members, ascending; cached, because decoding uses one for many tokens."""
    tally = Counter(members)
    return Route(dtype, len(members), tuple(tally), tuple(tally.values()))


def add_update(output: Tensor, x: Tensor, stack: Stack, route: Route, scaling: float) -> Tensor:
    """output + scaling * B A x with the factors of each row's member; may change `output` in place.

    `x` is [rows, tokens, in] in the dtype of the product, `output` [rows, tokens, out] in any;
    the result has `output`'s shape and dtype.
    """
    if torch.is_grad_enabled():
        alone = len(route.present) == 1 and output.is_contiguous()
        # In float32 the update is added at the end: another order of summation changes digits.
        if alone and x.dtype == output.dtype != torch.float32:
            A, B = stack.pairs[route.present[0]]
            added: Tensor = _Added.apply(output, x, A.to(x.dtype), B.to(x.dtype), scaling)
            return added
        return (output + segment_update(x, stack, route, scaling)).to(output.dtype)
    total = output.contiguous()
    _add_segments(total, x, stack, route, scaling)
    return total


class _Added(torch.autograd.Function):
    """output + scaling * B A x for one member, in place: the update is never stored separately, and
    is rounded once, after the addition."""

    @staticmethod
    def forward(
        context: Any, output: Tensor, x: Tensor, A: Tensor, B: Tensor, scaling: float
    ) -> Tensor:
        hidden = x.flatten(0, 1) @ A.t()
        output.view(-1, output.shape[-1]).addmm_(hidden, B.t(), alpha=scaling)
        context.mark_dirty(output)
        context.save_for_backward(x, A, B, hidden)
        context.scaling = scaling
        return output

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, A, B, hidden = context.saved_tensors
        by_output = gradients[0]
        flat = by_output.reshape(-1, by_output.shape[-1])
        by_hidden = flat @ (B * context.scaling)
        by_x = (by_hidden @ A).view_as(x) if context.needs_input_grad[1] else None
        by_A = by_hidden.t() @ x.flatten(0, 1)
        by_B = flat.t() @ (hidden * context.scaling)
        return by_output, by_x, by_A, by_B, None


def segment_update(x: Tensor, stack: Stack, route: Route, scaling: float) -> Tensor:
    """scaling * B A x [rows, tokens, out], member by member, through the leaf parameters.

    A member's parameters enter the graph with its own rows only, so no gradient can reach another
    member.
    """
    parts = []
    for member, rows in zip(route.present, x.split(route.counts), strict=True):
        # In the products' dtype; gradients reach the float32 factors through the cast.
        A, B = (factor.to(x.dtype) for factor in stack.pairs[member])
        parts.append((rows @ A.t() * scaling) @ B.t())
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def _add_segments(total: Tensor, x: Tensor, stack: Stack, route: Route, scaling: float) -> None:
    """Adds the update to `total`, of this or a narrower dtype, in place and without gradients."""
    A, B = stack.served(x.dtype)
    flat_x, flat_total = x.flatten(0, 1), total.view(-1, total.shape[-1])
    start = 0
    for member, count in zip(route.present, route.counts, strict=True):
        stop = start + count * x.shape[1]
        hidden = flat_x[start:stop] @ A[member].t()
        if total.dtype == hidden.dtype:
            flat_total[start:stop].addmm_(hidden, B[member].t(), alpha=scaling)
        else:
            flat_total[start:stop].add_(hidden @ B[member].t(), alpha=scaling)
        start = stop
