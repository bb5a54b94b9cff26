"""The phases of a step from proposing to grading, which fill in `Proposal`s and change nothing
else; and the same outside a step, for evals. A problem is a proposal or a replayed task, which a
student attempts. Whatever a model writes is read and judged here."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TypeVar

from azr_population.config.schema import EngineConfig, TaskConfig
from azr_population.domains.domain import UNSTEADY, Domain, Verdict
from azr_population.domains.format import Format, read_answer, read_proposal
from azr_population.domains.task import ParsedProposal, Task
from azr_population.engines.engine import Completion, Sampling
from azr_population.engines.text import TextEngine
from azr_population.errors import UserError
from azr_population.method.matchmaking import Match, split_evenly
from azr_population.method.members import Member, Role
from azr_population.method.population import Population
from azr_population.method.proposals import Attempt, Proposal, Replay
from azr_population.method.run_plan import RunPlan
from azr_population.referee import Referee, RefereeSettings
from azr_population.runs.meanings import INTERNAL_ERROR, UNJUDGED


@dataclass(frozen=True)
class StepContext:
    """Parts of a step around the population."""

    engine: TextEngine
    referee: Referee
    domain: Domain
    format: Format

    @classmethod
    @contextmanager
    def open(
        cls, plan: RunPlan, engine: AbstractContextManager[TextEngine]
    ) -> Iterator[StepContext]:
        """The context of a run, with its sandbox and its `engine` opened. Raises UserError."""
        limits = RefereeSettings(**plan.config.referee.model_dump())
        with Referee(limits) as referee, engine as opened:
            yield cls(opened, referee, plan.domain, plan.format)


def propose(
    context: StepContext, population: Population, task_config: TaskConfig, config: EngineConfig
) -> list[Proposal]:
    """Every teacher writes its proposals, split over task types and its matches."""
    streams, step = population.streams, population.step
    examples = streams.numpy("references", step)
    types = context.domain.resolve_types(task_config.types)
    counts = split_evenly(population.config.proposal_batch_size, len(types))
    requests = [
        (match, type)
        for type, count in zip(types, counts, strict=True)
        for match in population.assign_matches(
            [teacher.slot for teacher in population.roster.teachers for _ in range(count)]
        )
    ]
    requests.sort(key=lambda pair: population.matches.index(pair[0]))
    shown = [
        population.buffer.sample(task_config.example_tasks, examples, type) for _, type in requests
    ]
    seed = streams.integer("propose", step)
    return write_proposals(context, requests, seed, shown, config.max_proposal_tokens)


def write_proposals(
    context: StepContext,
    requests: Sequence[tuple[Match, str]],
    seed: int,
    examples: Sequence[Sequence[Task]] | None = None,
    max_tokens: int = 0,
) -> list[Proposal]:
    """A proposal by each match's teacher, read but not yet verified; `examples` are the tasks that
    each of them is shown, and 0 `max_tokens` the format's limit."""
    format = context.format
    completions = context.engine.generate(
        [
            format.propose_prompt(type, tasks)
            for (_, type), tasks in zip(requests, examples or [()] * len(requests), strict=True)
        ],
        [match.teacher.slot for match, _ in requests],
        Sampling(
            tuple(max_tokens or format.max_new_tokens(type, "propose") for _, type in requests)
        ),
        seed,
    )
    return [
        read_one(context, match, type, completion)
        for (match, type), (completion,) in zip(requests, completions, strict=True)
    ]


def read_one(context: StepContext, match: Match, type: str, completion: Completion) -> Proposal:
    """The proposal in a completion."""
    proposal = Proposal(match, type, completion, None)
    with unjudged_if_unreadable(proposal):
        proposal.parsed = read_proposal(context.format, type, completion)
    return proposal


def judge_proposal(
    context: StepContext, match: Match, type: str, completion: Completion, task_config: TaskConfig
) -> Proposal:
    """The proposal in a completion that was not written in a step, verified."""
    proposal = read_one(context, match, type, completion)
    verify([proposal], context, task_config)
    return proposal


def propose_and_judge(
    context: StepContext, requests: Sequence[tuple[Match, str]], task_config: TaskConfig, seed: int
) -> list[Proposal]:
    """Proposals outside a step, at temperature 1, verified."""
    proposals = write_proposals(context, requests, seed)
    verify(proposals, context, task_config)
    return proposals


def solve_and_grade(
    context: StepContext,
    tasks: Sequence[Task],
    slot: int,
    seed: int,
    samples: int = 1,
    temperature: float = 1.0,
) -> list[Replay]:
    """A member's attempts at tasks outside a step, graded. A task without any is one that cannot be
    judged: its own answer is not always right, or our code fails on an attempt."""
    member = Member(f"the member in slot {slot}", Role.STUDENT, slot)
    problems = [Replay(member, task.type, task) for task in tasks]
    solve(problems, context, seed, samples, temperature)
    grade(problems, context)
    return problems


HELD_OUT = "held_out"
"""The reason of a proposal whose program is in the eval."""
_log = logging.getLogger(__name__)
_OF_THE_USER = UserError, OSError
"""Faults outside the model's text: the run cannot go on."""
Proposed = TypeVar("Proposed", bound=Proposal | Replay)
Asked = TypeVar("Asked")
Judged = TypeVar("Judged")


def verify(
    proposals: Sequence[Proposal],
    context: StepContext,
    task_config: TaskConfig,
    is_copy: Callable[[str], bool] = lambda program: False,
) -> None:
    """Sets `task`, `reason` and the measures of every proposal that parsed; `is_copy` says whether
    a program is in the eval."""
    parsed = []
    for proposal in proposals:
        if proposal.parsed:
            with unjudged_if_unreadable(proposal):
                if is_copy(proposal.parsed.program):
                    proposal.reason = HELD_OUT
                else:
                    parsed.append((proposal, proposal.parsed))

    def judge(proposals: Sequence[ParsedProposal]) -> list[Task | str]:
        return context.domain.judge(proposals, context.referee, task_config)

    for proposal, verdict in _each(judge, parsed):
        if isinstance(verdict, Task):
            proposal.task, proposal.reason = verdict, "ok"
        else:
            proposal.reason = verdict
    measure_tasks(proposals, context.domain)


def measure_tasks(proposals: Sequence[Proposal], domain: Domain) -> None:
    """Sets the measures of every task."""
    for proposal in proposals:
        if proposal.task is not None:
            try:
                proposal.measures = domain.measure(proposal.task.program)
            except _OF_THE_USER:
                raise
            except Exception:  # a task is a task without its measures
                _log.exception("measuring a program failed: %.2000r", proposal.task.program)


def _each(
    judge: Callable[[Sequence[Asked]], list[Judged]], questions: Sequence[tuple[Proposed, Asked]]
) -> list[tuple[Proposed, Judged]]:
    """The domain's verdicts, judged together; if that fails, one by one, and those that fail again
    have none."""
    try:
        verdicts = judge([question for _, question in questions])
        return [
            (problem, verdict) for (problem, _), verdict in zip(questions, verdicts, strict=True)
        ]
    except _OF_THE_USER:
        raise
    except Exception:
        _log.exception("judging %d tasks together failed; judging each alone", len(questions))
    judged = []
    for problem, question in questions:
        with unjudged_if_unreadable(problem):
            (verdict,) = judge([question])
            judged.append((problem, verdict))
    return judged


@contextmanager
def unjudged_if_unreadable(problem: Proposal | Replay) -> Iterator[None]:
    """No text that a model writes ends a run: if our code fails on this problem, it has no task and
    nobody is paid for it. The records count it as `internal_error`, and the log has the
    traceback."""
    try:
        yield
    except _OF_THE_USER:
        raise
    except Exception:  # of any kind, because it is a fault of ours or of the user's own domain
        text = problem.completion.text if isinstance(problem, Proposal) else problem.task
        _log.exception("reading a proposal for %s failed: %.2000r", problem.student.name, text)
        invalidate(problem, INTERNAL_ERROR)
        if isinstance(problem, Proposal):
            problem.measures = {}


def invalidate(problem: Proposal | Replay, reason: str) -> None:
    """Makes the problem's task invalid; its attempts only count in the budget."""
    problem.discarded += [attempt.completion for attempt in problem.attempts]
    problem.task, problem.reason, problem.attempts = None, reason, []


def gold_probabilities(
    context: StepContext, tasks: Sequence[Task], slots: Sequence[int]
) -> list[float | None]:
    """The probability that the member in the slot gives the task's answer, at temperature 1; None
    where there are several ways to write it."""
    answers = [context.format.gold_answer(task) for task in tasks]
    exact = [
        (context.format.solve_prompt(task), answer, slot)
        for task, answer, slot in zip(tasks, answers, slots, strict=True)
        if answer is not None
    ]
    columns = zip(*exact, strict=True) if exact else ((), (), ())
    probabilities = iter(context.engine.likelihoods(*map(list, columns)))
    return [None if answer is None else next(probabilities) for answer in answers]


def score_gold(rows: Sequence[Proposal], context: StepContext) -> None:
    """Sets the `gold_probability` of every valid task."""
    valid = [(row, row.task, row.student.slot) for row in rows if row.task is not None]
    values = gold_probabilities(context, [task for _, task, _ in valid], [s for *_, s in valid])
    for (row, *_), value in zip(valid, values, strict=True):
        row.gold_probability = value


def draw_replay(population: Population) -> list[Replay]:
    """Tasks of earlier steps for every student: `population.replay_fraction` of its attempts."""
    replays = []
    for student in population.roster.students:
        generator = population.streams.numpy(f"replay_{student.slot}", population.step)
        tasks = population.buffer.sample(population.config.replay_batch_size, generator)
        replays += [Replay(student, task.type, task) for task in tasks]
    return replays


def solve(
    problems: Sequence[Proposal | Replay],
    context: StepContext,
    seed: int,
    samples: int,
    temperature: float = 1.0,
    max_tokens: int = 0,
) -> None:
    """Its student attempts every valid task `samples` times; 0 `max_tokens`: the format's limit."""
    format = context.format
    chosen, prompts = [], []
    for problem in problems:
        if problem.task is not None:
            with unjudged_if_unreadable(problem):
                prompts.append(format.solve_prompt(problem.task))
                chosen.append(problem)
    limits = tuple(max_tokens or format.max_new_tokens(problem.type, "solve") for problem in chosen)
    slots, sampling = (
        [problem.student.slot for problem in chosen],
        Sampling(limits, temperature, n=samples),
    )
    completions = context.engine.generate(prompts, slots, sampling, seed)
    for problem, group in zip(chosen, completions, strict=True):
        read_attempts(context, problem, group)


def read_attempts(
    context: StepContext, problem: Proposal | Replay, completions: Sequence[Completion]
) -> None:
    """Adds the attempts in these completions to the problem."""
    attempts = [Attempt(completion, None, type=problem.type) for completion in completions]
    problem.attempts += attempts
    with unjudged_if_unreadable(problem):
        for attempt in attempts:
            attempt.text = read_answer(context.format, problem.type, attempt.completion)


def grade(problems: Sequence[Proposal | Replay], context: StepContext) -> None:
    """The domain judges the attempts. Equal answers to a task are judged once.

    A task whose gold answer is not judged right beside them is invalid: its teacher gets the reward
    of an invalid proposal, and its attempts are not rewarded. Neither are those at a task that
    could not be judged.
    """
    questions = [
        (problem, (problem.task, _answers(problem)))
        for problem in problems
        if problem.task is not None and problem.attempts
    ]

    def judge(questions: Sequence[tuple[Task, Sequence[str]]]) -> list[list[Verdict]]:
        return context.domain.grade(questions, context.referee)

    for problem, verdicts in _each(judge, questions):
        by_answer = dict(zip(_answers(problem), verdicts, strict=True))
        failed = [v.reason for v in verdicts if v.reason in (*UNSTEADY, *UNJUDGED)]
        if failed:
            invalidate(problem, failed[0])
        for attempt in problem.attempts:
            if attempt.text is not None:
                attempt.solved, attempt.reason = by_answer[attempt.text]


def _answers(problem: Proposal | Replay) -> tuple[str, ...]:
    """The different answers of its attempts."""
    return tuple(dict.fromkeys(a.text for a in problem.attempts if a.text is not None))
