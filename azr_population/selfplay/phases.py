"""The phases of a step from proposing to rewards. They fill `Row`s and change nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import torch

from azr_population.conf.schema import EngineConfig, PopulationConfig, TaskConfig
from azr_population.engines.engine import Completion, Engine, Sample, Sampling
from azr_population.matchmaking import Match
from azr_population.members import Role
from azr_population.referee import Program, Referee
from azr_population.selfplay.advantages import leave_one_out, task_relative
from azr_population.selfplay.questions import question
from azr_population.selfplay.rewards import TEACHER_REWARDS, student_reward, teacher_reward
from azr_population.selfplay.rows import Answer, Row, shares
from azr_population.tasks.buffer import TaskBuffer
from azr_population.tasks.formats import Format
from azr_population.tasks.task import Proposal, Task, TaskType
from azr_population.tasks.validity import accept, refuse_before


def propose(
    engine: Engine,
    format: Format,
    buffer: TaskBuffer,
    matches: Sequence[Match],
    config: PopulationConfig,
    tasks: TaskConfig,
    sampling: EngineConfig,
    references: np.random.Generator,
    generator: torch.Generator,
) -> list[Row]:
    """Every teacher writes its rows of proposals, split over its matches and the task types."""
    wanted: list[tuple[Match, TaskType]] = []
    played = Counter(match.teacher.name for match in matches)
    met: Counter[str] = Counter()
    for match in matches:
        name = match.teacher.name
        budget = proposal_rows(config.rows, match.teacher.role)
        rows = shares(budget, played[name])[met[name]]
        met[name] += 1
        types = [TaskType(type) for type in tasks.types]
        for type, count in zip(types, shares(rows, len(types)), strict=True):
            wanted += [(match, type)] * count

    rows_by_index: dict[int, Row] = {}
    for type in dict.fromkeys(type for _, type in wanted):
        indices = [index for index, (_, of_type) in enumerate(wanted) if of_type is type]
        prompts = [
            format.propose_prompt(type, buffer.sample(type, tasks.references, references))
            for _ in indices
        ]
        members = [wanted[index][0].teacher.slot for index in indices]
        completions = engine.generate(
            prompts,
            members,
            Sampling(
                sampling.propose_tokens or format.max_new_tokens(type, "propose"),
                sampling.temperature,
            ),
            generator,
        )
        for index, (completion,) in zip(indices, completions, strict=True):
            proposal = format.parse_proposal(type, completion.text) if completion.finished else None
            rows_by_index[index] = Row(wanted[index][0], type, completion, proposal)
    return [rows_by_index[index] for index in range(len(wanted))]


def verify(rows: Sequence[Row], referee: Referee, tasks: TaskConfig) -> None:
    """Sets `task` and `reason` of every row whose completion parsed."""
    parsed = [(row, row.proposal) for row in rows if row.proposal is not None]
    verdicts = judge_proposals([proposal for _, proposal in parsed], referee, tasks)
    for (row, _), verdict in zip(parsed, verdicts, strict=True):
        if isinstance(verdict, Task):
            row.task, row.reason = verdict, "ok"
        else:
            row.reason = verdict


def judge_proposals(
    proposals: Sequence[Proposal], referee: Referee, tasks: TaskConfig
) -> list[Task | str]:
    """For each proposal the task, or the reason why it is none.

    The referee runs the programs; the validity rules decide which of them are tasks.
    """
    verdicts: list[Task | str] = [
        refuse_before(proposal, tasks.max_program_chars) or "" for proposal in proposals
    ]
    runnable = [index for index, refused in enumerate(verdicts) if not refused]
    programs = [
        Program(proposals[i].program, proposals[i].inputs, proposals[i].imports) for i in runnable
    ]
    for index, execution in zip(runnable, referee.check(programs), strict=True):
        verdicts[index] = (
            accept(proposals[index], execution.outputs, tasks.refuse, tasks.max_output_chars)
            if execution.valid
            else execution.reason.value
        )
    return verdicts


def seed_tasks(proposals: Sequence[Proposal], referee: Referee, tasks: TaskConfig) -> list[Task]:
    """The valid tasks of a seed file, of the types that the run plays."""
    wanted = [proposal for proposal in proposals if str(proposal.type) in tasks.types]
    verdicts = judge_proposals(wanted, referee, tasks)
    return [verdict for verdict in verdicts if isinstance(verdict, Task)]


def count_copies(rows: Sequence[Row], buffer: TaskBuffer) -> None:
    """Sets `copies`: other equal tasks by the same teacher in this step, and one if it is known."""
    counts = Counter((row.match.teacher.name, row.task) for row in rows if row.task is not None)
    for row in rows:
        if row.task is not None:
            row.copies = counts[row.match.teacher.name, row.task] - 1 + (row.task in buffer)


def solve(
    rows: Sequence[Row],
    engine: Engine,
    format: Format,
    attempts: int,
    sampling: EngineConfig,
    generator: torch.Generator,
) -> None:
    """The matched student attempts every valid task `attempts` times."""
    for type in TaskType:
        chosen = [row for row in rows if row.task is not None and row.type is type]
        completions = engine.generate(
            [format.solve_prompt(row.task) for row in chosen if row.task is not None],
            [row.match.student.slot for row in chosen],
            Sampling(
                sampling.solve_tokens or format.max_new_tokens(type, "solve"),
                sampling.temperature,
                n=attempts,
            ),
            generator,
        )
        for row, drawn in zip(chosen, completions, strict=True):
            row.answers = [
                Answer(one, format.parse_answer(type, one.text) if one.finished else None)
                for one in drawn
            ]


def grade(rows: Sequence[Row], referee: Referee) -> None:
    """The referee judges the attempts. Equal answers to a task are judged once."""
    asked = [row for row in rows if row.task is not None and row.answers]
    texts = [
        tuple(dict.fromkeys(a.text for a in row.answers if a.text is not None)) for row in asked
    ]
    questions = [
        question(row.task, answers)
        for row, answers in zip(asked, texts, strict=True)
        if row.task is not None
    ]
    for row, answers, grades in zip(asked, texts, referee.grade(questions), strict=True):
        verdicts = dict(zip(answers, grades, strict=True))
        for answer in row.answers:
            if answer.text is not None:
                answer.solved = verdicts[answer.text].solved
                answer.reason = verdicts[answer.text].reason.value


def reward(rows: Sequence[Row], config: PopulationConfig) -> None:
    """Rewards of the proposals and of every attempt."""
    value = TEACHER_REWARDS.find(config.teacher_reward).function
    for row in rows:
        for answer in row.answers:
            answer.reward = student_reward(answer.text is not None, answer.solved)
        row.reward = teacher_reward(
            value, row.proposal is not None, row.solve_rate, row.copies, config.duplicate_price
        )


def training_samples(
    rows: Sequence[Row], config: PopulationConfig, generator: np.random.Generator
) -> dict[int, list[Sample]]:
    """Each member's rows with their TRR++ advantages, by slot; rows that teach nothing left out.

    A teacher trains on all its proposals. A student trains on `rows` attempts, its share of each
    match taken evenly over the task types: first one attempt of every task in random order, then a
    second of each, and so on, because different tasks teach more than repeated ones.
    """
    per_task = config.solver_baseline == "task"
    drawn: list[tuple[int, str, TaskType, Completion, float]] = [
        (row.match.teacher.slot, "propose", row.type, row.completion, row.reward) for row in rows
    ]
    played = Counter(match.student.name for match in {id(r.match): r.match for r in rows}.values())
    met: Counter[str] = Counter()
    for match in {id(row.match): row.match for row in rows}.values():
        name = match.student.name
        share = shares(solving_rows(config.rows, match.student.role), played[name])[met[name]]
        met[name] += 1
        own = [row for row in rows if row.match is match and row.answers]
        if per_task:
            own = [row for row in own if len({answer.reward for answer in row.answers}) > 1]
        for row, attempt in choose_attempts(own, share, generator):
            rewards = [answer.reward for answer in row.answers]
            value = (leave_one_out(rewards) if per_task else rewards)[attempt]
            completion = row.answers[attempt].completion
            drawn.append((match.student.slot, "solve", row.type, completion, value))
    advantages = task_relative(
        [value for *_, value in drawn], [(slot, phase, type) for slot, phase, type, *_ in drawn]
    )
    samples: dict[int, list[Sample]] = {}
    for (slot, _, _, completion, _), advantage in zip(drawn, advantages, strict=True):
        kept = samples.setdefault(slot, [])
        if advantage is not None:
            kept.append(Sample(completion, advantage))
    return samples


def choose_attempts(
    rows: Sequence[Row], count: int, generator: np.random.Generator
) -> list[tuple[Row, int]]:
    """Up to `count` attempts at these rows' tasks, by number; see `training_samples`."""
    by_type: dict[TaskType, list[Row]] = {}
    for row in rows:
        by_type.setdefault(row.type, []).append(row)
    queues: list[list[tuple[Row, int]]] = []
    for own in by_type.values():
        order = [own[int(i)] for i in generator.permutation(len(own))]
        rounds = max(len(row.answers) for row in order)
        queues.append([(row, k) for k in range(rounds) for row in order if k < len(row.answers)])
    chosen: list[tuple[Row, int]] = []
    while len(chosen) < count and any(queues):
        for queue in queues:
            if queue and len(chosen) < count:
                chosen.append(queue.pop(0))
    return chosen


def proposal_rows(rows: int, role: Role) -> int:
    """How many of a member's rows are proposals; the single agent splits its rows in halves."""
    return (rows + 1) // 2 if role is Role.AGENT else rows


def solving_rows(rows: int, role: Role) -> int:
    """How many of a member's rows are attempts."""
    return rows // 2 if role is Role.AGENT else rows
