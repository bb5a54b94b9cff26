"""Every stored teacher's tasks against every stored student: who solves how much."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from azr_population.config.schema import Config
from azr_population.domains.format import read_proposal
from azr_population.domains.known import find_domain
from azr_population.domains.task import Task
from azr_population.engines.engine import Sampling
from azr_population.errors import UserError
from azr_population.measuring.crossplay import CrossPlay
from azr_population.measuring.stored import StoredMember, engine_for, stored_config, stored_members
from azr_population.method.held_out_eval import HeldOutEval
from azr_population.method.step_context import StepContext, format_of, open_referee
from azr_population.pages.console.heartbeat import spinner
from azr_population.runs import RunDirectory
from azr_population.runs.streams import Streams


def play(
    paths: Sequence[str | Path], every: int | None, tasks: int, attempts: int, seed: int
) -> CrossPlay:
    """All stored teachers of these runs propose `tasks` each, and all stored students attempt them.

    Where a task has one right answer its probability is the solve rate, elsewhere the share of
    right answers among `attempts`. Arguments: see `stored_members` for `every`.

    Raises UserError: a run is missing, has no snapshots, or another base or format than the first.
    """
    runs = [RunDirectory(path) for path in paths]
    configs = [stored_config(run, []) for run in runs]
    _refuse_strangers(runs, configs)
    members = [stored for run in runs for stored in stored_members(run, every)]
    teachers = [stored for stored in members if stored.proposes]
    students = [stored for stored in members if stored.solves]
    config, streams = configs[0], Streams(seed)
    domain, format = find_domain(config.task.domain), format_of(config.task, config.base)
    with (
        spinner("cross-play") as begin,
        open_referee(config.referee) as referee,
        engine_for(config, runs[0]) as engine,
    ):
        tools = StepContext(engine, referee, domain, format)
        proposed = []
        for n, stored in enumerate(teachers, 1):
            begin(f"{stored.label} proposes, {n} of {len(teachers)} teachers")
            proposed.append(_proposals(tools, config, stored, tasks, streams))
        asked = [task for batch in proposed for task in batch]
        asked_eval = HeldOutEval(asked, attempts, seed)
        rates: list[NDArray[np.float64]] = []
        for n, student in enumerate(students, 1):
            begin(f"{student.label} attempts {len(asked)} tasks, {n} of {len(students)} students")
            # Its label, because members of several runs have the same names.
            member = replace(student.load(engine), name=student.label)
            rates.append(np.array(asked_eval.solve_rates(tools, member, seed, student.step)))
    ends = np.cumsum([len(batch) for batch in proposed])[:-1]
    by_teacher = [
        np.stack(list(part)) for part in zip(*(np.split(r, ends) for r in rates), strict=True)
    ]
    return CrossPlay(tuple(teachers), tuple(students), tuple(by_teacher), tasks)


def _refuse_strangers(runs: Sequence[RunDirectory], configs: Sequence[Config]) -> None:
    first = (
        runs[0].environment().get("base"),
        configs[0].task.domain,
        configs[0].base.prompt_format,
    )
    for run, config in zip(runs, configs, strict=True):
        if (run.environment().get("base"), config.task.domain, config.base.prompt_format) != first:
            raise UserError(f"{run.path} was made on another base or domain than {runs[0].path}")
    labels = [run.path.resolve().name for run in runs]
    if len(set(labels)) < len(labels):
        raise UserError(f"two runs are called {', '.join(labels)}; rename a folder")


def _proposals(
    tools: StepContext,
    config: Config,
    teacher: StoredMember,
    count: int,
    streams: Streams,
) -> list[Task]:
    """The valid ones of the teacher's proposals, which are split evenly over the task types."""
    format = tools.format
    teacher.load(tools.engine)
    types = tools.domain.wanted(config.task.types)
    kinds = [types[n % len(types)] for n in range(count)]
    written = tools.engine.generate(
        [format.propose_prompt(kind, []) for kind in kinds],
        [0] * count,
        Sampling(tuple(format.max_new_tokens(kind, "propose") for kind in kinds)),
        streams.integer(f"crossplay {teacher.label}", teacher.step),
    )
    parsed = [
        read_proposal(format, kind, completion)
        for kind, (completion,) in zip(kinds, written, strict=True)
    ]
    verdicts = tools.domain.judge(
        [proposal for proposal in parsed if proposal], tools.referee, config.task
    )
    return [verdict for verdict in verdicts if isinstance(verdict, Task)]
