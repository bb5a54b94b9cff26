"""The phases of a step from proposing to grading. They fill `Row`s and change nothing else."""

from collections.abc import Sequence

from azr_population.config.schema import EngineConfig, TaskConfig
from azr_population.domains.domain import UNSTEADY, Domain, HeldOut
from azr_population.domains.format import read_answer, read_proposal
from azr_population.domains.task import Proposal, Task
from azr_population.engines.engine import Sampling
from azr_population.method.population import Population
from azr_population.method.rows import Answer, Row
from azr_population.method.shares import proposal_rows, shares
from azr_population.method.tools import Tools
from azr_population.referee import Referee


def propose(
    tools: Tools, population: Population, tasks: TaskConfig, sampling: EngineConfig
) -> list[Row]:
    """Every teacher writes its rows of proposals, split over the task types and its matches."""
    format, streams, step = tools.format, population.streams, population.step
    references = streams.numpy("references", step)
    teachers = population.roster.teachers
    budget = proposal_rows(population.config.rows, teachers[0].role)
    types = tools.domain.wanted(tasks.types)
    wanted = [
        (match, type)
        for type, count in zip(types, shares(budget, len(types)), strict=True)
        for match in population.deal([t.slot for t in teachers for _ in range(count)])
    ]
    wanted.sort(key=lambda pair: population.matches.index(pair[0]))
    completions = tools.engine.generate(
        [
            format.propose_prompt(
                type, population.buffer.sample(type, tasks.references, references)
            )
            for _, type in wanted
        ],
        [match.teacher.slot for match, _ in wanted],
        Sampling(
            tuple(
                sampling.propose_tokens or format.max_new_tokens(type, "propose")
                for _, type in wanted
            ),
            sampling.temperature,
        ),
        streams.integer("propose", step),
    )
    return [
        Row(
            match,
            type,
            completion,
            read_proposal(format, type, completion),
        )
        for (match, type), (completion,) in zip(wanted, completions, strict=True)
    ]


HELD_OUT = "held_out"
"""The reason why a program of the exam is no task."""


def verify(
    rows: Sequence[Row], tools: Tools, tasks: TaskConfig, held_out: HeldOut | None = None
) -> None:
    """Sets `task` and `reason` of every row whose completion parsed."""
    parsed = []
    for row in rows:
        if row.proposal and held_out and held_out.is_copy(row.proposal.program):
            row.reason = HELD_OUT
        elif row.proposal:
            parsed.append((row, row.proposal))
    proposals = [proposal for _, proposal in parsed]
    verdicts = tools.domain.judge(proposals, tools.referee, tasks)
    for (row, _), verdict in zip(parsed, verdicts, strict=True):
        if isinstance(verdict, Task):
            row.task, row.reason = verdict, "ok"
        else:
            row.reason = verdict


def seed_tasks(
    proposals: Sequence[Proposal], domain: Domain, referee: Referee, tasks: TaskConfig
) -> list[Task]:
    """The valid tasks of a seed file, of the types that the run plays."""
    types = domain.wanted(tasks.types)
    wanted = [proposal for proposal in proposals if proposal.type in types]
    wanted = domain.complete_seeds(wanted, referee)
    verdicts = domain.judge(wanted, referee, tasks)
    return [verdict for verdict in verdicts if isinstance(verdict, Task)]


def solve(
    rows: Sequence[Row], tools: Tools, population: Population, sampling: EngineConfig
) -> None:
    """The matched student attempts every valid task `population.attempts` times."""
    format = tools.format
    chosen = [(row, row.task) for row in rows if row.task is not None]
    completions = tools.engine.generate(
        [format.solve_prompt(task) for _, task in chosen],
        [row.match.student.slot for row, _ in chosen],
        Sampling(
            tuple(
                sampling.solve_tokens or format.max_new_tokens(row.type, "solve")
                for row, _ in chosen
            ),
            sampling.temperature,
            n=population.config.attempts,
        ),
        population.streams.integer("solve", population.step),
    )
    for (row, _), drawn in zip(chosen, completions, strict=True):
        row.answers = [
            Answer(completion, read_answer(format, row.type, completion)) for completion in drawn
        ]


def grade(rows: Sequence[Row], tools: Tools) -> None:
    """The domain judges the attempts. Equal answers to a task are judged once.

    A task whose own answer is not right among them is none: it pays its teacher as any other
    invalid proposal, and its attempts count for nobody.
    """
    asked = [row for row in rows if row.task is not None and row.answers]
    texts = [
        tuple(dict.fromkeys(a.text for a in row.answers if a.text is not None)) for row in asked
    ]
    questions = [
        (row.task, answers)
        for row, answers in zip(asked, texts, strict=True)
        if row.task is not None
    ]
    judged = tools.domain.grade(questions, tools.referee)
    for row, answers, of_row in zip(asked, texts, judged, strict=True):
        verdicts = dict(zip(answers, of_row, strict=True))
        if any(verdict.reason == UNSTEADY for verdict in of_row):
            row.task, row.reason, row.answers = None, UNSTEADY, []
        for answer in row.answers:
            if answer.text is not None:
                answer.solved, answer.reason = verdicts[answer.text]
