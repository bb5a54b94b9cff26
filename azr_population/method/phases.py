"""The phases of a step from proposing to grading. They fill `Proposal`s and change nothing else."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from azr_population.config.schema import EngineConfig, TaskConfig
from azr_population.domains.domain import UNSTEADY, Domain, HeldOut, Verdict
from azr_population.domains.format import read_answer, read_proposal
from azr_population.domains.task import ParsedProposal, Task
from azr_population.engines.engine import Sampling
from azr_population.errors import UserError
from azr_population.method.batch_split import proposal_rows, replay_rows, split_evenly
from azr_population.method.population import Population
from azr_population.method.proposals import Attempt, Proposal, Replay
from azr_population.method.step_context import StepContext
from azr_population.referee import Referee


def propose(
    tools: StepContext, population: Population, tasks: TaskConfig, sampling: EngineConfig
) -> list[Proposal]:
    """Every teacher writes its rows of proposals, split over the task types and its matches."""
    format, streams, step = tools.format, population.streams, population.step
    references = streams.numpy("references", step)
    teachers = population.roster.teachers
    budget = proposal_rows(population.config.batch_size, teachers[0].role)
    types = tools.domain.wanted(tasks.types)
    wanted = [
        (match, type)
        for type, count in zip(types, split_evenly(budget, len(types)), strict=True)
        for match in population.assign_matches([t.slot for t in teachers for _ in range(count)])
    ]
    wanted.sort(key=lambda pair: population.matches.index(pair[0]))
    completions = tools.engine.generate(
        [
            format.propose_prompt(
                type, population.buffer.sample(tasks.example_tasks, references, type)
            )
            for _, type in wanted
        ],
        [match.teacher.slot for match, _ in wanted],
        Sampling(
            tuple(
                sampling.max_proposal_tokens or format.max_new_tokens(type, "propose")
                for _, type in wanted
            ),
            sampling.temperature,
        ),
        streams.integer("propose", step),
    )
    rows = []
    for (match, type), (completion,) in zip(wanted, completions, strict=True):
        row = Proposal(match, type, completion, None)
        with invalid_if_unreadable(row):
            row.proposal = read_proposal(format, type, completion)
        rows.append(row)
    return rows


HELD_OUT = "held_out"
"""The reason why a program of the eval is no task."""
INTERNAL_ERROR = "internal_error"
"""The reason where the trainer failed to read a proposal: a fault of ours, and logged."""
_log = logging.getLogger(__name__)
_OF_THE_USER = UserError, OSError
"""Faults of what is around the run: it cannot go on, whatever was written."""
Proposed = TypeVar("Proposed", bound=Proposal | Replay)
Asked = TypeVar("Asked")
Judged = TypeVar("Judged")


def verify(
    rows: Sequence[Proposal], tools: StepContext, tasks: TaskConfig, held_out: HeldOut | None = None
) -> None:
    """Sets `task` and `reason` of every row whose completion parsed, and what describes a task."""
    parsed = []
    for row in rows:
        if row.proposal:
            with invalid_if_unreadable(row):
                if held_out and held_out.is_copy(row.proposal.program):
                    row.reason = HELD_OUT
                else:
                    parsed.append((row, row.proposal))

    def judge(proposals: Sequence[ParsedProposal]) -> list[Task | str]:
        return tools.domain.judge(proposals, tools.referee, tasks)

    for row, verdict in _each(judge, parsed):
        if isinstance(verdict, Task):
            row.task, row.reason = verdict, "ok"
        else:
            row.reason = verdict
    describe(rows, tools.domain, held_out)


def describe(rows: Sequence[Proposal], domain: Domain, held_out: HeldOut | None = None) -> None:
    """Sets the measures of every task: all that the trainer computes of its text, once."""
    for row in rows:
        if row.task is not None:
            with invalid_if_unreadable(row):
                row.measures = domain.measure(row.task.program)
                row.near_copy = held_out is not None and held_out.is_near_copy(row.task.program)


def _each(
    judge: Callable[[Sequence[Asked]], list[Judged]], asked: Sequence[tuple[Proposed, Asked]]
) -> list[tuple[Proposed, Judged]]:
    """What the domain says of each, asked for all of them together; where that fails, for one after
    the other, and those for which it fails again are invalid."""
    try:
        verdicts = judge([question for _, question in asked])
        return [(row, verdict) for (row, _), verdict in zip(asked, verdicts, strict=True)]
    except _OF_THE_USER:
        raise
    except Exception:
        _log.exception("judging %d tasks together failed; judging each alone", len(asked))
    judged = []
    for row, question in asked:
        with invalid_if_unreadable(row):
            (verdict,) = judge([question])
            judged.append((row, verdict))
    return judged


@contextmanager
def invalid_if_unreadable(row: Proposal | Replay) -> Iterator[None]:
    """No text that a model writes ends a run: if our own reading of this row fails, its proposal is
    invalid. The records count it as `internal_error`, and the log has the traceback."""
    try:
        yield
    except _OF_THE_USER:
        raise
    except Exception:  # of any kind, because it is a fault of ours or of the user's own domain
        text = row.completion.text if isinstance(row, Proposal) else row.task and row.task.program
        _log.exception("reading a proposal for %s failed: %.2000r", row.student.name, text)
        row.task, row.reason, row.answers = None, INTERNAL_ERROR, []
        if isinstance(row, Proposal):
            row.measures, row.near_copy = {}, False


def seed_tasks(
    proposals: Sequence[ParsedProposal], domain: Domain, referee: Referee, tasks: TaskConfig
) -> list[Task]:
    """The valid tasks of a seed file, of the types that the run plays."""
    types = domain.wanted(tasks.types)
    wanted = [proposal for proposal in proposals if proposal.type in types]
    wanted = domain.complete_seeds(wanted, referee)
    verdicts = domain.judge(wanted, referee, tasks)
    return [verdict for verdict in verdicts if isinstance(verdict, Task)]


def draw_replay(population: Population) -> list[Replay]:
    """Tasks of earlier steps for every student: `population.replay_fraction` of its attempts."""
    replays = []
    for student in population.roster.students:
        count = replay_rows(population.config, student.role)
        generator = population.streams.numpy(f"replay_{student.slot}", population.step)
        replays += [Replay(student, task) for task in population.buffer.sample(count, generator)]
    return replays


def solve(
    rows: Sequence[Proposal | Replay],
    tools: StepContext,
    population: Population,
    sampling: EngineConfig,
) -> None:
    """The matched student attempts every valid task `population.samples_per_task` times."""
    format = tools.format
    chosen, prompts = [], []
    for row in rows:
        if row.task is not None:
            with invalid_if_unreadable(row):
                prompts.append(format.solve_prompt(row.task))
                chosen.append(row)
    completions = tools.engine.generate(
        prompts,
        [row.student.slot for row in chosen],
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
        with invalid_if_unreadable(row):
            row.answers = [
                Attempt(completion, read_answer(format, row.type, completion))
                for completion in group
            ]


def grade(rows: Sequence[Proposal | Replay], tools: StepContext) -> None:
    """The domain judges the attempts. Equal answers to a task are judged once.

    A task whose own answer is not right among them is none: it pays its teacher as any other
    invalid proposal, and its attempts count for nobody.
    """
    asked = [
        (row, (row.task, tuple(dict.fromkeys(a.text for a in row.answers if a.text is not None))))
        for row in rows
        if row.task is not None and row.answers
    ]

    def judge(questions: Sequence[tuple[Task, Sequence[str]]]) -> list[list[Verdict]]:
        return tools.domain.grade(questions, tools.referee)

    answers_of = {id(row): answers for row, (_, answers) in asked}
    for row, of_row in _each(judge, asked):
        verdicts = dict(zip(answers_of[id(row)], of_row, strict=True))
        if any(verdict.reason == UNSTEADY for verdict in of_row):
            row.task, row.reason, row.answers = None, UNSTEADY, []
        for answer in row.answers:
            if answer.text is not None:
                answer.solved, answer.reason = verdicts[answer.text]
