"""How the nano base is asked: special tokens between program, arguments and value.

Pure functions of strings; the corpus that the base is pre-trained on is written with the same ones,
so that prompts and training documents cannot drift apart. The grammar of a document:

    propose   <PO> or <PI>   program<in>args
              <PF>           program<in>args, six times <in>args
    solve     <SO>program<in>args<out>               value
              <SI>program<out>value<in>              args
              <SF><in>args<out>value ... <code>      program

Left of the gap is the prompt, right of it the completion, which an end-of-sequence token ends.
"""

from collections.abc import Sequence
from typing import ClassVar

from azr_population.domains.code.task import Proposal, Task, TaskType, reference_answer, shown_pairs

IN, OUT, CODE = "<in>", "<out>", "<code>"
PROPOSE: dict[str, str] = dict(zip(TaskType, ("<PO>", "<PI>", "<PF>"), strict=True))
SOLVE: dict[str, str] = dict(zip(TaskType, ("<SO>", "<SI>", "<SF>"), strict=True))
MARKS = (*PROPOSE.values(), *SOLVE.values(), IN, OUT, CODE)
"""The marks that are single tokens of the nano tokenizer."""

CODE_F_INPUTS = 6
"""Inputs of a code_f proposal; the solver sees the first half with their outputs."""

_MAX_NEW_TOKENS: dict[tuple[str, str], int] = {
    ("propose", TaskType.CODE_O): 160,
    ("propose", TaskType.CODE_I): 160,
    ("propose", TaskType.CODE_F): 224,
    ("solve", TaskType.CODE_O): 48,
    ("solve", TaskType.CODE_I): 48,
    ("solve", TaskType.CODE_F): 128,
}


class NanoFormat:
    """Prompts for the nano base. `references` are not shown to it: its context is too short."""

    chat: ClassVar[bool] = False

    def propose_prompt(self, type: str, references: Sequence[Task] = ()) -> str:
        """One mark: the type of task that is wanted."""
        return PROPOSE[type]

    def parse_proposal(self, type: str, text: str) -> Proposal | None:
        """The program and its arguments, or None unless there are exactly as many as wanted.

        Inputs of code_f that repeat one another are dropped.
        """
        program, *inputs = text.split(IN)
        wanted = CODE_F_INPUTS if type == TaskType.CODE_F else 1
        if len(inputs) != wanted or not program.strip() or marked(text.replace(IN, "")):
            return None
        return Proposal(type, program, tuple(dict.fromkeys(text.strip() for text in inputs)))

    def solve_prompt(self, task: Task) -> str:
        """What the solver is given, up to where its answer begins."""
        mark = SOLVE[task.type]
        if task.type == TaskType.CODE_O:
            return f"{mark}{task.program}{IN}{task.inputs[0]}{OUT}"
        if task.type == TaskType.CODE_I:
            return f"{mark}{task.program}{OUT}{task.outputs[0]}{IN}"
        pairs = "".join(f"{IN}{arguments}{OUT}{value}" for arguments, value in shown_pairs(task))
        return f"{mark}{pairs}{CODE}"

    def parse_answer(self, type: str, text: str) -> str | None:
        """The answer as it stands, or None when it is empty or holds a mark."""
        if marked(text) or not text.strip():
            return None
        return text if type == TaskType.CODE_F else text.strip()

    def gold_answer(self, task: Task) -> str | None:
        """The output of code_o; the base has seen values as `repr` writes them and in no other way.

        Many inputs may give an output, and many programs.
        """
        return task.outputs[0] if task.type == TaskType.CODE_O else None

    def write_proposal(self, task: Task) -> str:
        return task.program + "".join(f"{IN}{arguments}" for arguments in task.inputs)

    def write_answer(self, task: Task) -> str:
        return reference_answer(task)

    def max_new_tokens(self, type: str, phase: str) -> int:
        """Longest useful completion in tokens; `phase` is `propose` or `solve`."""
        return _MAX_NEW_TOKENS[phase, type]


def marked(text: str) -> bool:
    """Whether a mark stands in it."""
    return any(mark in text for mark in MARKS)
