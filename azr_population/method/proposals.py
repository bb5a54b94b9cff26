"""Records of a step in memory: proposals, attempts at them, and tasks of earlier steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from azr_population.domains.task import ParsedProposal, Task
from azr_population.engines.engine import Completion, Generated
from azr_population.method.matchmaking import Match
from azr_population.method.members import Member
from azr_population.runs.meanings import UNJUDGED


@dataclass
class Attempt:
    """One attempt of a student at a task: of its teacher in this step, or drawn from a buffer,
    outside the matches. Inside AZR students only train on the latter; attempts at proposals only
    estimate solve rates."""

    completion: Completion
    text: str | None
    """The parsed answer; None when the completion had no answer in it."""
    solved: bool = False
    reason: str = "unparsable"
    reward: float = 0.0
    advantage: float | None = None
    """The advantage that its writer trained on; None: the writer did not train on it."""
    type: str = ""
    """The task's type; needed wherever the attempt is trained on."""


@dataclass
class Proposal:
    """One proposal on its way through a step. The phases fill the fields from top to bottom;
    `rewards.reward_proposals` sets the rewards."""

    match: Match
    type: str
    completion: Completion
    parsed: ParsedProposal | None
    task: Task | None = None
    reason: str = "unparsable"
    """The reason for having no task; `ok` when there is one."""
    copies: int = 0
    measures: dict[str, float] = field(default_factory=dict)
    """Measures of the task's program from `Domain.measure`."""
    attempts: list[Attempt] = field(default_factory=list)
    discarded: list[Completion] = field(default_factory=list)
    """Attempts at a proposal that turned out to be invalid; they only count in the budget."""
    gold_probability: float | None = None
    """Probability that the student gives the task's answer, at temperature 1; None: see
    `rewards.ARGUMENTS`."""
    reward: float = 0.0
    advantage: float | None = None
    """The advantage that the teacher trained on; None: it did not train on it."""

    @property
    def student(self) -> Member:
        """The member that attempts the task."""
        return self.match.student

    @property
    def judged(self) -> bool:
        """Whether the proposal is known to be valid or invalid; see `UNJUDGED`."""
        return self.reason not in UNJUDGED

    @property
    def completions(self) -> list[Completion]:
        """All that was written for it."""
        return [
            self.completion,
            *(attempt.completion for attempt in self.attempts),
            *self.discarded,
        ]

    @property
    def solve_rate(self) -> float | None:
        """Share of the attempts that solved the task; None if there is no task."""
        if self.task is None or not self.attempts:
            return None
        return sum(attempt.solved for attempt in self.attempts) / len(self.attempts)


@dataclass
class Replay:
    """A task of an earlier step that a student attempts again (experience replay, Lin 1992).

    AZR's solver trains on tasks of all earlier steps. Without replay a student forgets what its
    teachers no longer propose.
    """

    student: Member
    type: str
    task: Task | None
    """None if the task's gold answer was no longer judged right."""
    attempts: list[Attempt] = field(default_factory=list)
    reason: str = "ok"
    discarded: list[Completion] = field(default_factory=list)
    """Attempts at a task that turned out to be invalid; they only count in the budget."""

    @property
    def completions(self) -> list[Completion]:
        """All that was written for it."""
        return [*(attempt.completion for attempt in self.attempts), *self.discarded]


def matches_of(proposals: Iterable[Proposal]) -> list[Match]:
    """The matches that these proposals belong to, in the order in which they occur."""
    return list({id(proposal.match): proposal.match for proposal in proposals}.values())


def by_match(proposals: Iterable[Proposal]) -> list[Proposal]:
    """The proposals ordered by teacher and student, as in the records."""
    return sorted(
        proposals, key=lambda proposal: (proposal.match.teacher.slot, proposal.match.student.slot)
    )


@dataclass
class PlayedStep:
    """A step after its update, before ratings change and members are replaced."""

    proposals: list[Proposal]
    updates: Mapping[int, Mapping[str, float]]
    """The engine's metrics of each member's update, by slot, with its `rows`."""
    generated: Mapping[int, Generated]
    """Rollouts and tokens that the engine generated in the step, by slot."""
    replayed: Sequence[Attempt] = ()
    """Attempts outside the matches."""
    discarded: Sequence[Completion] = ()
    """Completions outside the matches whose tasks turned out to be invalid."""

    @property
    def completions(self) -> Iterator[Completion]:
        """All that the step has written."""
        for proposal in self.proposals:
            yield from proposal.completions
        yield from self.discarded
        yield from (attempt.completion for attempt in self.replayed)
