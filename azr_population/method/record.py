"""From proposals to the records of a run: one line of `metrics.jsonl`, and the tasks and matches.

A line of `metrics.jsonl` is flat: `step`, and numbers under names with slashes, so that
`pandas.read_json(lines=True)` is a table and loggers take the line as it is. A value that is not
known is left out. docs/records.md has all names and units.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from azr_population.domains.domain import Domain
from azr_population.engines.engine import Completion, Generated, GeneratedCounts
from azr_population.method.members import Member, Role, Roster
from azr_population.method.proposals import PlayedStep, Proposal
from azr_population.runs.directory import RunDirectory
from azr_population.runs.records import mean


@dataclass
class StepRecords:
    """Lines that a step adds to the records of a run, by the names of the records."""

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
        for name in ("tasks", "matches", "lineage", "evals", "completions"):
            if name != "completions" or self.completions:  # no empty file where none are wanted
                directory.append(name, getattr(self, name))
        directory.append("metrics", [self.metrics])


ENGINE_METRICS = frozenset({"mismatch_kl", "ess", "is_clip_frac"})
"""Distances between the sampler's distribution and the learner's: recorded under `engine/`."""
SUMMED = frozenset({"generated_tokens", "rollouts", "trained_tokens", "trained_samples", "updates"})
_RENAMED = {"tokens": "trained_tokens", "rows": "trained_samples"}
Metrics = dict[str, float | None]


def step_record(
    step: int,
    roster: Roster,
    domain: Domain,
    played: PlayedStep,
    matches: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """The step's line of `metrics.jsonl` (see the module's docstring) with the ratings of these
    lines of `matches.jsonl`. The host adds `time/...`, callbacks the rest."""
    proposals, wins = played.proposals, win_rates(matches)
    members: dict[str, Metrics] = {}
    for member in roster:
        metrics = _member_metrics(member, played, domain)
        rollouts, tokens = played.generated.get(member.slot, (0, 0))
        metrics |= {"generated_tokens": tokens, "rollouts": rollouts}
        for name, value in played.updates.get(member.slot, {}).items():
            prefix = "engine/" if name in ENGINE_METRICS else ""
            metrics[prefix + _RENAMED.get(name, name)] = value
        if member.role is not Role.AGENT:
            metrics["win_rate"] = wins.get(member.name)
        members[member.name] = metrics
    line: dict[str, Any] = {"step": step}
    for role, members_of_role in roster.sub_populations.items():
        line |= flatten(
            str(role), _role_metrics([members[member.name] for member in members_of_role])
        )
    for name, metrics in members.items():
        line |= flatten(name, metrics)
    for type in dict.fromkeys(proposal.type for proposal in proposals):
        proposals_of_type = [proposal for proposal in proposals if proposal.type == type]
        line |= flatten(f"type/{type}", _proposal_metrics(proposals_of_type, domain))
    line |= flatten("reason", Counter(str(proposal.reason) for proposal in proposals))
    total = _role_metrics(list(members.values()))
    line |= flatten("total", {name: total.get(name, 0) for name in sorted(SUMMED)})
    return line | {
        name: total[name]
        for metric in sorted(ENGINE_METRICS)
        if total.get(name := f"engine/{metric}") is not None
    }


def _member_metrics(member: Member, played: PlayedStep, domain: Domain) -> Metrics:
    """A single agent has no rating. A member that trains on attempts outside the matches
    (`replayed`) also has `replay_solve_rate` and `replay_reward`."""
    proposals = played.proposals
    attempted = [proposal for proposal in proposals if proposal.match.student is member]
    own_replayed = [each for each in played.replayed if each.completion.slot == member.slot]
    metrics: Metrics = {"generation": member.generation}
    if member.role is not Role.AGENT:
        metrics |= {"mu": member.rating.mu, "sigma": member.rating.sigma}
    if member.role is not Role.STUDENT:
        metrics |= _proposal_metrics(
            [proposal for proposal in proposals if proposal.match.teacher is member], domain
        )
    if member.role is not Role.TEACHER:
        attempts = [attempt for proposal in attempted for attempt in proposal.attempts]
        metrics |= {
            "parsed_frac": mean(attempt.text is not None for attempt in attempts),
            "answer_reward": mean(attempt.reward for attempt in attempts),
            "answer_tokens": mean(len(attempt.completion.token_ids) for attempt in attempts),
            "answer_entropy": _surprise(attempt.completion for attempt in attempts),
            "solve_rate": mean(proposal.solve_rate for proposal in attempted),
        }
    return metrics | {
        "replay_solve_rate": mean(attempt.solved for attempt in own_replayed),
        "replay_reward": mean(attempt.reward for attempt in own_replayed),
        "reward": reward_in_step(member, proposals),
    }


def _proposal_metrics(proposals: Sequence[Proposal], domain: Domain) -> Metrics:
    """Metrics of proposals. Means over valid tasks, except validity and reward (of those that were
    judged) and length."""
    judged = [proposal for proposal in proposals if proposal.judged]
    valid = [proposal for proposal in judged if proposal.task is not None]
    return {
        "valid_frac": mean(proposal.task is not None for proposal in judged),
        "unique_frac": mean(proposal.copies == 0 for proposal in valid),
        "proposal_reward": mean(proposal.reward for proposal in judged),
        "solve_rate": mean(proposal.solve_rate for proposal in valid),
        "proposal_tokens": mean(len(proposal.completion.token_ids) for proposal in proposals),
        "proposal_entropy": _surprise(proposal.completion for proposal in proposals),
        **{m.name: mean(each.measures.get(m.name) for each in valid) for m in domain.measures},
    }


def _surprise(completions: Iterable[Completion]) -> float | None:
    """The mean surprise of sampled tokens, in nats a token: an estimate of the policy's entropy."""
    return mean(-logprob for completion in completions for logprob in completion.logprobs)


def _role_metrics(members: Sequence[Metrics]) -> Metrics:
    """Means of the members' metrics, and sums of `SUMMED` ones."""
    names = dict.fromkeys(name for metrics in members for name in metrics)
    return {
        name: sum(metrics.get(name) or 0 for metrics in members)
        if name in SUMMED
        else mean(metrics.get(name) for metrics in members)
        for name in names
        if name != "generation"
    }


def reward_in_step(member: Member, proposals: Sequence[Proposal]) -> float | None:
    """The mean reward of a member's proposals and of its attempts in the matches."""
    proposed = [p.reward for p in proposals if p.match.teacher is member and p.judged]
    attempted = [proposal for proposal in proposals if proposal.match.student is member]
    return mean(
        [*proposed, *(attempt.reward for proposal in attempted for attempt in proposal.attempts)]
    )


def flatten(prefix: str, values: Mapping[str, float | None]) -> dict[str, float]:
    """`<prefix>/<name>` for all values that are not None."""
    return {f"{prefix}/{name}": value for name, value in values.items() if value is not None}


def check_budget(generated: Mapping[int, Generated], held: Iterable[Completion]) -> None:
    """Compares what the engine generated in a step, by slot, with the completions that the step
    holds. A step that generates more than it records would make a member look cheaper than it is.
    Raises RuntimeError: they differ."""
    counts = GeneratedCounts()
    counts.add(held)
    if {slot: count for slot, count in generated.items() if any(count)} != counts:
        raise RuntimeError(
            f"the engine generated {dict(generated)} by slot in this step, and the step holds "
            f"{counts}: all that it generates has to be in its proposals and replays"
        )


def win_rates(matches: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Each member's share of games won in these lines of `matches.jsonl`, a draw counting half.

    An invalid proposal is a game that the teacher loses.
    """
    points: Counter[str] = Counter()
    games: Counter[str] = Counter()
    for match in matches:
        draws = match["draws"] / 2
        won = match["student_wins"] + match["invalid"]
        played = won + match["teacher_wins"] + match["draws"]
        points.update({match["student"]: won + draws})
        points.update({match["teacher"]: match["teacher_wins"] + draws})
        games.update({match["student"]: played, match["teacher"]: played})
    return {name: points[name] / count for name, count in games.items() if count}


def task_records(step: int, proposals: Sequence[Proposal]) -> list[dict[str, Any]]:
    """The lines of `tasks.jsonl`: every valid task with its attempts and verdicts."""
    return [
        {
            "step": step,
            "type": str(proposal.type),
            "teacher": proposal.match.teacher.name,
            "student": proposal.match.student.name,
            "program": proposal.task.program,
            "inputs": list(proposal.task.inputs),
            "outputs": list(proposal.task.outputs),
            "message": proposal.task.message,
            "answers": [attempt.text for attempt in proposal.attempts],
            "solved": [attempt.solved for attempt in proposal.attempts],
            "reasons": [attempt.reason for attempt in proposal.attempts],
            "rewards": [attempt.reward for attempt in proposal.attempts],
            "reward": proposal.reward,
            "solve_rate": proposal.solve_rate,
            "copies": proposal.copies,
            **proposal.measures,
        }
        for proposal in proposals
        if proposal.task is not None
    ]


def nothing_valid_notes(proposals: Sequence[Proposal]) -> list[str]:
    """A note with an example if no proposal of the step is valid.

    Such a step teaches no student; many in a row mean that base and prompts do not fit together.
    """
    if not proposals or any(proposal.task is not None for proposal in proposals):
        return []
    reasons = Counter(proposal.reason for proposal in proposals)
    (reason, _), *_ = reasons.most_common()
    example = next(proposal for proposal in proposals if proposal.reason == reason)
    counts = ", ".join(f"{count} {name}" for name, count in reasons.most_common())
    text = example.completion.text
    return [
        f"no valid proposal in this step ({counts}); {example.match.teacher.name} wrote, for a "
        f"{example.type} task: {text[:200]!r}{'...' if len(text) > 200 else ''}"
    ]
