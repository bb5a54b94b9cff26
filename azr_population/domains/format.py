"""Prompts that ask a model to propose and to solve, and parsing of its completions."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from azr_population.domains.task import ParsedProposal, Task

if TYPE_CHECKING:
    from azr_population.engines.engine import Completion

FENCE = re.compile(
    r"```[ \t]*(?![ \t])([A-Za-z]*)(?![A-Za-z])[^\n`]*\n"
    r"(.*?)(?:(?:^ {0,3}|(?<=\S))```[ \t]*\r?$|\Z)",
    re.DOTALL | re.MULTILINE,
)
"""A fenced block as in Markdown: a fence that is indented by more than three blanks, as in a
docstring, does not close it, and the last one may end with the text. A fence may also end a line of
the content. The lookaheads keep a text without a newline from taking time by its square."""

_ALIASES = {"py": "python"}


class Format(ABC):
    """Prompts out, text in, by tables with an entry for each type of task. Parsing never evaluates
    anything. A format whose prompts are no templates overrides `propose_prompt`, `solve_prompt` and
    `max_new_tokens`."""

    chat: ClassVar[bool]
    """Whether a prompt is the user's turn of the base's chat template."""
    TYPES: ClassVar[Sequence[str] | None] = None
    """Types of task that its bases were made for; they apply where `task.types` is not given; None:
    all."""
    REJECT: ClassVar[Sequence[str] | None] = None
    """The default of `task.reject`; None: the domain's usual rules."""
    PROPOSE: ClassVar[Mapping[str, str]]
    SOLVE: ClassVar[Mapping[str, str]]
    """May have `{program}`, `{input}`, `{output}` (the first ones), `{pairs}` and `{message}`."""
    PAIR: ClassVar[str] = ""
    """A pair of a task whose first half is shown, with `{input}` and `{output}`."""
    BETWEEN: ClassVar[str] = ""
    """Separates two pairs."""
    MESSAGE: ClassVar[str] = ""
    """Stands before a task's message."""
    EXAMPLES_NOUN: ClassVar[str] = ""
    """A noun for existing tasks in the prompt for a new one; if empty, they are not shown."""
    TOKENS: ClassVar[Mapping[str, tuple[int, int]]]
    """Lengths of the longest useful proposal and answer."""

    def propose_prompt(self, type: str, references: Sequence[Task] = ()) -> str:
        """The prompt that asks for a new task; `references` are tasks to differ from."""
        prompt = self.PROPOSE[type]
        if not (self.EXAMPLES_NOUN and references):
            return prompt
        programs = write_blocks(*(("python", task.program) for task in references))
        return (
            f"{prompt}\n\nThese {self.EXAMPLES_NOUN} are known already; "
            f"yours must differ clearly:\n{programs}"
        )

    def solve_prompt(self, task: Task) -> str:
        """The prompt that asks for the missing part of the task."""
        pairs = zip(task.inputs[: shown(task)], task.outputs, strict=False)
        return self.SOLVE[task.type].format(
            program=task.program,
            input="".join(task.inputs[:1]),
            output=task.outputs[0],
            pairs=self.BETWEEN.join(self.PAIR.format(input=i, output=o) for i, o in pairs),
            message=self.MESSAGE + task.message if task.message else "",
        )

    @abstractmethod
    def parse_proposal(self, type: str, text: str) -> ParsedProposal | None:
        """The proposal in a completion, or None when its form is wrong."""

    @abstractmethod
    def parse_answer(self, type: str, text: str) -> str | None:
        """The answer in a completion, or None when its form is wrong."""

    @abstractmethod
    def write_proposal(self, task: Task) -> str:
        """The completion that `parse_proposal` reads as this task's proposal."""

    @abstractmethod
    def write_answer(self, task: Task) -> str:
        """The completion that `parse_answer` reads as the task's own answer."""

    def gold_answer(self, task: Task) -> str | None:
        """The completion that solves the task, if there is only one way to write it: its
        probability is then the chance to solve the task."""
        return None

    def max_new_tokens(self, type: str, phase: str) -> int:
        """Tokens of the longest useful completion; `phase` is `propose` or `solve`."""
        return self.TOKENS[type][phase == "solve"]


def shown(task: Task) -> int:
    """The number of pairs of a code_f task that the solver sees: the first half, rounded up. The
    hidden ones decide."""
    return (len(task.inputs) + 1) // 2


def blocks_named(name: str, text: str) -> list[str]:
    """The contents of the fenced blocks of that name, in order; those in a draft do not count."""
    blocks = ((block.lower(), body) for block, body in FENCE.findall(without_draft(text)))
    return [body.strip("\r\n") for block, body in blocks if _ALIASES.get(block, block) == name]


def without_draft(text: str) -> str:
    """The text behind a reasoning model's `</think>`. The chat template may have written `<think>`
    already; a draft that does not end has nothing behind it."""
    return text.rpartition("</think>")[2].partition("<think>")[0]


def write_blocks(*written: tuple[str, str]) -> str:
    """Fenced blocks of (name, content)."""
    return "\n".join(f"```{name}\n{body}\n```" for name, body in written)


def read_proposal(format: Format, type: str, completion: Completion) -> ParsedProposal | None:
    """The proposal, or None where the form is wrong or the token limit cut off the end."""
    return format.parse_proposal(type, completion.text) if completion.finished else None


def read_answer(format: Format, type: str, completion: Completion) -> str | None:
    """The answer, or None where the form is wrong or the token limit cut off the end."""
    return format.parse_answer(type, completion.text) if completion.finished else None
