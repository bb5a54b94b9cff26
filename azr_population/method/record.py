"""From rows to the records of a run: one line of `metrics.jsonl`, and the tasks and matches."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from azr_population.domains.domain import Domain
from azr_population.method.members import Member, Role, Roster, outcome_of, tally
from azr_population.method.rows import Practice, Row
from azr_population.runs.directory import RunDirectory


@dataclass
class StepRecords:
    """What a step adds to the records of a run, by their names."""

    metrics: dict[str, Any]
    matches: list[dict[str, Any]]
    lineage: list[dict[str, Any]]
    tasks: list[dict[str, Any]]
    notes: list[str]
    """Lines for the person watching; they are not written down."""
    exams: list[dict[str, Any]] = field(default_factory=list)
    completions: list[dict[str, Any]] = field(default_factory=list)

    def append_to(self, directory: RunDirectory) -> None:
        """Writes the records; a step whose metrics are there has all of them."""
        directory.append("tasks", self.tasks)
        directory.append("matches", self.matches)
        directory.append("lineage", self.lineage)
        directory.append("exams", self.exams)
        if self.completions:  # no empty file where none are wanted
            directory.append("completions", self.completions)
        directory.append("metrics", [self.metrics])


def mean(values: Iterable[float | None]) -> float | None:
    """The mean of what is there; None of nothing."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def share(flags: Iterable[bool]) -> float | None:
    """The share of True; None of nothing."""
    return mean(float(flag) for flag in flags)


def proposal_metrics(rows: Sequence[Row], domain: Domain) -> dict[str, float | None]:
    """How well these proposals did. Means over valid tasks, but for validity, reward and length."""
    valid = [row for row in rows if row.task is not None]
    measured = [m for row in valid if row.task and (m := domain.measure(row.task.program))]
    return {
        "validity": share(row.task is not None for row in rows),
        "unique": share(row.copies == 0 for row in valid),
        "proposal_reward": mean(row.reward for row in rows),
        "solve_rate": mean(row.solve_rate for row in valid),
        "proposal_tokens": mean(len(row.completion.token_ids) for row in rows),
        **{m.name: mean(one[m.name] for one in measured) for m in domain.measures},
    }


def answer_metrics(rows: Sequence[Row]) -> dict[str, float | None]:
    """How well the attempts at these proposals did."""
    answers = [answer for row in rows for answer in row.answers]
    return {
        "parsed": share(answer.text is not None for answer in answers),
        "answer_reward": mean(answer.reward for answer in answers),
        "answer_tokens": mean(len(answer.completion.token_ids) for answer in answers),
        "solve_rate": mean(row.solve_rate for row in rows),
    }


def mean_reward(member: Member, rows: Sequence[Row]) -> float | None:
    """The mean reward of a member's proposals and of its attempts in the matches."""
    proposed = [row.reward for row in rows if row.match.teacher is member]
    solved = [row for row in rows if row.match.student is member]
    return mean([*proposed, *(answer.reward for row in solved for answer in row.answers)])


def member_metrics(
    member: Member,
    rows: Sequence[Row],
    practice: Sequence[Practice],
    updates: Mapping[str, float],
    domain: Domain,
) -> dict[str, Any]:
    """One member's step: what it did, what it cost and where it stands.

    `tokens` and `rollouts` count what the member generated; `trained_tokens`, `trained_rows` and
    `updates` what it learned from. They are what makes two arms comparable. A single agent meets
    nobody, so it has no rating. Who trains on attempts outside the matches (`practice`) has
    `trained_solve_rate` and `trained_reward` as well.
    """
    proposed = [row for row in rows if row.match.teacher is member]
    solved = [row for row in rows if row.match.student is member]
    practised = [attempt for attempt in practice if attempt.slot == member.slot]
    written = [row.completion for row in proposed]
    written += [answer.completion for row in solved for answer in row.answers]
    written += [attempt.completion for attempt in practised]
    figures: dict[str, Any] = {
        "role": str(member.role),
        "generation": member.generation,
        "tokens": sum(len(completion.token_ids) for completion in written),
        "rollouts": len(written),
    }
    if member.role is not Role.AGENT:
        figures |= {"mu": member.rating.mu, "sigma": member.rating.sigma}
    if member.role is not Role.STUDENT:
        figures |= proposal_metrics(proposed, domain)
    if member.role is not Role.TEACHER:
        figures |= answer_metrics(solved)
    if practised:
        figures["trained_solve_rate"] = share(attempt.solved for attempt in practised)
        figures["trained_reward"] = mean(attempt.reward for attempt in practised)
    figures["reward"] = mean_reward(member, rows)
    for name, value in updates.items():
        figures[f"trained_{name}" if name in ("tokens", "rows") else name] = value
    return figures


def role_metrics(members: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Per role: the members' means, but sums of tokens, rollouts and updates."""
    summed = ("tokens", "rollouts", "trained_tokens", "trained_rows", "updates")
    left_out = ("role", "mu", "sigma", "generation")
    roles: dict[str, dict[str, Any]] = {}
    for role in dict.fromkeys(str(figures["role"]) for figures in members.values()):
        of_role = [figures for figures in members.values() if figures["role"] == role]
        names = dict.fromkeys(
            name for figures in of_role for name in figures if name not in left_out
        )
        roles[role] = {
            name: sum(figures.get(name, 0) or 0 for figures in of_role)
            if name in summed
            else mean(figures.get(name) for figures in of_role)
            for name in names
        }
    return roles


def step_record(
    step: int,
    roster: Roster,
    rows: Sequence[Row],
    practice: Sequence[Practice],
    updates: Mapping[int, Mapping[str, float]],
    domain: Domain,
) -> dict[str, Any]:
    """What a step adds to the line of `metrics.jsonl`. Lengths in tokens, shares in [0, 1].

    The host adds `seconds` and `phases` (seconds too), observers the rest.
    """
    members = {
        m.name: member_metrics(m, rows, practice, updates.get(m.slot, {}), domain) for m in roster
    }
    types = {
        str(type): proposal_metrics([row for row in rows if row.type == type], domain)
        for type in dict.fromkeys(row.type for row in rows)
    }
    return {
        "step": step,
        "roles": role_metrics(members),
        "members": members,
        "types": types,
        "reasons": dict(Counter(row.reason for row in rows)),
        "exam": None,
    }


def match_record(
    step: int,
    rows: Sequence[Row],
    before: tuple[Member, Member],
    win_probability: float,
) -> dict[str, Any]:
    """The line of `matches.jsonl`; `before` are copies of both members from before the match.

    `win_probability` is the student's, in a game on one task, as the ratings had it.
    """
    match = rows[0].match
    valid = [row for row in rows if row.task is not None]
    return {
        "step": step,
        "teacher": match.teacher.name,
        "student": match.student.name,
        "proposed": len(rows),
        "valid": len(valid),
        "solve_rate": mean(row.solve_rate for row in valid),
        **tally(outcome_of(row.solve_rate) for row in rows),
        "win_probability": win_probability,
        "teacher_mu": [before[0].rating.mu, match.teacher.rating.mu],
        "student_mu": [before[1].rating.mu, match.student.rating.mu],
    }


def task_records(step: int, rows: Sequence[Row], domain: Domain) -> list[dict[str, Any]]:
    """The lines of `tasks.jsonl`: every valid task with its attempts and verdicts."""
    return [
        {
            "step": step,
            "type": str(row.type),
            "teacher": row.match.teacher.name,
            "student": row.match.student.name,
            "program": row.task.program,
            "inputs": list(row.task.inputs),
            "outputs": list(row.task.outputs),
            "message": row.task.message,
            "answers": [answer.text for answer in row.answers],
            "solved": [answer.solved for answer in row.answers],
            "reasons": [answer.reason for answer in row.answers],
            "rewards": [answer.reward for answer in row.answers],
            "reward": row.reward,
            "solve_rate": row.solve_rate,
            "copies": row.copies,
            **domain.measure(row.task.program),
        }
        for row in rows
        if row.task is not None
    ]


def guest_metrics(student: str, rows: Sequence[Row]) -> dict[str, Any]:
    """What a past opponent did with the tasks that it was given."""
    valid = [row for row in rows if row.match.student.name == student and row.task is not None]
    rate = mean(row.solve_rate for row in valid)
    return {"student": student, "tasks": len(valid), "solve_rate": rate}


def nothing_valid(rows: Sequence[Row]) -> list[str]:
    """One line, with an example, when there are proposals and none of them became a task.

    Such a step teaches nobody to solve; step after step it means that base and prompts do not fit.
    """
    if not rows or any(row.task is not None for row in rows):
        return []
    reasons = Counter(row.reason for row in rows)
    (reason, _), *_ = reasons.most_common()
    example = next(row for row in rows if row.reason == reason)
    counts = ", ".join(f"{count} {name}" for name, count in reasons.most_common())
    return [
        f"no valid proposal in this step ({counts}); {example.match.teacher.name} wrote, for a "
        f"{example.type} task: {shorten(example.completion.text)}"
    ]


def shorten(text: str, longest: int = 200) -> str:
    """The text on one line, as Python would write it, cut after so many characters."""
    return repr(text) if len(text) <= longest else f"{text[:longest]!r}..."
