"""How a model is asked to propose and to solve, and what is read out of what it writes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Protocol

from azr_population.domains.task import Proposal, Task

if TYPE_CHECKING:
    from azr_population.engines.engine import Completion

_FENCE = re.compile(r"```[ \t]*([A-Za-z]*)[^\n]*\n(.*?)```", re.DOTALL)


class Format(Protocol):
    """Prompts out, text in. Parsing never evaluates anything."""

    chat: ClassVar[bool]
    """Whether a prompt is the user's turn of the base's chat template."""

    def propose_prompt(self, type: str, references: Sequence[Task] = ()) -> str:
        """The prompt that asks for a new task; `references` are tasks to differ from."""
        ...

    def parse_proposal(self, type: str, text: str) -> Proposal | None:
        """The proposal in a completion, or None when its form is wrong."""
        ...

    def solve_prompt(self, task: Task) -> str:
        """The prompt that asks for the missing part of the task."""
        ...

    def parse_answer(self, type: str, text: str) -> str | None:
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

    def max_new_tokens(self, type: str, phase: str) -> int:
        """Longest useful completion in tokens; `phase` is `propose` or `solve`."""
        ...


def blocks(text: str) -> list[tuple[str, str]]:
    """Fenced blocks in order: name in small letters, content."""
    return [(name.lower(), body.strip("\n")) for name, body in _FENCE.findall(text)]


def known_already(references: Sequence[Task], what: str = "programs") -> list[str]:
    """The part of a chat prompt that shows tasks to differ from; none without them."""
    if not references:
        return []
    shown = "\n".join(f"```python\n{task.program}\n```" for task in references)
    return [f"These {what} are known already; yours must differ clearly:\n{shown}"]


def read_proposal(format: Format, type: str, completion: Completion) -> Proposal | None:
    """The proposal, or None where the form is wrong or the token limit cut off the end."""
    return format.parse_proposal(type, completion.text) if completion.finished else None


def read_answer(format: Format, type: str, completion: Completion) -> str | None:
    """The answer, or None where the form is wrong or the token limit cut off the end."""
    return format.parse_answer(type, completion.text) if completion.finished else None
