"""Prompt formats of code tasks, by name: the `base.prompt_format` of a run.

The words are ours; what is asked for follows AZR's tasks (AZR, section 3.3): code_f hands several
inputs and a message to the solver. AZR runs keep AZR's own prompts.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from azr_population.domains.code import chains
from azr_population.domains.code.source import distinct
from azr_population.domains.code.task_types import (
    ParsedProposal,
    Task,
    TaskType,
    reference_answer,
)
from azr_population.domains.format import (
    Format,
    blocks_named,
    write_blocks,
)
from azr_population.errors import UserError
from azr_population.files import read_json
from azr_population.registry import Registry

_O, _I, _F = TaskType
CODE_F_INPUTS = 6
"""Inputs of a code_f proposal; the solver sees the first half with their outputs."""


def _ask(why: str, *rules: str, inputs: str = "one input in an ```input block") -> str:
    """The prompt for a proposal."""
    return (
        f"Design a new and challenging reasoning task about a Python program. {why}\n\nRules:\n"
        + "\n".join(f"- {rule}" for rule in rules)
        + f"\n\nGive the program in a ```python block, and {inputs}. An input is the list of "
        "arguments as they stand between the parentheses of the call, e.g. [1, 2], 'ab'"
    )


_RULES = (
    "The entry point is a function named f; helper functions and classes are allowed.",
    "f is deterministic and quick, takes at least one argument and returns a value that is a "
    "Python\n  literal (numbers, strings, lists, tuples, dicts, sets, booleans, None).",
    "No input/output, no randomness, no dates, no modules outside the standard library's pure "
    "ones.",
)


class ChatFormat(Format):
    """Prompts for chat models: rules, and fenced blocks: python, input (one per input), output,
    message."""

    chat: ClassVar[bool] = True
    INPUT: ClassVar[str] = "input"
    """The block of an input in a proposal."""
    ANSWER: ClassVar[Mapping[str, str]] = {
        _O: "output", _I: "input", _F: "python",
    }  # fmt: skip
    """The block of an answer."""
    EXAMPLES_NOUN = "programs"
    PROPOSE: ClassVar[Mapping[str, str]] = {
        _O: _ask(
            "Predicting the output from the program and the input should take careful "
            "step-by-step reasoning.",
            *_RULES,
        ),
        _I: _ask(
            "Finding an input that gives the output, from the program and the output alone, "
            "should take careful reasoning.",
            *_RULES,
        ),
        _F: _ask(
            "Writing the program, from half of its input/output pairs and a message alone, should "
            "take careful reasoning.",
            *_RULES,
            inputs=f"{CODE_F_INPUTS} different inputs, each in an ```input block of its own, and a "
            "short hint in a ```message block",
        ),
    }
    SOLVE: ClassVar[Mapping[str, str]] = {
        _O: "What does f return for this input?\n\n```python\n{program}\n```\n\n```input\n{input}\n"
        "```\n\nThink step by step, then give the value as a Python literal in an ```output block.",
        _I: "Find an input for which f returns this output.\n\n```python\n{program}\n```\n\n"
        "```output\n{output}\n```\n\nThink step by step, then give the arguments as Python "
        "literals, as they stand between the parentheses of the call, in an ```input block.",
        _F: "Write the function f that gives these outputs for these inputs.\n\n{pairs}{message}"
        "\n\nIt will be tried on other inputs too. Think step by step, then give the whole program "
        "in a ```python block.",
    }
    PAIR = "```input\n{input}\n```\n```output\n{output}\n```"
    BETWEEN = "\n"
    MESSAGE = "\n\nMessage: "
    TOKENS: ClassVar[Mapping[str, tuple[int, int]]] = dict.fromkeys(TaskType, (2048, 2048))
    """Room for a chain of thought."""

    def parse_proposal(self, type: str, text: str) -> ParsedProposal | None:
        """See `Format`; the last python block counts, repeated inputs are dropped."""
        programs, inputs, messages = (
            blocks_named(name, text) for name in ("python", self.INPUT, "message")
        )
        count = CODE_F_INPUTS if type == _F else 1
        if not programs or len(inputs) < count:
            return None
        inputs = distinct(inputs[:count]) if type == _F else inputs[-1:]
        return ParsedProposal(type, programs[-1], tuple(inputs), messages[-1] if messages else "")

    def parse_answer(self, type: str, text: str) -> str | None:
        """See `Format`; the last fitting block counts."""
        answers = blocks_named(self.ANSWER[type], text)
        return answers[-1] if answers else None

    def write_proposal(self, task: Task) -> str:
        message = [("message", task.message)] if task.message else []
        inputs = ((self.INPUT, text) for text in task.inputs)
        return write_blocks(("python", task.program), *inputs, *message)

    def write_answer(self, task: Task) -> str:
        return write_blocks((self.ANSWER[task.type], reference_answer(task)))


class ShortFormat(ChatFormat):
    """Prompts of a sentence, for a base that was warmed up on them (`tools/bases`), so that
    neither rules nor examples have to be read again; references are not shown. A solver reads the
    program first and what is asked last, so that questions about one program share most of their
    prompts."""

    EXAMPLES_NOUN = ""
    PROPOSE: ClassVar[Mapping[str, str]] = {
        _O: "Write a Python function f and an input whose output is hard to predict.",
        _I: "Write a Python function f and an input that is hard to find from its output.",
        _F: f"Write a Python function f and {CODE_F_INPUTS} inputs that show what it does.",
    }
    SOLVE: ClassVar[Mapping[str, str]] = {
        _O: "```python\n{program}\n```\nWhat is f({input})?",
        _I: "```python\n{program}\n```\nFind an input for which f returns {output}",
        _F: "Write a Python function f with\n{pairs}{message}",
    }
    PAIR = "f({input}) == {output}"
    MESSAGE = "\n"
    TOKENS: ClassVar[Mapping[str, tuple[int, int]]] = {
        _O: (256, 64), _I: (256, 64), _F: (320, 192),
    }  # fmt: skip


IN, OUT, CODE = "<in>", "<out>", "<code>"
PROPOSE: dict[str, str] = {_O: "<PO>", _I: "<PI>", _F: "<PF>"}
SOLVE: dict[str, str] = {_O: "<SO>", _I: "<SI>", _F: "<SF>"}
MARKS = (*PROPOSE.values(), *SOLVE.values(), IN, OUT, CODE)
"""The marks that are single tokens of the nano tokenizer."""


class NanoFormat(Format):
    """The nano base's prompts: special tokens between program, arguments and value.

    The corpus that the base is pre-trained on is written with the same functions, so that prompts
    and training documents cannot drift apart. The grammar of a document:

        propose   <PO> or <PI>   program<in>args
                  <PF>           program<in>args, six times <in>args
        solve     <SO>program<in>args<out>               trace, value
                  <SI>program<out>value<in>              trace, args
                  <SF><in>args<out>value ... <code>      program

    Left of the gap is the prompt, right of it the completion, which an end-of-sequence token ends.
    A trace has a line for each statement, with its variable and value; only the last line of an
    answer counts. `references` are not shown: the context is too short.
    """

    chat: ClassVar[bool] = False
    TYPES = (str(_O),)
    """The base writes all, but solves code_i up to four statements only."""
    REJECT = ("identity", "no_chain")
    """Only the number of statements makes a task hard: a teacher finds no other way."""
    PROPOSE: ClassVar[Mapping[str, str]] = PROPOSE
    SOLVE: ClassVar[Mapping[str, str]] = {
        _O: f"<SO>{{program}}{IN}{{input}}{OUT}",
        _I: f"<SI>{{program}}{OUT}{{output}}{IN}",
        _F: f"<SF>{{pairs}}{CODE}",
    }
    PAIR = f"{IN}{{input}}{OUT}{{output}}"
    TOKENS: ClassVar[Mapping[str, tuple[int, int]]] = {
        _O: (144, 160), _I: (144, 160), _F: (192, 128),
    }  # fmt: skip

    def parse_proposal(self, type: str, text: str) -> ParsedProposal | None:
        """The program and its arguments, or None unless there are exactly as many as are asked for.

        Inputs of code_f that repeat one another are dropped.
        """
        program, *inputs = text.split(IN)
        count = CODE_F_INPUTS if type == _F else 1
        if len(inputs) != count or not program.strip() or marked(text.replace(IN, "")):
            return None
        return ParsedProposal(type, program, tuple(dict.fromkeys(text.strip() for text in inputs)))

    def parse_answer(self, type: str, text: str) -> str | None:
        """The program as it stands, or the last line; None when it is empty or holds a mark."""
        if marked(text) or not text.strip():
            return None
        return text if type == _F else text.strip().rsplit("\n", 1)[-1]

    def gold_answer(self, task: Task) -> str | None:
        """The trace and the output of code_o: that the base finds the value by another trace is
        rare. Many inputs may give an output, and many programs."""
        return self.write_answer(task) if task.type == _O else None

    def write_proposal(self, task: Task) -> str:
        return IN.join((task.program, *task.inputs))

    def write_answer(self, task: Task) -> str:
        """See `Format`; with a trace where the program is a chain."""
        traced = None
        if task.type == _O:
            traced = chains.trace(task.program, task.inputs[0])
        elif task.type == _I:
            traced = chains.trace_back(task.program, task.outputs[0])
        return traced or reference_answer(task)


def marked(text: str) -> bool:
    """Whether a mark stands in it."""
    return any(mark in text for mark in MARKS)


FORMATS: Registry[Callable[[], Format]] = Registry("base.prompt_format")
"""Name -> makes a format."""
FORMATS.register("nano", "special tokens, for the base that ships")(NanoFormat)
FORMATS.register("chat", "AZR's prompts: instructions and fenced blocks")(ChatFormat)
FORMATS.register("short", "a sentence, for bases that were warmed up on it")(ShortFormat)

WARMUP_LOG = "warmup.json"
"""The file with settings and figures that a warm-up leaves in its base's folder."""


def base_format(folder: str | Path, tokenizer: Any) -> str:
    """The name in `FORMATS` that a base was made for: the warm-up's; else `nano` where the marks of
    its prompts are single tokens; else `chat`. Raises UserError: the base was warmed up on prompts
    that have no name here."""
    log = Path(folder) / WARMUP_LOG
    if not log.is_file():
        marks = tokenizer(list(MARKS), add_special_tokens=False)["input_ids"]
        return "nano" if all(len(ids) == 1 for ids in marks) else "chat"
    names = list(FORMATS)
    try:
        name = read_json(log)["settings"]["format"]
    except (KeyError, TypeError):
        name = None
    if name not in names:
        raise UserError(
            f"{log}: the base was warmed up on the format {name!r}, which is unknown here; put "
            f"one of these in its place: {', '.join(names)}"
        )
    return str(name)
