"""How a model is asked for puzzles and for answers: rules, or a sentence for a warmed-up base."""

from collections.abc import Callable, Sequence
from typing import ClassVar

from azr_population.domains.code.nano_format import IN, OUT, marked
from azr_population.domains.format import Format, blocks, known_already
from azr_population.domains.task import Proposal, Task
from azr_population.registry import Registry


class ChatPuzzles:
    """Prompts for chat models. Blocks: python, answer."""

    chat: ClassVar[bool] = True

    def propose_prompt(self, type: str, references: Sequence[Task] = ()) -> str:
        """See `azr_population.domains.format.Format`, as the others."""
        parts = [
            "Design a new and challenging puzzle: a Python function sat and a value for which it "
            "is True. Finding such a value from the function alone should take careful reasoning, "
            "as an equation, a divisibility or a sum of digits does.",
            "Rules:\n"
            "- def sat(x, ...): every parameter but the first has a default. It returns True or "
            "False, and is deterministic and quick.\n"
            "- No small number, empty or one-element value, and no value that is written in the "
            "function may solve it.\n"
            "- No input/output, no randomness, no dates, no function named f.",
            "Give the function in a ```python block, and a value of x that solves it, as a Python "
            "literal, in an ```answer block.",
        ]
        return "\n\n".join([*parts, *known_already(references, "puzzles")])

    def parse_proposal(self, type: str, text: str) -> Proposal | None:
        """The last block of each kind counts."""
        program, answer = _last(text, "python"), _last(text, "answer")
        return None if program is None or answer is None else Proposal(type, program, (answer,))

    def solve_prompt(self, task: Task) -> str:
        return (
            f"Find a value of x for which sat(x) is True.\n\n```python\n{task.program}\n```\n\n"
            "Think step by step, then give the value as a Python literal in an ```answer block."
        )

    def parse_answer(self, type: str, text: str) -> str | None:
        return _last(text, "answer")

    def gold_answer(self, task: Task) -> str | None:
        """None: many values may solve a puzzle."""
        return None

    def write_proposal(self, task: Task) -> str:
        return f"```python\n{task.program}\n```\n{self.write_answer(task)}"

    def write_answer(self, task: Task) -> str:
        return f"```answer\n{task.inputs[0]}\n```"

    def max_new_tokens(self, type: str, phase: str) -> int:
        return 2048


class ShortPuzzles(ChatPuzzles):
    """Prompts of a sentence, for a base that was warmed up on them; references are not shown."""

    def propose_prompt(self, type: str, references: Sequence[Task] = ()) -> str:
        return "Write a Python function sat and an answer x for which sat(x) is True."

    def solve_prompt(self, task: Task) -> str:
        return f"```python\n{task.program}\n```\nFind x for which sat(x) is True."

    def max_new_tokens(self, type: str, phase: str) -> int:
        return 192 if phase == "propose" else 48


class NanoPuzzles:
    """The nano base's marks: a puzzle is an input to find for the output True. The base that ships
    has not seen any; its grammar has no `sat`."""

    chat: ClassVar[bool] = False

    def propose_prompt(self, type: str, references: Sequence[Task] = ()) -> str:
        return f"<PI>{_HEAD}"

    def parse_proposal(self, type: str, text: str) -> Proposal | None:
        rest, mark, answer = text.partition(IN)
        if not mark or not answer.strip() or marked(rest + answer):
            return None
        return Proposal(type, _HEAD + rest, (answer.strip(),))

    def solve_prompt(self, task: Task) -> str:
        return f"<SI>{task.program}{OUT}True{IN}"

    def parse_answer(self, type: str, text: str) -> str | None:
        return None if marked(text) or not text.strip() else text.strip()

    def gold_answer(self, task: Task) -> str | None:
        return None

    def write_proposal(self, task: Task) -> str:
        return f"{task.program.removeprefix(_HEAD)}{IN}{task.inputs[0]}"

    def write_answer(self, task: Task) -> str:
        return task.inputs[0]

    def max_new_tokens(self, type: str, phase: str) -> int:
        return 160 if phase == "propose" else 48


_HEAD = "def sat("


def _last(text: str, block: str) -> str | None:
    found = [body for name, body in blocks(text) if name == block]
    return found[-1] if found and found[-1].strip() else None


FORMATS: Registry[Callable[[], Format]] = Registry("base.prompt_format")
FORMATS.register("chat", "rules and fenced blocks")(ChatPuzzles)
FORMATS.register("short", "a sentence, for bases that were warmed up on it")(ShortPuzzles)
FORMATS.register("nano", "marks; for a base that was trained on them")(NanoPuzzles)
