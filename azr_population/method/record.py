"""From rows to the records of a run: one line of `metrics.jsonl`, and the tasks and matches.

A line of `metrics.jsonl` is flat: `step`, and numbers under names with slashes, so that
`pandas.read_json(lines=True)` is a table and loggers take the line as it is. A value that is not
known is left out. Units: fractions in [0, 1], times in seconds, lengths in tokens.

    <role>/<metric>, <member>/<metric>   teacher, student, agent; teacher_0, student_1, agent_0
    type/<task type>/<metric>            of the proposals of one task type
    reason/<reason>                      proposals with this verdict; `ok` is valid
    total/..., eval/..., engine/..., evolution/..., past/..., time/<phase>, time/step

A role has the means of its members, but sums of `generated_tokens`, `rollouts`, `trained_tokens`,
`trained_samples` and `updates`, which `total/...` has over all members; `generation` is a member's
alone. All names are in docs/records.md.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from azr_population.domains.domain import Domain
from azr_population.engines.engine import Generated
from azr_population.method.members import Member, Role, Roster
from azr_population.method.proposals import BufferAttempt, Proposal, Replay
from azr_population.runs.directory import RunDirectory
from azr_population.runs.records import mean


@dataclass
class StepRecords:
    """What a step adds to the records of a run, by their names."""

    metrics: dict[str, Any]
    matches: list[dict[str, Any]]
    lineage: list[dict[str, Any]]
    tasks: list[dict[str, Any]]
    notes: list[str]
    """Lines for the console; they are not stored."""
    evals: list[dict[str, Any]] = field(default_factory=list)
    completions: list[dict[str, Any]] = field(default_factory=list)

    def append_to(self, directory: RunDirectory) -> None:
        """Writes the records, metrics last: a step with a line of metrics is complete."""
        directory.append("tasks", self.tasks)
        directory.append("matches", self.matches)
        directory.append("lineage", self.lineage)
        directory.append("evals", self.evals)
        if self.completions:  # no empty file where none are wanted
            directory.append("completions", self.completions)
        directory.append("metrics", [self.metrics])


def share(flags: Iterable[bool]) -> float | None:
    """The share of True; None without any flag."""
    return mean(float(flag) for flag in flags)


def proposal_metrics(rows: Sequence[Proposal], domain: Domain) -> dict[str, float | None]:
    """Metrics of proposals. Means over valid tasks, except validity, reward and length."""
    valid = [row for row in rows if row.task is not None]
    measured = [row.measures for row in valid if row.measures]
    return {
        "valid_frac": share(row.task is not None for row in rows),
        "unique_frac": share(row.copies == 0 for row in valid),
        "proposal_reward": mean(row.reward for row in rows),
        "solve_rate": mean(row.solve_rate for row in valid),
        "proposal_tokens": mean(len(row.completion.token_ids) for row in rows),
        **{m.name: mean(measures[m.name] for measures in measured) for m in domain.measures},
    }


def answer_metrics(rows: Sequence[Proposal]) -> dict[str, float | None]:
    """Metrics of the attempts at these proposals."""
    attempts = [attempt for row in rows for attempt in row.attempts]
    return {
        "parsed_frac": share(attempt.text is not None for attempt in attempts),
        "answer_reward": mean(attempt.reward for attempt in attempts),
        "answer_tokens": mean(len(attempt.completion.token_ids) for attempt in attempts),
        "solve_rate": mean(row.solve_rate for row in rows),
    }


def mean_reward(member: Member, rows: Sequence[Proposal]) -> float | None:
    """The mean reward of a member's proposals and of its attempts in the matches."""
    proposed = [row.reward for row in rows if row.match.teacher is member]
    attempted = [row for row in rows if row.match.student is member]
    return mean([*proposed, *(attempt.reward for row in attempted for attempt in row.attempts)])


ENGINE_METRICS = frozenset({"mismatch_kl", "ess", "is_clip_frac"})
"""How far the sampler's distribution is from the learner's: recorded under `engine/`."""
SUMMED = frozenset({"generated_tokens", "rollouts", "trained_tokens", "trained_samples", "updates"})


def check_budget(
    generated: Mapping[int, Generated],
    rows: Iterable[Proposal | Replay],
    practice: Iterable[BufferAttempt] = (),
) -> None:
    """Compares what the engine generated in a step, by slot, with the completions that the step
    records. A step that generates more than it records would make a member look cheaper than it is.
    Raises RuntimeError: they differ."""
    completions = [completion for row in rows for completion in row.completions]
    completions += [attempt.completion for attempt in practice]
    rollouts: Counter[int] = Counter()
    tokens: Counter[int] = Counter()
    for completion in completions:
        rollouts[completion.slot] += 1
        tokens[completion.slot] += len(completion.token_ids)
    for slot in sorted({*generated, *rollouts}):
        engine, step = generated.get(slot), Generated(rollouts[slot], tokens[slot])
        if (engine or Generated(0, 0)) != step:
            raise RuntimeError(
                f"the engine generated {engine} for slot {slot} in this step, and the step holds "
                f"{step}: all that it generates has to be in its proposals and replays"
            )


def member_metrics(
    member: Member,
    rows: Sequence[Proposal],
    practice: Sequence[BufferAttempt],
    update: Mapping[str, float],
    generated: Generated,
    domain: Domain,
) -> dict[str, float | None]:
    """One member's metrics of a step: results, cost and rating.

    The cost makes populations comparable: `generated_tokens` and `rollouts` count what the engine
    generated, `trained_tokens`, `trained_samples` and `updates` what the member learned from. A
    single agent has no rating. A member that trains on attempts outside the matches (`practice`)
    also has `buffer_solve_rate` and `buffer_reward`.
    """
    proposed = [row for row in rows if row.match.teacher is member]
    attempted = [row for row in rows if row.match.student is member]
    practised = [attempt for attempt in practice if attempt.completion.slot == member.slot]
    metrics: dict[str, float | None] = {
        "generation": member.generation,
        "generated_tokens": generated.tokens,
        "rollouts": generated.rollouts,
    }
    if member.role is not Role.AGENT:
        metrics |= {"mu": member.rating.mu, "sigma": member.rating.sigma}
    if member.role is not Role.STUDENT:
        metrics |= proposal_metrics(proposed, domain)
    if member.role is not Role.TEACHER:
        metrics |= answer_metrics(attempted)
    if practised:
        metrics["buffer_solve_rate"] = share(attempt.solved for attempt in practised)
        metrics["buffer_reward"] = mean(attempt.reward for attempt in practised)
    metrics["reward"] = mean_reward(member, rows)
    renamed = {"tokens": "trained_tokens", "rows": "trained_samples"}
    for name, value in update.items():
        prefix = "engine/" if name in ENGINE_METRICS else ""
        metrics[prefix + renamed.get(name, name)] = value
    return metrics


def win_rates(matches: Sequence[Mapping[str, Any]], invalid_counts: bool) -> dict[str, float]:
    """Each member's share of games won in these lines of `matches.jsonl`, a draw counting half.

    An invalid proposal is a game that the teacher loses if `invalid_counts`, else none.
    """
    points: Counter[str] = Counter()
    games: Counter[str] = Counter()
    for match in matches:
        draws = match["draws"] / 2
        won = match["student_wins"] + (match["forfeits"] if invalid_counts else 0)
        played = won + match["teacher_wins"] + match["draws"]
        points.update({match["student"]: won + draws})
        points.update({match["teacher"]: match["teacher_wins"] + draws})
        games.update({match["student"]: played, match["teacher"]: played})
    return {name: points[name] / count for name, count in games.items() if count}


def role_metrics(
    members: Mapping[str, Mapping[str, float | None]],
) -> dict[str, dict[str, float | None]]:
    """The metrics of each role from those of its members: means, and sums of `SUMMED` ones."""
    roles: dict[str, dict[str, float | None]] = {}
    for role in dict.fromkeys(name.rpartition("_")[0] for name in members):
        role_members = [
            metrics for name, metrics in members.items() if name.rpartition("_")[0] == role
        ]
        names = dict.fromkeys(name for metrics in role_members for name in metrics)
        roles[role] = {
            name: sum(metrics.get(name) or 0 for metrics in role_members)
            if name in SUMMED
            else mean(metrics.get(name) for metrics in role_members)
            for name in names
            if name != "generation"
        }
    return roles


def flatten(prefix: str, values: Mapping[str, float | None]) -> dict[str, float]:
    """`<prefix>/<name>` for all values that are not None."""
    return {f"{prefix}/{name}": value for name, value in values.items() if value is not None}


def step_record(
    step: int,
    roster: Roster,
    rows: Sequence[Proposal],
    practice: Sequence[BufferAttempt],
    updates: Mapping[int, Mapping[str, float]],
    generated: Mapping[int, Generated],
    wins: Mapping[str, float],
    domain: Domain,
) -> dict[str, Any]:
    """The step's line of `metrics.jsonl`; see the module's docstring.

    `updates` and `generated` are by slot, `wins` (see `win_rates`) by name. The host adds
    `time/...`, callbacks the rest.
    """
    members = {}
    for member in roster:
        update = updates.get(member.slot, {})
        written = generated.get(member.slot, Generated(0, 0))
        members[member.name] = member_metrics(member, rows, practice, update, written, domain)
        if member.role is not Role.AGENT and member.name in wins:
            members[member.name]["win_rate"] = wins[member.name]
    line: dict[str, Any] = {"step": step}
    for name, values in (*role_metrics(members).items(), *members.items()):
        line |= flatten(name, values)
    for type in dict.fromkeys(row.type for row in rows):
        type_metrics = proposal_metrics([row for row in rows if row.type == type], domain)
        line |= flatten(f"type/{type}", type_metrics)
    line |= flatten("reason", Counter(str(row.reason) for row in rows))
    for name in sorted(SUMMED):
        line[f"total/{name}"] = sum(metrics.get(name) or 0 for metrics in members.values())
    for name in sorted(ENGINE_METRICS):
        value = mean(metrics.get(f"engine/{name}") for metrics in members.values())
        line |= flatten("engine", {name: value})
    return line


def task_records(step: int, rows: Sequence[Proposal]) -> list[dict[str, Any]]:
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
            "answers": [attempt.text for attempt in row.attempts],
            "solved": [attempt.solved for attempt in row.attempts],
            "reasons": [attempt.reason for attempt in row.attempts],
            "rewards": [attempt.reward for attempt in row.attempts],
            "reward": row.reward,
            "solve_rate": row.solve_rate,
            "copies": row.copies,
            **row.measures,
        }
        for row in rows
        if row.task is not None
    ]


def past_metrics(student: str, rows: Sequence[Proposal]) -> dict[str, Any]:
    """Metrics of a past opponent (`student_1@25`)."""
    valid = [row for row in rows if row.match.student.name == student and row.task is not None]
    rate = mean(row.solve_rate for row in valid)
    return {"past/student": student, **flatten("past", {"tasks": len(valid), "solve_rate": rate})}


def nothing_valid(rows: Sequence[Proposal]) -> list[str]:
    """A note with an example if no proposal of the step is valid.

    Such a step teaches no student; many in a row mean that base and prompts do not fit together.
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
    """The text's `repr`, cut after `longest` characters."""
    return repr(text) if len(text) <= longest else f"{text[:longest]!r}..."
