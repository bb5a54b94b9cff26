"""The bank: every member's LoRA factors, stacked, in one frozen model."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import torch
from torch import Tensor, nn

from azr_population.errors import UserError
from azr_population.weights.adapter import Adapter, Factors, LoraSpec, refuse_misfit
from azr_population.weights.routing import Route, Stack, add_update, route_of


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
            B = torch.zeros(slots, outputs, spec.rank, dtype=dtype, device=device)
            pairs = tuple((nn.Parameter(A[p]), nn.Parameter(B[p])) for p in range(slots))
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

    def move(self, place: Callable[[Tensor], Tensor]) -> None:
        """Replaces the factors' storage by `place(factors)`, for example on another device.
        Parameters stay the same objects; cached copies in other dtypes are dropped."""
        for stack in self._stacks.values():
            stack.A.data, stack.B.data = place(stack.A.data), place(stack.B.data)
            for slot, (A, B) in enumerate(stack.pairs):
                A.data, B.data = stack.A[slot], stack.B[slot]
            stack.drop_copies()

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

    @contextmanager
    def adapters_active(self, members: Tensor, dtype: torch.dtype | None = None) -> Iterator[None]:
        """Inside the block, row i of every forward uses the adapter of slot `members[i]`.

        `members` is a long tensor [rows], ascending; all -1 means the bare base, as outside the
        block. With `dtype`, a copy of the factors in that dtype is used (cached while gradients are
        off), so a base in bfloat16 need not cast in every layer. With gradient checkpointing call
        backward inside the block, because it recomputes the forward.
        """
        listed = members.tolist()
        if members.dim() != 1 or not listed or listed != sorted(listed):
            raise ValueError("members must be a non-empty ascending vector, one slot per row")
        bare = listed[-1] < 0
        if not bare and (listed[0] < 0 or listed[-1] >= self.slots):
            raise ValueError(f"members {listed[0]}..{listed[-1]} are not in 0..{self.slots - 1}")
        before = self._route
        dtype = dtype or self.dtype
        self._route = None if bare else route_of(tuple(listed), dtype)
        try:
            yield
        finally:
            self._route = before

    def parameters_of(self, slot: int) -> list[nn.Parameter]:
        """The member's factors as leaf parameters, A then B for each name in order.

        They share the bank's storage: an optimizer that works in place changes the member.
        """
        return [factor for stack in self._stacks.values() for factor in stack.pairs[slot]]

    def read(self, slot: int) -> Adapter:
        """A copy of the member's factors in the bank's dtype and on its device."""
        stacks = self._stacks.items()
        factors = {name: Factors(s.A[slot].clone(), s.B[slot].clone()) for name, s in stacks}
        return Adapter(self.spec, factors)

    def write(self, slot: int, adapter: Adapter) -> None:
        """Replaces the member's factors, bit for bit. Raises UserError, without any change: the
        adapter has another rank, alpha, layers, shapes or dtype."""
        self._check_fits(adapter)
        with torch.no_grad():
            for name, stack in self._stacks.items():
                A, B = stack.pairs[slot]
                A.copy_(adapter.factors[name].A)
                B.copy_(adapter.factors[name].B)

    def _check_fits(self, adapter: Adapter) -> None:
        shapes = {name: Factors(*stack.pairs[0]) for name, stack in self._stacks.items()}
        refuse_misfit(adapter, Adapter(self.spec, shapes), "the adapter and this run's members")
        for name, pair in adapter.factors.items():
            if not pair.A.dtype == pair.B.dtype == self.dtype:
                raise UserError(f"{name} is {pair.A.dtype} and {pair.B.dtype}, not {self.dtype}")

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
        rows = rows.to(route.dtype_for(rows, self.dtype))
        # Without a view where possible: changing a view in place costs a copy in backward.
        total = output if output.dim() == 3 else output.reshape(route.rows, -1, output.shape[-1])
        stack = self._stacks[name]
        return add_update(total, rows, stack, route, self.spec.scaling).view(output.shape)


def layer_shape(layer: nn.Module) -> tuple[int, int]:
    """(inputs, outputs) of a linear layer; Conv1D stores its weight transposed."""
    if isinstance(layer, nn.Linear):
        return layer.in_features, layer.out_features
    inputs, outputs = next(layer.parameters()).shape
    return inputs, outputs


def target_layers(model: nn.Module, spec: LoraSpec) -> dict[str, nn.Module]:
    """The layers that match `spec.target_modules` by PEFT's rules, in the model's order.

    A target is a suffix of a module's name at a dot; `all-linear` is every linear layer except the
    output head. Raises UserError: nothing matches, or a target is in a mixture of experts, whose
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
            if any(name == t or name.endswith(f".{t}") for t in spec.target_modules)
        }
        mixed = [name for name in layers if name.startswith(tuple(mixtures))]
    if mixed:
        raise UserError(
            f"{mixed[0].removesuffix('.')} is a mixture of experts, which cannot be routed by row; "
            f"name layers outside of it in target_modules, not {', '.join(spec.target_modules)}"
        )
    if not layers:
        kinds = sorted({name.rpartition(".")[2] for name in linear})
        raise UserError(
            f"no linear layer of the base matches target_modules={list(spec.target_modules)}; "
            + (f"it has {', '.join(kinds)}" if kinds else "it has no linear layer at all")
        )
    return layers


def _is_linear(module: nn.Module) -> bool:
    # Conv1D is recognised by name so that this module needs no import of transformers.
    return isinstance(module, nn.Linear) or type(module).__name__ == "Conv1D"
