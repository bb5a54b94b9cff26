"""The bank: every member's LoRA factors, stacked, in one frozen model.

A batch is sorted by member, so it consists of one segment per member, with two products each. Where
rows have one token (decoding), the factors of all members are one matrix instead: each row is
multiplied by all of them, and what is not its own member's is zeroed in between. That costs more
multiplications, which are few there, and three launches a layer instead of two for each member.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from azr_population.errors import UserError
from azr_population.weights.adapter import Adapter, Factors, LoraSpec, matches, refuse_misfit

_APART_FROM = 128
"""Rows per member from which a CPU multiplies each member's rows by its own factors."""
COPIED_TOKENS = 12
"""Tokens per member from which a CPU uses a copy of float32 factors in the base's dtype: for fewer
tokens products in float32 are faster than in bfloat16."""


@dataclass(frozen=True)
class Stack:
    """The factors of all P members for one layer: A[P, r, in] and, transposed, B[P, r, out].

    `pairs[p]` are the leaf parameters (A[p], B[p].T) that share the stacks' storage.
    """

    A: Tensor
    B: Tensor
    pairs: tuple[tuple[nn.Parameter, nn.Parameter], ...]
    copies: dict[torch.dtype, tuple[tuple[int, int], Tensor, Tensor]] = field(default_factory=dict)

    def served(self, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """A and B in `dtype`: the stacks themselves, or a cached copy that is renewed after
        changes.

        Changes are detected by torch's version counters, which leaves and stacks share. After a
        write through `.data`, which these do not count, `Bank.drop_copies` is called.
        """
        if dtype == self.A.dtype:
            return self.A, self.B
        versions = (self.A._version, self.B._version)
        copied, A, B = self.copies.get(dtype, (None, self.A, self.B))
        if copied != versions:
            A, B = self.A.to(dtype), self.B.to(dtype)
            self.copies[dtype] = (versions, A, B)
        return A, B


class Route(NamedTuple):
    """Which rows belong to which member: `counts[i]` rows to the member `present[i]`; and the dtype
    in which factors are applied."""

    dtype: torch.dtype
    rows: int
    present: tuple[int, ...]
    counts: tuple[int, ...]
    scales: Tensor | None = None
    """[rows, members * r], for rows of one token: the scaling where a row and a component are of
    one member, 0 elsewhere. Members are all from the first to the last that is present."""

    def components(self, factors: Tensor) -> Tensor:
        """Rows of `factors` [P, r, width] that `scales` is about: [members * r, width]."""
        return factors[self.present[0] : self.present[-1] + 1].flatten(0, 1)


class Bank:
    """P members' LoRA adapters on one base model, as dW = scaling * B A per target layer.

    The base is frozen, and its structure and state dict do not change: each target layer
    (`nn.Linear`, its quantised subclasses, GPT-2's `Conv1D`) gets a forward hook that adds the
    update of each row's member. Move the model to its device before building the bank.

    `names` are the target layers in the model's order; `slots` is P. Factors have `dtype` whatever
    the base's dtype; a layer's output keeps the base's dtype.

    Raises UserError: no layer of the base matches `spec.target_modules`.
    """

    def __init__(
        self, model: nn.Module, spec: LoraSpec, slots: int, dtype: torch.dtype = torch.float32
    ) -> None:
        if slots < 1:
            raise ValueError(f"a bank needs at least one slot, not {slots}")
        self.spec = spec
        self.slots = slots
        self.dtype = dtype
        self._route: Route | None = None
        self._stacks: dict[str, Stack] = {}
        targets = target_layers(model, spec)
        model.requires_grad_(False)
        for name, layer in targets.items():
            inputs, outputs = layer_shape(layer)
            device = next(layer.parameters()).device
            A = torch.zeros(slots, spec.rank, inputs, dtype=dtype, device=device)
            B = torch.zeros(slots, spec.rank, outputs, dtype=dtype, device=device)
            pairs = tuple((nn.Parameter(A[p]), nn.Parameter(B[p].t())) for p in range(slots))
            self._stacks[name] = Stack(A, B, pairs)
            layer.register_forward_hook(partial(self._add_update, name))

    @property
    def names(self) -> list[str]:
        """The target layers' names in the base, in the model's order."""
        return list(self._stacks)

    @property
    def device(self) -> torch.device:
        """The factors' device."""
        return next(iter(self._stacks.values())).A.device

    def move(self, transfer: Callable[[Tensor], Tensor]) -> None:
        """Replaces the factors' storage by `transfer(factors)`, for example on another device.
        Parameters stay the same objects; cached copies in other dtypes are dropped."""
        for stack in self._stacks.values():
            stack.A.data, stack.B.data = transfer(stack.A.data), transfer(stack.B.data)
            for slot, (A, B) in enumerate(stack.pairs):
                A.data, B.data = stack.A[slot], stack.B[slot].t()
        self.drop_copies()

    def drop_copies(self) -> None:
        """Drops cached copies in other dtypes; the next use renews them."""
        for stack in self._stacks.values():
            stack.copies.clear()

    def init_member(self, slot: int, generator: torch.Generator) -> None:
        """PEFT's initialisation: A uniform in +-1/sqrt(in) (kaiming, a = sqrt 5), B zero.

        Drawn on the generator's device and then copied, so that a CPU generator gives the same
        member on every device.
        """
        with torch.no_grad():
            for stack in self._stacks.values():
                A, B = stack.pairs[slot]
                fresh = torch.empty(A.shape, device=generator.device)
                nn.init.kaiming_uniform_(fresh, a=math.sqrt(5), generator=generator)
                A.copy_(fresh)
                B.zero_()

    def route(
        self,
        members: Sequence[int],
        dtype: torch.dtype | None = None,
        one_token: bool = False,
    ) -> Route | None:
        """For `routed`: row i is slot `members[i]`'s; `members` ascend. All -1 is the bare base
        (None). With `one_token`, made to be used where every row has one token and gradients are
        off. For `dtype` see `adapters_active`.
        """
        members = list(members)
        if not members or members != sorted(members):
            raise ValueError("members must be a non-empty ascending vector, one slot per row")
        if members[-1] < 0:
            return None
        if members[0] < 0 or members[-1] >= self.slots:
            raise ValueError(f"members {members[0]}..{members[-1]} are not in 0..{self.slots - 1}")
        tally = Counter(members)
        route = Route(dtype or self.dtype, len(members), tuple(tally), tuple(tally.values()))
        # On a CPU many rows of a member are multiplied faster by its own factors alone.
        apart = self.device.type == "cpu" and len(members) >= _APART_FROM * len(tally)
        if not one_token or len(tally) < 2 or apart:
            return route
        first, last = route.present[0], route.present[-1]
        index = torch.tensor(members) - first
        scales = nn.functional.one_hot(index, last + 1 - first) * self.spec.scaling
        scales = scales.repeat_interleave(self.spec.rank, dim=1)
        return route._replace(scales=scales.to(self.device, self._product_dtype(route, 1)))

    def _product_dtype(self, route: Route, tokens: int) -> torch.dtype:
        """The dtype of products with factors, where rows have this many tokens."""
        few = self.device.type == "cpu" and max(route.counts) * tokens < COPIED_TOKENS
        return self.dtype if few else route.dtype

    @contextmanager
    def routed(self, route: Route | None) -> Iterator[None]:
        """Inside the block, every forward uses the adapters as `route` says. With gradient
        checkpointing call backward inside the block, because it recomputes the forward."""
        before, self._route = self._route, route
        try:
            yield
        finally:
            self._route = before

    def adapters_active(
        self, members: Sequence[int] | Tensor, dtype: torch.dtype | None = None
    ) -> AbstractContextManager[None]:
        """`routed` by the slots `members`, one per row. With `dtype`, a copy of the factors in that
        dtype is used (cached while gradients are off), so a base in bfloat16 need not cast in every
        layer."""
        return self.routed(self.route(torch.as_tensor(members).tolist(), dtype))

    def parameters_of(self, slot: int) -> list[nn.Parameter]:
        """The member's factors as leaf parameters, A then B for each name in order.

        They share the bank's storage: an optimizer that works in place changes the member.
        """
        return [factor for stack in self._stacks.values() for factor in stack.pairs[slot]]

    def read(self, slot: int) -> Adapter:
        """A copy of the member's factors in the bank's dtype and on its device."""
        stacks = self._stacks.items()
        packed = torch.contiguous_format
        factors = {
            name: Factors(s.A[slot].clone(), s.B[slot].t().clone(memory_format=packed))
            for name, s in stacks
        }
        return Adapter(self.spec, factors)

    def write(self, slot: int, adapter: Adapter) -> None:
        """Replaces the member's factors, bit for bit. Raises UserError, without any change: the
        adapter has another rank, alpha, layers, shapes or dtype."""
        shapes = {name: Factors(*stack.pairs[0]) for name, stack in self._stacks.items()}
        refuse_misfit(adapter, Adapter(self.spec, shapes), "the adapter and this run's members")
        for name, pair in adapter.factors.items():
            if not pair.A.dtype == pair.B.dtype == self.dtype:
                raise UserError(f"{name} is {pair.A.dtype} and {pair.B.dtype}, not {self.dtype}")
        with torch.no_grad():
            for name, stack in self._stacks.items():
                A, B = stack.pairs[slot]
                A.copy_(adapter.factors[name].A)
                B.copy_(adapter.factors[name].B)

    def _add_update(self, name: str, layer: nn.Module, inputs: tuple, output: Tensor) -> Tensor:
        route = self._route
        if route is None:
            return output
        x = inputs[0]
        if x.shape[0] != route.rows:
            raise RuntimeError(
                f"{name} got a batch of {x.shape[0]} rows while {route.rows} are routed"
            )
        rows = x.reshape(route.rows, -1, x.shape[-1])
        rows = rows.to(self._product_dtype(route, rows.shape[1]))
        # Without a view where possible: changing a view in place costs a copy in backward.
        total = output if output.dim() == 3 else output.reshape(route.rows, -1, output.shape[-1])
        stack, scaling = self._stacks[name], self.spec.scaling
        if torch.is_grad_enabled():
            weight = layer.weight if type(layer) is nn.Linear else None
            return _with_update(total, rows, weight, stack, route, scaling).view(output.shape)
        return _add_in_place(total, rows, stack, route, scaling).view(output.shape)


def _with_update(
    output: Tensor, x: Tensor, weight: Tensor | None, stack: Stack, route: Route, scaling: float
) -> Tensor:
    """output + scaling * B A x with the factors of each row's member, for learning; may change
    `output` in place.

    `x` is [rows, tokens, in] in the dtype of the product, `output` [rows, tokens, out] in any;
    the result has `output`'s shape and dtype. `weight` [out, in] is the frozen base's, where it is
    a plain matrix. A member's parameters enter the graph with its own rows only, so no gradient can
    reach another member.
    """
    pairs = [[factor.to(x.dtype) for factor in stack.pairs[member]] for member in route.present]
    # In float32 the update is added at the end: another order of summation changes digits.
    if len(pairs) == 1 and output.is_contiguous() and x.dtype == output.dtype != torch.float32:
        if weight is not None and weight.dtype == x.dtype:
            output = output.detach()
        else:
            # What bitsandbytes' layers return must not be changed in place, or autograd refuses;
            # with other layers backward would copy.
            weight, output = None, output.clone() if output._is_view() else output
        added: Tensor = _Added.apply(output, x, weight, *pairs[0], scaling)
        return added
    segments = zip(pairs, x.split(route.counts), strict=True)
    parts = [(rows @ A.t() * scaling) @ B.t() for (A, B), rows in segments]
    update = parts[0] if len(parts) == 1 else torch.cat(parts)
    return (output + update).to(output.dtype)


class _Added(torch.autograd.Function):
    """output + scaling * B A x for one member, in place: the update is never stored separately, and
    is rounded once, after the addition. So is the gradient by x, if `weight` is given: then it has
    the base's part too, and `output` is detached from the graph."""

    @staticmethod
    def forward(
        context: Any,
        output: Tensor,
        x: Tensor,
        weight: Tensor | None,
        A: Tensor,
        B: Tensor,
        scaling: float,
    ) -> Tensor:
        hidden = x.flatten(0, 1) @ A.t()
        output.view(-1, output.shape[-1]).addmm_(hidden, B.t(), alpha=scaling)
        context.mark_dirty(output)
        context.save_for_backward(x, weight, A, B, hidden)
        context.scaling = scaling
        return output

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, A, B, hidden = context.saved_tensors
        by_output, by_x = gradients[0], None
        flat = by_output.reshape(-1, by_output.shape[-1])
        by_hidden = flat @ (B * context.scaling)
        if context.needs_input_grad[1] and weight is None:
            by_x = by_hidden @ A
        elif context.needs_input_grad[1]:
            by_x = (flat @ weight).addmm_(by_hidden, A)
        by_x = None if by_x is None else by_x.view_as(x)
        by_A = by_hidden.t() @ x.flatten(0, 1)
        by_B = flat.t() @ (hidden * context.scaling)
        return by_output, by_x, None, by_A, by_B, None


def _add_in_place(total: Tensor, x: Tensor, stack: Stack, route: Route, scaling: float) -> Tensor:
    """`total` plus the members' updates, as `_with_update` but in place and without gradients;
    `total` may have a narrower dtype."""
    total = total.contiguous()
    A, B = stack.served(x.dtype)
    flat_x, flat_total = x.flatten(0, 1), total.view(-1, total.shape[-1])
    if route.scales is not None and x.shape[1] == 1:
        hidden = (flat_x @ route.components(A).t()).mul_(route.scales)
        _add_product(flat_total, hidden, route.components(B))
        return total
    start = 0
    for member, count in zip(route.present, route.counts, strict=True):
        stop = start + count * x.shape[1]
        hidden = flat_x[start:stop] @ A[member].t()
        _add_product(flat_total[start:stop], hidden, B[member], scaling)
        start = stop
    return total


def _add_product(total: Tensor, hidden: Tensor, B: Tensor, scaling: float = 1.0) -> None:
    """total += scaling * hidden B."""
    if total.dtype == hidden.dtype:
        total.addmm_(hidden, B, alpha=scaling)
    else:
        total.add_(hidden @ B, alpha=scaling)


def layer_shape(layer: nn.Module) -> tuple[int, int]:
    """(inputs, outputs) of a linear layer; Conv1D stores its weight transposed."""
    if isinstance(layer, nn.Linear):
        return layer.in_features, layer.out_features
    inputs, outputs = next(layer.parameters()).shape
    return inputs, outputs


def target_layers(model: nn.Module, spec: LoraSpec) -> dict[str, nn.Module]:
    """The layers that match `spec.target_modules` by PEFT's rules, in the model's order.

    A target is a suffix of a module's name at a dot; `all-linear` is every linear layer except the
    output head. Raises UserError: a target matches nothing, or is in a mixture of experts, whose
    rows are not the rows of the batch.
    """
    mixtures = [
        name.removesuffix("experts")
        for name, _ in model.named_modules()
        if name.endswith(".experts")
    ]
    linear = {name: module for name, module in model.named_modules() if _is_linear(module)}
    if "all-linear" in spec.target_modules:
        head = getattr(model, "get_output_embeddings", lambda: None)()
        layers = {name: module for name, module in linear.items() if module is not head}
        # transformers 5 has all experts of a layer in one parameter, which is not a linear layer.
        mixed = mixtures
    else:
        layers = {
            name: module
            for name, module in linear.items()
            if any(matches(name, target) for target in spec.target_modules)
        }
        mixed = [name for name in layers if name.startswith(tuple(mixtures))]
    if mixed:
        raise UserError(
            f"{mixed[0].removesuffix('.')} is a mixture of experts, which cannot be routed by row; "
            f"name layers outside of it in target_modules, not {', '.join(spec.target_modules)}"
        )
    named = [target for target in spec.target_modules if target != "all-linear"]
    odd = [target for target in named if not any(matches(name, target) for name in linear)]
    if odd or not layers:
        kinds = sorted({name.rpartition(".")[2] for name in linear})
        raise UserError(
            f"no linear layer of the base matches target_modules={odd or named}; "
            + (f"it has {', '.join(kinds)}" if kinds else "it has no linear layer at all")
        )
    return layers


def _is_linear(module: nn.Module) -> bool:
    # Conv1D is recognised by name so that this module needs no import of transformers.
    return isinstance(module, nn.Linear) or type(module).__name__ == "Conv1D"
