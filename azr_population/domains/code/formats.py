"""How a model is asked to propose and to solve, by name: the `base.format` of a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Protocol

from azr_population.domains.code.chat_format import ChatFormat
from azr_population.domains.code.nano_format import NanoFormat
from azr_population.domains.code.short_format import ShortFormat
from azr_population.domains.code.task import Proposal, Task, TaskType
from azr_population.registry import Registry


class Format(Protocol):
    """Prompts out, text in. Parsing never evaluates anything."""

    chat: ClassVar[bool]
    """Whether a prompt is the user's turn of the base's chat template."""

    def propose_prompt(self, type: TaskType, references: Sequence[Task] = ()) -> str:
        """The prompt that asks for a new task; `references` are tasks to differ from."""
        ...

    def parse_proposal(self, type: TaskType, text: str) -> Proposal | None:
        """The proposal in a completion, or None when its form is wrong."""
        ...

    def solve_prompt(self, task: Task) -> str:
        """The prompt that asks for the missing part of the task."""
        ...

    def parse_answer(self, type: TaskType, text: str) -> str | None:
        """The answer in a completion, or None when its form is wrong."""
        ...

    def gold_answer(self, task: Task) -> str | None:
        """The whole completion that solves the task, where there is one and one way to write it;
        its probability is then the chance to solve the task. None elsewhere."""
        ...

    def write_proposal(self, task: Task) -> str:
        """The completion that `parse_proposal` reads as this task's proposal."""
        ...

    def write_answer(self, task: Task) -> str:
        """The completion that `parse_answer` reads as the task's own answer."""
        ...

    def max_new_tokens(self, type: TaskType, phase: str) -> int:
        """Longest useful completion in tokens; `phase` is `propose` or `solve`."""
        ...


FORMATS: Registry[Callable[[], Format]] = Registry("base.format")
"""Name -> makes a format."""
FORMATS.register("nano", "special tokens, for the base that ships")(NanoFormat)
FORMATS.register("chat", "AZR's prompts: instructions and fenced blocks")(ChatFormat)
FORMATS.register("short", "a sentence, for bases that were warmed up on it")(ShortFormat)
