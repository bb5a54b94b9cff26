"""How a model is asked for puzzles and for answers: rules, or a sentence for a warmed-up base."""

from collections.abc import Callable, Mapping
from typing import ClassVar

from azr_population.domains.code.formats import IN, OUT, marked
from azr_population.domains.format import Format, blocks_named, write_blocks
from azr_population.domains.puzzles.grammar import PUZZLE
from azr_population.domains.task import ParsedProposal, Task
from azr_population.registry import Registry


class ChatPuzzles(Format):
    """Prompts for chat models. Blocks: python, answer."""

    chat: ClassVar[bool] = True
    REFERENCES = "puzzles"
    PROPOSE: ClassVar[Mapping[str, str]] = {
        PUZZLE: "Design a new and challenging puzzle: a Python function sat and a value for which "
        "it is True. Finding such a value from the function alone should take careful reasoning, "
        "as an equation, a divisibility or a sum of digits does.\n\nRules:\n"
        "- def sat(x, ...): every parameter but the first has a default. It returns True or False, "
        "and is deterministic and quick.\n"
        "- No small number, empty or one-element value, and no value that is written in the "
        "function may solve it.\n"
        "- No input/output, no randomness, no dates, no function named f.\n\n"
        "Give the function in a ```python block, and a value of x that solves it, as a Python "
        "literal, in an ```answer block."
    }
    SOLVE: ClassVar[Mapping[str, str]] = {
        PUZZLE: "Find a value of x for which sat(x) is True.\n\n```python\n{program}\n```\n\nThink "
        "step by step, then give the value as a Python literal in an ```answer block."
    }
    TOKENS: ClassVar[Mapping[str, tuple[int, int]]] = {PUZZLE: (2048, 2048)}

    def parse_proposal(self, type: str, text: str) -> ParsedProposal | None:
        """The last block of each kind counts."""
        program, answer = _last(text, "python"), _last(text, "answer")
        return (
            None if program is None or answer is None else ParsedProposal(type, program, (answer,))
        )

    def parse_answer(self, type: str, text: str) -> str | None:
        return _last(text, "answer")

    def write_proposal(self, task: Task) -> str:
        return write_blocks(("python", task.program), ("answer", task.inputs[0]))

    def write_answer(self, task: Task) -> str:
        return write_blocks(("answer", task.inputs[0]))


class ShortPuzzles(ChatPuzzles):
    """Prompts of a sentence, for a base that was warmed up on them; references are not shown."""

    REFERENCES = ""
    PROPOSE: ClassVar[Mapping[str, str]] = {
        PUZZLE: "Write a Python function sat and an answer x for which sat(x) is True."
    }
    SOLVE: ClassVar[Mapping[str, str]] = {
        PUZZLE: "```python\n{program}\n```\nFind x for which sat(x) is True."
    }
    TOKENS: ClassVar[Mapping[str, tuple[int, int]]] = {PUZZLE: (192, 48)}


_HEAD = "def sat("


class NanoPuzzles(Format):
    """The nano base's marks: a puzzle is an input to find for the output True. The base that ships
    has not seen any; its grammar has no `sat`."""

    chat: ClassVar[bool] = False
    PROPOSE: ClassVar[Mapping[str, str]] = {PUZZLE: f"<PI>{_HEAD}"}
    SOLVE: ClassVar[Mapping[str, str]] = {PUZZLE: f"<SI>{{program}}{OUT}True{IN}"}
    TOKENS: ClassVar[Mapping[str, tuple[int, int]]] = {PUZZLE: (160, 48)}

    def parse_proposal(self, type: str, text: str) -> ParsedProposal | None:
        rest, mark, answer = text.partition(IN)
        if not mark or not answer.strip() or marked(rest + answer):
            return None
        return ParsedProposal(type, _HEAD + rest, (answer.strip(),))

    def parse_answer(self, type: str, text: str) -> str | None:
        return None if marked(text) or not text.strip() else text.strip()

    def write_proposal(self, task: Task) -> str:
        return f"{task.program.removeprefix(_HEAD)}{IN}{task.inputs[0]}"

    def write_answer(self, task: Task) -> str:
        return task.inputs[0]


def _last(text: str, block: str) -> str | None:
    bodies = blocks_named(block, text)
    return bodies[-1] if bodies and bodies[-1].strip() else None


FORMATS: Registry[Callable[[], Format]] = Registry("base.prompt_format")
FORMATS.register("chat", "rules and fenced blocks")(ChatPuzzles)
FORMATS.register("short", "a sentence, for bases that were warmed up on it")(ShortPuzzles)
FORMATS.register("nano", "marks; for a base that was trained on them")(NanoPuzzles)
