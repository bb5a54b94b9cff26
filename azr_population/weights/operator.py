"""The `Operator` class: a pure function of parents and a generator, with its options and bounds."""

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from azr_population.errors import UserError
from azr_population.registry import Registry
from azr_population.weights.adapter import Adapter, refuse_misfit, refuse_not_finite

Variation = Callable[..., Adapter]
"""(parents, generator, **options) -> child"""


@dataclass(frozen=True)
class Operator:
    """A weight-space mutation (one parent) or crossover (two parents, the better one first).

    `code` is the paper's (M1..X4); `defaults` are its options with their values, None if the
    operator draws the value; `ranges` are their inclusive bounds.
    """

    name: str
    code: str
    parents: int
    defaults: Mapping[str, float | None]
    ranges: Mapping[str, tuple[float, float]]
    function: Variation
    steps: tuple["Operator", ...] = ()
    """A crossover and a mutation made in turn; options have their names as prefix:
    `full_gaussian.eps`."""

    def __call__(
        self, parents: Sequence[Adapter], generator: torch.Generator, **options: float | None
    ) -> Adapter:
        """The child: same spec, layers, shapes and dtype as the first parent.

        Parents do not change; the same generator state gives the same child (bit for bit on the
        CPU). Surplus parents are ignored.

        Raises UserError: an unknown option or a value out of bounds, too few parents, parents that
        do not fit together, or parents with values that are not finite.
        """
        resolved = self.resolve(options)
        if len(parents) < self.parents:
            raise UserError(f"{self.name} needs {self.parents} parents, not {len(parents)}")
        used = parents[: self.parents]
        for other in used[1:]:
            refuse_misfit(used[0], other, "the parents")
        for parent in used:
            if not parent.factors:
                raise UserError(f"{self.name}: a parent has no layers")
            refuse_not_finite(parent, "a parent")
        with torch.no_grad():
            child = self.function(used, generator, **resolved)
        self._check(child, used[0])
        return child

    def _check(self, child: Adapter, parent: Adapter) -> None:
        """Raises UserError unless the child has the form of its first parent."""
        if not isinstance(child, Adapter):
            raise UserError(f"{self.name} made a {type(child).__name__}, and not an Adapter")
        refuse_misfit(parent, child, f"a parent and its child by {self.name}")
        for layer, pair in parent.factors.items():
            made = child.factors[layer]
            if (pair.A.dtype, pair.B.dtype) != (made.A.dtype, made.B.dtype):
                raise UserError(
                    f"{self.name} made factors of {made.A.dtype} in {layer}, not {pair.A.dtype}"
                )

    def resolve(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """The operator's options, updated by the given ones; raises UserError as above."""
        for key, value in options.items():
            if key not in self.defaults:
                names = ", ".join(self.defaults) or "none"
                raise UserError(f"{self.name} has no option {key}; its options: {names}")
            if value is None and self.defaults[key] is None:
                continue
            low, high = self.ranges[key]
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not number or not low <= value <= high or value == math.inf:
                limits = f"between {low:g} and {high:g}" if high < float("inf") else f">= {low:g}"
                raise UserError(f"{self.name}: {key}={value} must be a number {limits}")
        return {**self.defaults, **options}


OPERATORS: Registry[Operator] = Registry("operator", Operator, "@operator", group="operators")


def operator(
    name: str | None = None,
    *,
    parents: int,
    code: str = "",
    ranges: Mapping[str, tuple[float, float]] | None = None,
) -> Callable[[Variation], Operator]:
    """Decorator that makes a function an operator; its keyword options become `defaults`.

    With a `name` it is registered; without one, its name is its path, `module.function`. `code` is
    PopuLoRA's.
    """

    def register(function: Variation) -> Operator:
        parameters = inspect.signature(function).parameters.values()
        defaults = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
        limits = dict(ranges or {})
        if limits.keys() != defaults.keys():
            mismatch = f"ranges are for {set(limits)}, options are {set(defaults)}"
            raise ValueError(f"{function.__name__}: {mismatch}")
        made = Operator(name or function.__name__, code, parents, defaults, limits, function)
        return OPERATORS.register(name, code)(made) if name else made

    return register
