"""What the command asks of whoever draws completions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # records and figures are read without torch
    from azr_population.measuring.evaluation.contestants import Contestant
    from azr_population.measuring.evaluation.prompts import Prompt


@dataclass(frozen=True)
class Settings:
    """How completions are drawn. `temperature=0` is greedy."""

    max_new_tokens: int
    temperature: float = 0.0
    top_p: float = 1.0


@dataclass(frozen=True)
class Request:
    """`n` completions of a prompt by one contestant."""

    contestant: Contestant
    prompt: Prompt
    n: int


@dataclass(frozen=True)
class Drawn:
    """One completion."""

    text: str
    tokens: int
    """How many were written; 0 where it is not known."""
    finished: bool
    """The model came to an end by itself."""
    continued: bool = False
    """The prompt was plain text, which the completion goes on with."""
    note: str = ""
    """Why there is no completion, e.g. a prompt that is longer than the context."""


class Sampler(Protocol):
    """Draws completions of all contestants of an entry."""

    name: str

    def sample(
        self, requests: Sequence[Request], settings: Settings, seed: int
    ) -> Iterator[tuple[int, list[Drawn]]]:
        """The place of each request, with its `n` completions, as they become ready."""
        ...


def cut(text: str, stops: Sequence[str]) -> str:
    """The text up to the first of the stops."""
    ends = [text.find(stop) for stop in stops if stop in text]
    return text[: min(ends)] if ends else text
