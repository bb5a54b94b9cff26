"""The world as a domain of a run, with the prompts of its base.

    PYTHONPATH=tools/bases azr-population train base=nano base.path=FOLDER \
        task=code_o task.domain=chains.domain.Chains
"""

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import ClassVar

from azr_population.config.schema import TaskConfig
from azr_population.domains.code.domain import Code
from azr_population.domains.code.formats import CODE_F_INPUTS, NanoFormat
from azr_population.domains.code.task_types import Task, TaskType
from azr_population.domains.domain import is_held_out
from azr_population.domains.format import Format
from azr_population.domains.task import ParsedProposal
from azr_population.referee import Referee
from azr_population.registry import Registry

from . import world

DEPTHS = 12
"""Statements of the longest program of an eval."""
_O, _I, _F = TaskType


class ChainFormat(NanoFormat):
    """The nano base's prompts; an answer may begin with a trace, and its last line counts."""

    TOKENS: ClassVar[Mapping[str, tuple[int, int]]] = {
        _O: (144, 160), _I: (144, 160), _F: (192, 128),
    }  # fmt: skip

    def parse_answer(self, type: str, text: str) -> str | None:
        """See `Format`."""
        answer = super().parse_answer(type, text)
        return answer if answer is None or type == _F else answer.rsplit("\n", 1)[-1]

    def write_answer(self, task: Task) -> str:
        """See `Format`; with a trace."""
        if task.type == _O:
            return world.trace(task.program, task.inputs[0])
        if task.type == _I:
            return world.trace_back(task.program, task.outputs[0])
        return super().write_answer(task)

    def gold_answer(self, task: Task) -> str | None:
        """See `Format`: an answer of code_o with another trace than ours is rare."""
        return self.write_answer(task) if task.type == _O else None


FORMATS: Registry[Callable[[], Format]] = Registry("base.prompt_format")
FORMATS.register("nano", "special tokens, for the base of this world")(ChainFormat)


class Chains(Code):
    """Code tasks about chains alone: everything else is refused, so that a teacher finds no other
    way to write a hard task than a long one."""

    formats = FORMATS

    def judge(
        self, proposals: Sequence[ParsedProposal], referee: Referee, rules: TaskConfig
    ) -> list[Task | str]:
        """See `Code`."""
        known = [
            world.read(p.program) is not None and None not in map(world.read_digits, p.inputs)
            for p in proposals
        ]
        chains = [p for p, is_chain in zip(proposals, known, strict=True) if is_chain]
        verdicts = iter(super().judge(chains, referee, rules))
        return [next(verdicts) if is_chain else "no_chain" for is_chain in known]

    def eval_tasks(self, per_type: int, seed: int, types: Sequence[str]) -> list[Task]:
        """As many tasks of each depth, the shallow ones first."""
        tasks = []
        for type in types:
            rng = Random(f"exam {seed} {type}")
            tasks += [draw_tasks(rng, type, depth, 1, True)[0] for depth in _depths(per_type)]
        return tasks

    def strata(self, per_type: int) -> list[str]:
        """The depth of each task."""
        return [f"{depth:02} statements" for depth in _depths(per_type)]


def _depths(count: int) -> list[int]:
    return [1 + number * DEPTHS // count for number in range(count)]


def draw_tasks(
    rng: Random, type: str, depth: int, inputs: int, held_out: bool = False
) -> list[Task]:
    """Valid tasks about one program of this depth, one for each of its inputs; of code_f one."""
    while True:
        chain = world.draw_chain(rng, depth)
        program = world.source(chain)
        if is_held_out(program) is not held_out:
            continue
        pairs = world.draw_pairs(rng, chain, CODE_F_INPUTS if type == _F else inputs)
        if pairs and type == _F:
            return [Task(type, program, tuple(x for x, _ in pairs), tuple(y for _, y in pairs))]
        if pairs:
            return [Task(type, program, (x,), (y,)) for x, y in pairs]
