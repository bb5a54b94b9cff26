"""Instructions in English and fenced blocks, for instruction-tuned models of any size.

The wording is ours; what is asked for follows AZR's tasks (AZR, section 3.3): code_f hands several
inputs and a message to the solver. Not covered: AZR's own prompts, which AZR runs keep.
"""

from collections.abc import Sequence
from typing import ClassVar

from azr_population.domains.code.task import Proposal, Task, TaskType, reference_answer, shown_pairs
from azr_population.domains.format import blocks, known_already

_RULES = """Rules:
- The entry point is a function named f; helper functions and classes are allowed.
- f is deterministic and quick, takes at least one argument and returns a value that is a Python
  literal (numbers, strings, lists, tuples, dicts, sets, booleans, None).
- No input/output, no randomness, no dates, no modules outside the standard library's pure ones."""

_ASK: dict[str, str] = {
    TaskType.CODE_O: "Predicting the output from the program and the input should take careful "
    "step-by-step reasoning.",
    TaskType.CODE_I: "Finding an input that gives the output, from the program and the output "
    "alone, should take careful reasoning.",
    TaskType.CODE_F: "Writing the program, from half of its input/output pairs and a message "
    "alone, should take careful reasoning.",
}

CODE_F_INPUTS = 6
_ANSWER_BLOCK: dict[str, str] = {
    TaskType.CODE_O: "output",
    TaskType.CODE_I: "input",
    TaskType.CODE_F: "python",
}


class ChatFormat:
    """Prompts for chat models. Blocks: python, input (one per input), output, message."""

    chat: ClassVar[bool] = True

    def propose_prompt(self, type: str, references: Sequence[Task] = ()) -> str:
        inputs = (
            f"{CODE_F_INPUTS} different inputs, each in an ```input block of its own, and a short "
            "hint in a ```message block"
            if type == TaskType.CODE_F
            else "one input in an ```input block"
        )
        parts = [
            f"Design a new and challenging reasoning task about a Python program. {_ASK[type]}",
            _RULES,
            f"Give the program in a ```python block, and {inputs}. An input is the list of "
            "arguments as they stand between the parentheses of the call, e.g. [1, 2], 'ab'",
        ]
        return "\n\n".join([*parts, *known_already(references)])

    def parse_proposal(self, type: str, text: str) -> Proposal | None:
        """See `Format`; the last python block counts, repeated inputs are dropped."""
        found = blocks(text)
        programs = [body for name, body in found if name == "python"]
        inputs = tuple(body for name, body in found if name == "input")
        messages = [body for name, body in found if name == "message"]
        wanted = CODE_F_INPUTS if type == TaskType.CODE_F else 1
        if not programs or len(inputs) < wanted:
            return None
        return Proposal(
            type=type,
            program=programs[-1],
            inputs=tuple(dict.fromkeys(inputs[:wanted]))
            if type == TaskType.CODE_F
            else inputs[-1:],
            message=messages[-1] if messages else "",
        )

    def solve_prompt(self, task: Task) -> str:
        program = f"```python\n{task.program}\n```"
        if task.type == TaskType.CODE_O:
            return (
                f"What does f return for this input?\n\n{program}\n\n```input\n{task.inputs[0]}\n"
                "```\n\nThink step by step, then give the value as a Python literal in an "
                "```output block."
            )
        if task.type == TaskType.CODE_I:
            return (
                f"Find an input for which f returns this output.\n\n{program}\n\n```output\n"
                f"{task.outputs[0]}\n```\n\nThink step by step, then give the arguments as Python "
                "literals, as they stand between the parentheses of the call, in an ```input block."
            )
        pairs = "\n".join(
            f"```input\n{arguments}\n```\n```output\n{value}\n```"
            for arguments, value in shown_pairs(task)
        )
        message = f"\n\nMessage: {task.message}" if task.message else ""
        return (
            f"Write the function f that gives these outputs for these inputs.\n\n{pairs}{message}"
            "\n\nIt will be tried on other inputs too. Think step by step, then give the whole "
            "program in a ```python block."
        )

    def parse_answer(self, type: str, text: str) -> str | None:
        """See `Format`; the last fitting block counts."""
        answers = [body for name, body in blocks(text) if name == _ANSWER_BLOCK[type]]
        return answers[-1] if answers else None

    def gold_answer(self, task: Task) -> str | None:
        """None: words around an answer, and its layout, are free."""
        return None

    def write_proposal(self, task: Task) -> str:
        written = [("python", task.program), *(("input", text) for text in task.inputs)]
        written += [("message", task.message)] if task.message else []
        return "\n".join(f"```{name}\n{body}\n```" for name, body in written)

    def write_answer(self, task: Task) -> str:
        return f"```{_ANSWER_BLOCK[task.type]}\n{reference_answer(task)}\n```"

    def max_new_tokens(self, type: str, phase: str) -> int:
        """See `Format`; room for a chain of thought."""
        return 2048
