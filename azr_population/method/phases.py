"""The phases of a step from proposing to grading. They fill in `Proposal`s and change nothing
else."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TypeVar

from azr_population.config.schema import Config, EngineConfig, TaskConfig
from azr_population.domains.domain import UNSTEADY, Domain, HeldOut, Verdict
from azr_population.domains.format import Format, read_answer, read_proposal
from azr_population.domains.known import find_domain
from azr_population.domains.task import ParsedProposal, Task
from azr_population.engines.engine import Sampling
from azr_population.engines.text import TextEngine
from azr_population.errors import UserError
from azr_population.method.matchmaking import split_evenly
from azr_population.method.population import Population
from azr_population.method.proposals import Attempt, Proposal, Replay
from azr_population.referee import Referee, RefereeSettings


@dataclass(frozen=True)
class StepContext:
    """What a step needs around the population."""

    engine: TextEngine
    referee: Referee
    domain: Domain
    format: Format

    @classmethod
    @contextmanager
    def open(
        cls, config: Config, engine: AbstractContextManager[TextEngine]
    ) -> Iterator[StepContext]:
        """That of a run, with its sandbox and its `engine` opened. Raises UserError."""
        domain = find_domain(config.task.domain)
        format = domain.format(config.base.prompt_format)
        with Referee(RefereeSettings(**config.referee.model_dump())) as referee, engine as opened:
            yield cls(opened, referee, domain, format)


def propose(
    context: StepContext, population: Population, tasks: TaskConfig, sampling: EngineConfig
) -> list[Proposal]:
    """Every teacher writes its proposals, split over task types and its matches."""
    format, streams, step = context.format, population.streams, population.step
    examples = streams.numpy("references", step)
    types = context.domain.wanted(tasks.types)
    counts = split_evenly(population.config.proposal_batch_size, len(types))
    rows = [
        (match, type)
        for type, count in zip(types, counts, strict=True)
        for match in population.assign_matches(
            [teacher.slot for teacher in population.roster.teachers for _ in range(count)]
        )
    ]
    rows.sort(key=lambda row: population.matches.index(row[0]))
    slots = [match.teacher.slot for match, _ in rows]
    completions = context.engine.generate(
        [
            format.propose_prompt(
                type, population.buffer.sample(tasks.example_tasks, examples, type)
            )
            for _, type in rows
        ],
        slots,
        Sampling(
            tuple(
                sampling.max_proposal_tokens or format.max_new_tokens(type, "propose")
                for _, type in rows
            ),
            sampling.temperature,
        ),
        streams.integer("propose", step),
    )
    proposals = []
    for (match, type), (completion,) in zip(rows, completions, strict=True):
        proposal = Proposal(match, type, completion, None)
        with invalid_if_unreadable(proposal):
            proposal.parsed = read_proposal(format, type, completion)
        proposals.append(proposal)
    return proposals


HELD_OUT = "held_out"
"""The reason of a proposal whose program is in the eval."""
INTERNAL_ERROR = "internal_error"
"""The reason of a proposal that our code failed to read; the fault is logged."""
_log = logging.getLogger(__name__)
_OF_THE_USER = UserError, OSError
"""Faults outside the model's text: the run cannot go on."""
Proposed = TypeVar("Proposed", bound=Proposal | Replay)
Asked = TypeVar("Asked")
Judged = TypeVar("Judged")


def verify(
    rows: Sequence[Proposal],
    context: StepContext,
    tasks: TaskConfig,
    held_out: HeldOut | None = None,
) -> None:
    """Sets `task`, `reason` and the measures of every row whose completion parsed."""
    parsed = []
    for row in rows:
        if row.parsed:
            with invalid_if_unreadable(row):
                if held_out and held_out.is_copy(row.parsed.program):
                    row.reason = HELD_OUT
                else:
                    parsed.append((row, row.parsed))

    def judge(proposals: Sequence[ParsedProposal]) -> list[Task | str]:
        return context.domain.judge(proposals, context.referee, tasks)

    for row, verdict in _each(judge, parsed):
        if isinstance(verdict, Task):
            row.task, row.reason = verdict, "ok"
        else:
            row.reason = verdict
    describe(rows, context.domain, held_out)


def describe(rows: Sequence[Proposal], domain: Domain, held_out: HeldOut | None = None) -> None:
    """Sets the measures of every task."""
    for row in rows:
        if row.task is not None:
            with invalid_if_unreadable(row):
                row.measures = domain.measure(row.task.program)
                row.near_copy = held_out is not None and held_out.is_near_copy(row.task.program)


def _each(
    judge: Callable[[Sequence[Asked]], list[Judged]], questions: Sequence[tuple[Proposed, Asked]]
) -> list[tuple[Proposed, Judged]]:
    """The domain's verdicts, judged together; if that fails, one by one, and rows that fail again
    are invalid."""
    try:
        verdicts = judge([question for _, question in questions])
        return [(row, verdict) for (row, _), verdict in zip(questions, verdicts, strict=True)]
    except _OF_THE_USER:
        raise
    except Exception:
        _log.exception("judging %d tasks together failed; judging each alone", len(questions))
    judged = []
    for row, question in questions:
        with invalid_if_unreadable(row):
            (verdict,) = judge([question])
            judged.append((row, verdict))
    return judged


@contextmanager
def invalid_if_unreadable(row: Proposal | Replay) -> Iterator[None]:
    """No text that a model writes ends a run: if our code fails on this row, its proposal is
    invalid. The records count it as `internal_error`, and the log has the traceback."""
    try:
        yield
    except _OF_THE_USER:
        raise
    except Exception:  # of any kind, because it is a fault of ours or of the user's own domain
        text = row.completion.text if isinstance(row, Proposal) else row.task
        _log.exception("reading a proposal for %s failed: %.2000r", row.student.name, text)
        refuse(row, INTERNAL_ERROR)
        if isinstance(row, Proposal):
            row.measures, row.near_copy = {}, False


def refuse(row: Proposal | Replay, reason: str) -> None:
    """Makes the row's task invalid; its attempts only count in the budget."""
    row.void += [attempt.completion for attempt in row.attempts]
    row.task, row.reason, row.attempts = None, reason, []


def valid_tasks(
    proposals: Sequence[ParsedProposal], domain: Domain, referee: Referee, tasks: TaskConfig
) -> list[Task]:
    """The valid tasks among these proposals, of the types that the run has."""
    types = domain.wanted(tasks.types)
    seeds = [proposal for proposal in proposals if proposal.type in types]
    verdicts = domain.judge(seeds, referee, tasks)
    return [verdict for verdict in verdicts if isinstance(verdict, Task)]


def draw_tasks(
    context: StepContext, tasks: TaskConfig, count: int, slot: int, seed: int
) -> list[Task]:
    """The valid tasks among `count` proposals by one member outside a step, at temperature 1 and
    with task types in turn."""
    format, types = context.format, context.domain.wanted(tasks.types)
    asked = [types[number % len(types)] for number in range(count)]
    prompts = [format.propose_prompt(type) for type in asked]
    sampling = Sampling(tuple(format.max_new_tokens(type, "propose") for type in asked))
    written = context.engine.generate(prompts, [slot] * count, sampling, seed)
    proposals = [
        read_proposal(format, type, completion)
        for type, (completion,) in zip(asked, written, strict=True)
    ]
    return valid_tasks([p for p in proposals if p], context.domain, context.referee, tasks)


def draw_replay(population: Population) -> list[Replay]:
    """Tasks of earlier steps for every student: `population.replay_fraction` of its attempts."""
    replays = []
    for student in population.roster.students:
        generator = population.streams.numpy(f"replay_{student.slot}", population.step)
        tasks = population.buffer.sample(population.config.replay_batch_size, generator)
        replays += [Replay(student, task.type, task) for task in tasks]
    return replays


def solve(
    rows: Sequence[Proposal | Replay],
    context: StepContext,
    population: Population,
    sampling: EngineConfig,
) -> None:
    """The matched student attempts every valid task `population.samples_per_task` times."""
    format = context.format
    chosen, prompts = [], []
    for row in rows:
        if row.task is not None:
            with invalid_if_unreadable(row):
                prompts.append(format.solve_prompt(row.task))
                chosen.append(row)
    slots = [row.student.slot for row in chosen]
    completions = context.engine.generate(
        prompts,
        slots,
        Sampling(
            tuple(
                sampling.max_answer_tokens or format.max_new_tokens(row.type, "solve")
                for row in chosen
            ),
            sampling.temperature,
            n=population.config.samples_per_task,
        ),
        population.streams.integer("solve", population.step),
    )
    for row, group in zip(chosen, completions, strict=True):
        row.attempts = [Attempt(completion, None, type=row.type) for completion in group]
        with invalid_if_unreadable(row):
            for attempt in row.attempts:
                attempt.text = read_answer(format, row.type, attempt.completion)


def grade(rows: Sequence[Proposal | Replay], context: StepContext) -> None:
    """The domain judges the attempts. Equal answers to a task are judged once.

    A task whose gold answer is not judged right beside them is invalid: its teacher gets the reward
    of an invalid proposal, and its attempts are not rewarded.
    """
    questions = [
        (row, (row.task, tuple(dict.fromkeys(a.text for a in row.attempts if a.text is not None))))
        for row in rows
        if row.task is not None and row.attempts
    ]

    def judge(questions: Sequence[tuple[Task, Sequence[str]]]) -> list[list[Verdict]]:
        return context.domain.grade(questions, context.referee)

    answers_of = {id(row): answers for row, (_, answers) in questions}
    for row, verdicts in _each(judge, questions):
        by_answer = dict(zip(answers_of[id(row)], verdicts, strict=True))
        if any(verdict.reason == UNSTEADY for verdict in verdicts):
            refuse(row, UNSTEADY)
        for attempt in row.attempts:
            if attempt.text is not None:
                attempt.solved, attempt.reason = by_answer[attempt.text]
