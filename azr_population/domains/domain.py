"""A domain: the tasks that members set each other, and how they are judged.

A domain is a folder here and a line in `known.py`, or a class of yours anywhere:
`task.domain=mine.MyDomain`. Only `types`, `formats`, `judge` and `grade` are required.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from azr_population.config.schema import TaskConfig
from azr_population.domains.format import Format
from azr_population.domains.metric import Metric
from azr_population.domains.space import Space
from azr_population.domains.task import ParsedProposal, Task, texts_in
from azr_population.errors import UserError
from azr_population.referee import Reason, Referee
from azr_population.registry import Registry


class Verdict(NamedTuple):
    """The verdict on an answer."""

    solved: bool
    reason: str
    """In a word, such as `solved`, `wrong`, `timeout`."""


HELD_OUT_SHARE = 0.02

UNSTEADY = (Reason.NONDETERMINISTIC.value, Reason.MALFORMED.value)
"""Reasons of verdicts if the task's own answer is not always right: the task is invalid."""


class Domain(ABC):
    """A kind of tasks."""

    types: ClassVar[Mapping[str, str]]
    """Types of task by name, with what is asked of a solver in a few words. They are asked for in
    equal numbers, and advantages have a baseline for each."""
    formats: ClassVar[Registry[Callable[[], Format]]]
    """Prompt formats, by their names in `base.prompt_format`."""
    rules: ClassVar[tuple[str, ...]] = ()
    """Rules that refuse a task, by the names that `task.reject` takes."""
    usual_rules: ClassVar[tuple[str, ...] | None] = None
    """Rules that apply where `task.reject` is not given; None: all."""
    measures: ClassVar[tuple[Metric, ...]] = ()
    """The metrics that `measure` returns, a task's size first."""
    space: ClassVar[Space | None] = None
    """The space of problems in which coverage is counted; None: it is not."""
    marks: ClassVar[tuple[str, ...]] = ()
    """Special tokens that separate the parts of prompts and completions."""

    @abstractmethod
    def judge(
        self, proposals: Sequence[ParsedProposal], referee: Referee, rules: TaskConfig
    ) -> list[Task | str]:
        """For each proposal the task, or the reason for refusing it in a word.

        Only the referee runs what a model wrote.
        """

    @abstractmethod
    def grade(
        self, answered: Sequence[tuple[Task, Sequence[str]]], referee: Referee
    ) -> list[list[Verdict]]:
        """For each task the verdicts on these answers to it."""

    def answer(self, task: Task) -> str:
        """An answer that solves the task."""
        return task.outputs[0]

    def shown(self, task: Task) -> tuple[str, ...]:
        """The texts of the task that its solver's prompt holds."""
        return (task.program, *task.inputs[:1])

    def measure(self, program: str) -> dict[str, float]:
        """The `measures` of what a task is about, by name; empty where there are none."""
        return {}

    def fingerprint(self, program: str) -> Hashable:
        """Equal for programs that are copies of each other; None where there is none."""
        return program

    def copies_of(self, programs: Iterable[str]) -> Callable[[str], bool]:
        """A test whether a program is a copy of one of these, by its `fingerprint`."""
        fingerprints = set(map(self.fingerprint, programs)) - {None}
        return lambda program: self.fingerprint(program) in fingerprints

    def eval_tasks(self, per_type: int, seed: int, types: Sequence[str]) -> list[Task]:
        """Different held-out tasks of each type, the same for the same numbers. Raises UserError
        where there are none."""
        raise UserError("this task.domain has no eval tasks; set eval.every=0")

    def strata(self, per_type: int) -> list[str]:
        """Groups that the eval's tasks of a type are reported by, in order; `part/group` counts for
        `part` too. Empty: none."""
        return []

    def parts(self, task: Mapping[str, Any]) -> list[tuple[str, str]]:
        """A record of `tasks.jsonl` as people read it: program, calls and message by name."""
        pairs = zip(texts_in(task.get("inputs")), texts_in(task.get("outputs")), strict=False)
        calls = "\n".join(self.call(input, output) for input, output in pairs)
        texts = ("program", task.get("program")), ("calls", calls), ("message", task.get("message"))
        return [(kind, str(text)) for kind, text in texts if text]

    def call(self, input: str, output: str) -> str:
        """A pair of a task as people read it."""
        return f"{input} -> {output}" if input else output

    def format(self, name: str) -> Format:
        """The format that `base.prompt_format` names. Raises UserError."""
        return self.formats.find(name)()

    def resolve_types(self, types: Sequence[str] | None) -> list[str]:
        """The types that `task.types` names; None: all. Raises UserError."""
        chosen = list(self.types) if types is None else list(types)
        for name in chosen:
            _one_of("task.types", name, self.types)
        if not chosen:
            raise UserError(
                f"task.types is empty; name at least one of {', '.join(self.types)}",
                key="task.types",
            )
        if twice := [name for name in self.types if chosen.count(name) > 1]:
            raise UserError(
                f"task.types names {', '.join(twice)} more than once; each type has the same share "
                "of proposals",
                key="task.types",
            )
        return chosen

    def with_defaults(self, rules: TaskConfig, format: Format) -> TaskConfig:
        """With types and rules in place of what is not given: those of the base's prompts, else the
        domain's. Raises UserError: they are not the domain's."""
        for name in rules.reject or ():
            _one_of("task.reject", name, self.rules)
        usual = self.rules if self.usual_rules is None else self.usual_rules
        reject = usual if format.REJECT is None else format.REJECT
        return rules.model_copy(
            update={
                "types": self.resolve_types(format.TYPES if rules.types is None else rules.types),
                "reject": list(reject) if rules.reject is None else rules.reject,
            }
        )


def is_held_out(program: str) -> bool:
    """Whether it is reserved for evals and never trained on. A stable 2% of all texts."""
    digest = hashlib.sha256(program.encode()).digest()
    return int.from_bytes(digest[:4], "big") < HELD_OUT_SHARE * 2**32


def _one_of(key: str, value: str, choices: Iterable[str]) -> None:
    if value not in choices:
        raise UserError(
            f"{key}={value} is unknown; choose from {', '.join(sorted(choices)) or 'none'}",
            key=key,
        )
