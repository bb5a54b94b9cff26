"""One sentence and a program: prompts for small models that were warmed up on them.

For a base whose weights know the form of an answer already (`azr-population base`), so that
neither rules nor examples have to be read again in every prompt. Completions are the blocks of
`ChatFormat`. References are not shown.
"""

from collections.abc import Sequence

from azr_population.domains.code.chat_format import CODE_F_INPUTS, ChatFormat
from azr_population.domains.code.task import Task, TaskType, shown_pairs

_PROPOSE: dict[str, str] = {
    TaskType.CODE_O: "Write a Python function f and an input whose output is hard to predict.",
    TaskType.CODE_I: (
        "Write a Python function f and an input that is hard to find from its output."
    ),
    TaskType.CODE_F: (
        f"Write a Python function f and {CODE_F_INPUTS} inputs that show what it does."
    ),
}

_MAX_NEW_TOKENS: dict[tuple[str, str], int] = {
    ("propose", TaskType.CODE_O): 256,
    ("propose", TaskType.CODE_I): 256,
    ("propose", TaskType.CODE_F): 320,
    ("solve", TaskType.CODE_O): 64,
    ("solve", TaskType.CODE_I): 64,
    ("solve", TaskType.CODE_F): 192,
}


class ShortFormat(ChatFormat):
    """Prompts of a sentence. A solver reads the program first and what is asked last, so that
    questions about one program share most of their prompts."""

    def propose_prompt(self, type: str, references: Sequence[Task] = ()) -> str:
        return _PROPOSE[type]

    def solve_prompt(self, task: Task) -> str:
        program = f"```python\n{task.program}\n```\n"
        if task.type == TaskType.CODE_O:
            return f"{program}What is f({task.inputs[0]})?"
        if task.type == TaskType.CODE_I:
            return f"{program}Find an input for which f returns {task.outputs[0]}"
        pairs = "\n".join(f"f({arguments}) == {value}" for arguments, value in shown_pairs(task))
        message = f"\n{task.message}" if task.message else ""
        return f"Write a Python function f with\n{pairs}{message}"

    def max_new_tokens(self, type: str, phase: str) -> int:
        return _MAX_NEW_TOKENS[phase, type]
