"""The operators by name, and the one call that makes a child."""

from __future__ import annotations

from azr_population.evolution import operators as _registered  # noqa: F401
from azr_population.evolution.breeding import Child, Sequential, breed, rehearse
from azr_population.evolution.breeding import find as get_operator
from azr_population.evolution.operator import OPERATORS, Operator

PAPER_CODES = ("M1", "M2", "M3", "M4", "X1", "X2", "X3", "X4")
"""The eight operators that PopuLoRA ships; others are off unless a mix names them."""

__all__ = ["PAPER_CODES", "Child", "Operator", "Sequential", "breed", "get_operator", "rehearse"]


def operators() -> list[Operator]:
    """All operators, in the order of their codes: mutations, then crossovers."""
    return sorted((entry.function for entry in OPERATORS), key=lambda op: op.code)
