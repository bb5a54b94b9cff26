"""What an operator is: a pure function of parents and a generator, and what is known about it."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from azr_population.errors import UserError
from azr_population.registry import Registry
from azr_population.weights.adapter import Adapter, first_not_finite, refuse_misfit

Variation = Callable[..., Adapter]
"""(parents, generator, **options) -> child"""


@dataclass(frozen=True)
class Operator:
    """A weight-space mutation (one parent) or crossover (two parents, the better one first).

    `code` is the paper's (M1..X4); `defaults` are its options with their values, None where the
    operator draws one; `ranges` their limits, both ends included; `step_size` names the option that
    says how far a child lies from its parent, where there is one.
    """

    name: str
    code: str
    parents: int
    reference: str
    defaults: Mapping[str, float | None]
    ranges: Mapping[str, tuple[float, float]]
    function: Variation
    step_size: str | None = None
    steps: tuple["Operator", ...] = ()
    """Of a sequence, whose options carry the operator's name: `full_gaussian.eps`."""

    @property
    def summary(self) -> str:
        """The first line of the function's docstring."""
        return (inspect.getdoc(self.function) or "").split("\n")[0]

    def __call__(
        self, parents: Sequence[Adapter], generator: torch.Generator, **options: float | None
    ) -> Adapter:
        """The child: same spec, layers, shapes and dtype as the first parent.

        The parents are left as they are; the same generator state gives the same child (bit for
        bit on the CPU). More parents than the operator takes are ignored.

        Raises UserError for an unknown or impossible option, too few parents, parents that do not
        fit together, and parents with values that are not finite.
        """
        resolved = self.resolve(options)
        if len(parents) < self.parents:
            raise UserError(f"{self.name} needs {self.parents} parents, not {len(parents)}")
        used = parents[: self.parents]
        for other in used[1:]:
            refuse_misfit(used[0], other, "the parents")
        for parent in used:
            if (layer := first_not_finite(parent)) is not None:
                raise UserError(
                    f"a parent holds a value that is not finite (NaN or Inf) in {layer}"
                )
        with torch.no_grad():
            return self.function(used, generator, **resolved)

    def resolve(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """The operator's options with the given values in place; raises UserError as above."""
        for key, value in options.items():
            if key not in self.defaults:
                names = ", ".join(self.defaults) or "none"
                raise UserError(f"{self.name} has no option {key}; its options: {names}")
            if value is None and self.defaults[key] is None:
                continue
            low, high = self.ranges[key]
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not number or not low <= value <= high:
                limits = f"between {low:g} and {high:g}" if high < float("inf") else f">= {low:g}"
                raise UserError(f"{self.name}: {key}={value} must be a number {limits}")
        return {**self.defaults, **options}


OPERATORS: Registry[Operator] = Registry("operator", Operator, "@operator")


def operator(
    name: str | None = None,
    *,
    parents: int,
    code: str = "",
    reference: str = "",
    ranges: Mapping[str, tuple[float, float]] | None = None,
    step_size: str | None = None,
) -> Callable[[Variation], Operator]:
    """Decorator: makes an operator of a function; its keyword options become `defaults`.

    With a `name` it is registered. Without one it is called by its path, `module.function`.
    """

    def register(function: Variation) -> Operator:
        parameters = inspect.signature(function).parameters.values()
        defaults = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
        limits = dict(ranges or {})
        if limits.keys() != defaults.keys():
            mismatch = f"ranges are for {set(limits)}, options are {set(defaults)}"
            raise ValueError(f"{function.__name__}: {mismatch}")
        called = name or function.__name__
        new_operator = Operator(
            called, code, parents, reference, defaults, limits, function, step_size
        )
        return OPERATORS.register(name, reference)(new_operator) if name else new_operator

    return register
