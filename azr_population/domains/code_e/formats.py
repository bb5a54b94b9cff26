"""How a model is asked for an exception; for AZR's other types as in `code`."""

from collections.abc import Callable, Sequence

from azr_population.domains.code.chat_format import ChatFormat
from azr_population.domains.code.nano_format import CODE, IN, OUT, NanoFormat
from azr_population.domains.code.short_format import ShortFormat
from azr_population.domains.format import Format, known_already
from azr_population.domains.task import Task
from azr_population.registry import Registry

CODE_E = "code_e"


class ChatWithE(ChatFormat):
    """Rules and fenced blocks; the name of the exception comes in an output block, as in AZR."""

    def propose_prompt(self, type: str, references: Sequence[Task] = ()) -> str:
        """See `azr_population.domains.format.Format`, as the others."""
        if type != CODE_E:
            return super().propose_prompt(type, references)
        parts = [
            "Design a new and challenging reasoning task about a Python program. Finding out which "
            "exception the program raises on the input, if any, should take careful step-by-step "
            "reasoning.",
            "Rules:\n"
            "- The entry point is a function named f; exception classes of your own are allowed.\n"
            "- f is deterministic and quick, takes at least one argument and either returns a "
            "value or raises.\n"
            "- No input/output, no randomness, no dates.",
            "Give the program in a ```python block, and one input in an ```input block. An input "
            "is the list of arguments as they stand between the parentheses of the call, e.g. "
            "[1, 2], 'ab'",
        ]
        return "\n\n".join([*parts, *known_already(references)])

    def solve_prompt(self, task: Task) -> str:
        if task.type != CODE_E:
            return super().solve_prompt(task)
        return (
            f"Which exception does f raise for this input?\n\n```python\n{task.program}\n```\n\n"
            f"```input\n{task.inputs[0]}\n```\n\nThink step by step, then give the exception's "
            "name, or NoError if there is none, in an ```output block."
        )

    def parse_answer(self, type: str, text: str) -> str | None:
        return super().parse_answer("code_o" if type == CODE_E else type, text)

    def write_answer(self, task: Task) -> str:
        if task.type != CODE_E:
            return super().write_answer(task)
        return f"```output\n{task.outputs[0]}\n```"


class ShortWithE(ShortFormat, ChatWithE):
    """A sentence, for a base that was warmed up on it."""

    def propose_prompt(self, type: str, references: Sequence[Task] = ()) -> str:
        if type != CODE_E:
            return super().propose_prompt(type, references)
        return "Write a Python function f and an input. Which exception f raises is hard to tell."

    def solve_prompt(self, task: Task) -> str:
        if task.type != CODE_E:
            return super().solve_prompt(task)
        return (
            f"```python\n{task.program}\n```\nWhich exception does f({task.inputs[0]}) raise? "
            "NoError if none."
        )

    def max_new_tokens(self, type: str, phase: str) -> int:
        if type != CODE_E:
            return super().max_new_tokens(type, phase)
        return 192 if phase == "propose" else 24


class NanoWithE(NanoFormat):
    """As for an output, behind a further mark. The base that ships has not seen it."""

    def propose_prompt(self, type: str, references: Sequence[Task] = ()) -> str:
        return f"<PO>{CODE}" if type == CODE_E else super().propose_prompt(type)

    def solve_prompt(self, task: Task) -> str:
        if task.type != CODE_E:
            return super().solve_prompt(task)
        return f"<SO>{CODE}{task.program}{IN}{task.inputs[0]}{OUT}"

    def gold_answer(self, task: Task) -> str | None:
        """The name, which has one spelling."""
        return task.outputs[0] if task.type == CODE_E else super().gold_answer(task)

    def write_answer(self, task: Task) -> str:
        return task.outputs[0] if task.type == CODE_E else super().write_answer(task)

    def max_new_tokens(self, type: str, phase: str) -> int:
        return super().max_new_tokens("code_o" if type == CODE_E else type, phase)


FORMATS: Registry[Callable[[], Format]] = Registry("base.prompt_format")
FORMATS.register("chat", "instructions and fenced blocks")(ChatWithE)
FORMATS.register("short", "a sentence, for bases that were warmed up on it")(ShortWithE)
FORMATS.register("nano", "marks; for a base that was trained on them")(NanoWithE)
