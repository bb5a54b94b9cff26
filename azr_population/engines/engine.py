"""The contract between self-play and whatever runs the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from azr_population.adapters.adapter import Adapter


@dataclass(frozen=True)
class Sampling:
    """How completions are drawn. `temperature=0` is greedy; `n` completions per prompt."""

    max_new_tokens: int
    temperature: float = 1.0
    top_p: float = 1.0
    n: int = 1


@dataclass(frozen=True)
class Completion:
    """One sampled continuation.

    `token_ids` include the end-of-sequence token when `finished`; `logprobs[i]` is the natural log
    of the probability (at temperature 1) of `token_ids[i]`; `text` leaves special tokens of padding
    and end of sequence out.
    """

    member: int
    prompt_ids: tuple[int, ...]
    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    text: str
    finished: bool


@dataclass(frozen=True)
class Sample:
    """One row of a policy-gradient update: a completion and what it was worth."""

    completion: Completion
    advantage: float


class Engine(Protocol):
    """Generates with and trains the members of one bank; members are addressed by slot."""

    def generate(
        self,
        prompts: Sequence[str],
        members: Sequence[int],
        sampling: Sampling,
        generator: torch.Generator,
    ) -> list[list[Completion]]:
        """`sampling.n` completions for each prompt, by the member in the same place; in order."""
        ...

    def update(
        self, samples: Mapping[int, Sequence[Sample]], learning_rates: Mapping[int, float]
    ) -> dict[int, dict[str, float]]:
        """One policy-gradient step per member on its own samples; metrics per member."""
        ...

    def read_member(self, member: int) -> Adapter:
        """A copy of the member's factors."""
        ...

    def write_member(self, member: int, adapter: Adapter) -> None:
        """Replaces the member's factors and starts its optimizer afresh."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """Everything a checkpoint needs: factors and optimizer states of all members."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The inverse of `state_dict`."""
        ...
