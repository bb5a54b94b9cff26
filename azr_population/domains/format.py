"""How a model is asked to propose and to solve, and what is read out of what it writes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Protocol

from azr_population.domains.task import ParsedProposal, Task

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

    def parse_proposal(self, type: str, text: str) -> ParsedProposal | None:
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


class TableFormat:
    """Prompts by tables with an entry for each type of task. A template of `SOLVE` may have
    `{program}`, `{input}`, `{output}` (the first ones), `{pairs}` and `{message}`."""

    PROPOSE: ClassVar[Mapping[str, str]]
    SOLVE: ClassVar[Mapping[str, str]]
    PAIR: ClassVar[str] = ""
    """A pair of a task whose first half is shown, with `{input}` and `{output}`."""
    BETWEEN: ClassVar[str] = ""
    """What stands between two of them."""
    MESSAGE: ClassVar[str] = ""
    """What stands before the message of a task that has one."""
    TOKENS: ClassVar[Mapping[str, tuple[int, int]]]
    """Of the longest useful proposal and answer."""

    def propose_prompt(self, type: str, references: Sequence[Task] = ()) -> str:
        """See `Format`, as the others."""
        return self.PROPOSE[type]

    def solve_prompt(self, task: Task) -> str:
        pairs = zip(task.inputs[: shown(task)], task.outputs, strict=False)
        return self.SOLVE[task.type].format(
            program=task.program,
            input="".join(task.inputs[:1]),
            output=task.outputs[0],
            pairs=self.BETWEEN.join(self.PAIR.format(input=i, output=o) for i, o in pairs),
            message=self.MESSAGE + task.message if task.message else "",
        )

    def gold_answer(self, task: Task) -> str | None:
        """None: there are many ways to write an answer, or many answers."""
        return None

    def max_new_tokens(self, type: str, phase: str) -> int:
        return self.TOKENS[type][phase == "solve"]


def shown(task: Task) -> int:
    """How many pairs of a task the solver sees where it is not told the program: the first half,
    rounded up. The others are hidden and decide."""
    return (len(task.inputs) + 1) // 2


def blocks(text: str) -> list[tuple[str, str]]:
    """Fenced blocks in order: name in small letters, content."""
    return [(name.lower(), body.strip("\n")) for name, body in _FENCE.findall(text)]


def blocks_named(name: str, text: str) -> list[str]:
    """What the fenced blocks of that name hold, in order."""
    return [body for other, body in blocks(text) if other == name]


def write_blocks(*written: tuple[str, str]) -> str:
    """Fenced blocks of (name, content)."""
    return "\n".join(f"```{name}\n{body}\n```" for name, body in written)


def with_references(prompt: str, references: Sequence[Task], what: str = "programs") -> str:
    """A chat prompt, and behind it tasks to differ from."""
    if not references:
        return prompt
    programs = write_blocks(*(("python", task.program) for task in references))
    return f"{prompt}\n\nThese {what} are known already; yours must differ clearly:\n{programs}"


def read_proposal(format: Format, type: str, completion: Completion) -> ParsedProposal | None:
    """The proposal, or None where the form is wrong or the token limit cut off the end."""
    return format.parse_proposal(type, completion.text) if completion.finished else None


def read_answer(format: Format, type: str, completion: Completion) -> str | None:
    """The answer, or None where the form is wrong or the token limit cut off the end."""
    return format.parse_answer(type, completion.text) if completion.finished else None
