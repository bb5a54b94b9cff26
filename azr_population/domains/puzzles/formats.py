"""How a model is asked for puzzles and for answers: rules, or a sentence for a warmed-up base."""

from collections.abc import Callable, Mapping
from typing import ClassVar

from azr_population.domains.code.formats import ChatFormat
from azr_population.domains.format import Format
from azr_population.domains.puzzles.grammar import PUZZLE
from azr_population.domains.task import ParsedProposal
from azr_population.registry import Registry


class ChatPuzzles(ChatFormat):
    """Prompts for chat models. Blocks: python, answer."""

    INPUT = "answer"
    ANSWER: ClassVar[Mapping[str, str]] = {PUZZLE: "answer"}
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
        """See `Format`; a blank answer block is none."""
        proposal = super().parse_proposal(type, text)
        return proposal if proposal and all(map(str.strip, proposal.inputs)) else None

    def parse_answer(self, type: str, text: str) -> str | None:
        """See `Format`; a blank answer block is none."""
        answer = super().parse_answer(type, text)
        return answer if answer and answer.strip() else None


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


FORMATS: Registry[Callable[[], Format]] = Registry("base.prompt_format")
FORMATS.register("chat", "rules and fenced blocks")(ChatPuzzles)
FORMATS.register("short", "a sentence, for bases that were warmed up on it")(ShortPuzzles)
