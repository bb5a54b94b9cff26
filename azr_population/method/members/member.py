"""A member of a population."""

from dataclasses import dataclass, field
from enum import Enum


class Role(str, Enum):
    """What a member does in a step; PopuLoRA's teachers only propose, its students only solve."""

    TEACHER = "teacher"
    STUDENT = "student"
    AGENT = "agent"
    """The single self-playing model of AZR: proposes and solves."""

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Rating:
    """A TrueSkill belief: skill ~ N(mu, sigma^2), in TrueSkill points (25 +- 25/3 at the start)."""

    mu: float = 25.0
    sigma: float = 25.0 / 3.0

    @property
    def conservative(self) -> float:
        """mu - 3 sigma: the skill the member has with 99.9% probability."""
        return self.mu - 3.0 * self.sigma


@dataclass
class Member:
    """One LoRA adapter's identity. `slot` is its place in the bank and never changes.

    `name` (`teacher_0`) belongs to the slot; `generation` counts how often the slot's adapter was
    replaced; `born` is the step of the last replacement. `step_sizes` are those that made it and
    its forebears, by operator and option (`full_gaussian.eps`): what self-adaptation inherits.
    """

    name: str
    role: Role
    slot: int
    rating: Rating = field(default_factory=Rating)
    generation: int = 0
    born: int = 0
    step_sizes: dict[str, float] = field(default_factory=dict)
    hyperparameters: dict[str, float] = field(default_factory=dict)
    """Those that evolve with its weights, by name (`lr`)."""
    skill: float | None = None
    """What was measured at this step for a fitness that wants more than ratings; None elsewhere."""

    @property
    def place(self) -> str:
        """What the random streams of an exam are named by: its name as a student's, so that the
        single agent and the first student of another arm draw alike."""
        return self.name.replace(str(Role.AGENT), str(Role.STUDENT))
