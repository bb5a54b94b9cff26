"""What bases are trained on: tasks about chains to propose and to solve, as a run has them.

Programs that are held out for the eval are left out.
"""

from collections.abc import Iterator, Sequence
from random import Random
from typing import NamedTuple

from azr_population.domains.code.chain_tasks import draw_tasks
from azr_population.domains.code.task_types import Task, TaskType
from azr_population.domains.format import Format


class Kind(NamedTuple):
    """A kind of document."""

    phase: str
    """propose or solve."""
    type: TaskType
    share: float
    depths: tuple[float, ...]
    """Shares of programs of 1, 2, ... statements."""
    inputs: int = 1
    """Most inputs of one program."""


def falling(ratio: float, depths: int, total: float = 1.0) -> tuple[float, ...]:
    """Shares of this sum, each `ratio` times the one before."""
    shares = [ratio**n for n in range(depths)]
    return tuple(total * share / sum(shares) for share in shares)


def draw_group(rng: Random, mix: Sequence[Kind]) -> tuple[str, list[Task]]:
    """A phase, and tasks of one type about one program: the deeper it is, the fewer."""
    kind = rng.choices(mix, [kind.share for kind in mix])[0]
    depth = rng.choices(range(1, len(kind.depths) + 1), kind.depths)[0]
    return kind.phase, draw_tasks(rng, kind.type, depth, max(1, min(kind.inputs, 8 // depth)))


def prompts_and_completions(
    phase: str, tasks: Sequence[Task], format: Format
) -> Iterator[tuple[str, str]]:
    """Of each task, as a run has them."""
    for task in tasks:
        if phase == "propose":
            yield format.propose_prompt(task.type), format.write_proposal(task)
        else:
            yield format.solve_prompt(task), format.write_answer(task)
