"""A second eval that is not the domain's: what the untrained teacher proposed, before step 1.

The held-out eval is drawn where the base was trained; a run's tasks are written by members. So what
students can do is also asked on fixed tasks of the run's own kind: those of the teacher of step 0,
which is the bare base, so that all arms on a base and eval.seed have the same ones. They are kept
in the run's folder, sat by greedy decoding, and refused as proposals.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from azr_population.config.schema import Config
from azr_population.domains.format import read_proposal
from azr_population.domains.task import Task, task_from_dict
from azr_population.engines.engine import NO_ADAPTER, Sampling
from azr_population.errors import UserError
from azr_population.files import read_text, write_atomically
from azr_population.method.held_out_eval import HeldOutEval
from azr_population.method.step_context import StepContext
from azr_population.runs.streams import Streams

FILE = "self_proposed_eval.jsonl"
"""In a run's folder: a task a line."""

_ROUNDS = 20
"""In which as many proposals are drawn as tasks are wanted: below a validity of some 5% the base
proposes too little that is valid for an eval."""


def self_proposed_eval(
    config: Config, tools: StepContext, reported: Sequence[Task]
) -> HeldOutEval | None:
    """The eval that the run has kept, or one drawn now; None without `eval.self_proposed_tasks`.
    `reported` are tasks whose programs it leaves out.

    Raises:
        UserError: the base proposes too little that is valid, or what was kept cannot be read.
    """
    if not config.eval.self_proposed_tasks:
        return None
    path = Path(config.run.dir) / FILE
    tasks = _read(path) if path.is_file() else _drawn(config, tools, reported)
    return HeldOutEval(tasks, 1, config.eval.seed)


def write(held_out: HeldOutEval, folder: Path) -> None:
    """Keeps its tasks in the run's folder."""
    text = "".join(json.dumps(asdict(task)) + "\n" for task in held_out.tasks)
    write_atomically(folder / FILE, text)


def _read(path: Path) -> list[Task]:
    try:
        return [task_from_dict(json.loads(line)) for line in read_text(path).splitlines()]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"{path} is damaged ({error!r:.200}); move it away, and the same tasks are drawn anew"
        ) from error


def _drawn(config: Config, tools: StepContext, reported: Sequence[Task]) -> list[Task]:
    count, types = config.eval.self_proposed_tasks, tools.domain.wanted(config.task.types)
    held_out = tools.domain.held_out(task.program for task in reported)
    streams, counts = Streams(config.eval.seed), dict.fromkeys(types, 0)
    programs: set[str] = set()
    tasks: list[Task] = []
    for turn in range(_ROUNDS):
        for task in _proposed(config, tools, types, count, streams.integer("own exam", turn)):
            new = task.program not in programs and not held_out.is_copy(task.program)
            # As many of each type; what is left over goes to the first ones.
            share = count // len(types) + (types.index(task.type) < count % len(types))
            if new and counts[task.type] < share:
                counts[task.type] += 1
                programs.add(task.program)
                tasks.append(task)
        if len(tasks) == count:
            return sorted(tasks, key=lambda task: types.index(task.type))
    raise UserError(
        f"eval.self_proposed_tasks={count}: of {_ROUNDS * count} proposals of the base only "
        f"{len(tasks)} make tasks; take fewer, or 0",
        key="eval.self_proposed_tasks",
    )


def _proposed(
    config: Config, tools: StepContext, types: Sequence[str], count: int, seed: int
) -> list[Task]:
    """The valid tasks among so many proposals of the bare base."""
    format = tools.format
    asked = [types[number % len(types)] for number in range(count)]
    limits = [
        config.engine.max_proposal_tokens or format.max_new_tokens(type, "propose")
        for type in asked
    ]
    written = tools.engine.generate(
        [format.propose_prompt(type) for type in asked],
        [NO_ADAPTER] * count,
        Sampling(tuple(limits), config.engine.temperature),
        seed,
    )
    read = [
        read_proposal(format, type, completion)
        for type, (completion,) in zip(asked, written, strict=True)
    ]
    verdicts = tools.domain.judge(
        [proposal for proposal in read if proposal], tools.referee, config.task
    )
    return [verdict for verdict in verdicts if isinstance(verdict, Task)]
