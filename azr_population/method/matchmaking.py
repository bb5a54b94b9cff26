"""Matchmaking: PFSP weightings of TrueSkill odds, and the draw of a step's matches.

In AlphaStar a learner draws its opponent with weight f(P(the learner wins)). Here both sides learn;
the student stands for the learner and the teacher for the opponent.

A draw is a set of distinct (teacher, student) pairs in which every teacher occurs equally often,
and every student too. Its probability is proportional to the product of its pairs' weights. For
small populations (up to 12 against 12) it is sampled exactly; a draw one by one, which must steer
around dead ends, would have a distribution that depends on the order and that nobody can write
down. For larger ones a Markov chain of pair swaps has the same distribution in the limit.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from azr_population.config.schema import MatchmakingConfig
from azr_population.method.members import Member, RatingSystem

WEIGHTS: dict[str, Callable[[float], float]] = {
    "balanced": lambda p: p * (1.0 - p),
    "uniform": lambda p: 1.0,
}
"""Weight of a pairing from p, the chance in [0, 1] that the student beats the teacher, by
`matchmaking.weighting`. `balanced`, most on even matches: PFSP's f_var (Vinyals et al. 2019,
AlphaStar, Methods; PopuLoRA: near-balanced), here among current members only, no past ones.
`uniform`, without ratings: the ablation of matchmaking."""

EXACT_LIMIT = 50_000
"""Terms in the exact sampler's sums above which the Markov chain takes over."""
SWEEPS = 50
"""Swaps tried by the Markov chain per match."""
FLOOR = 1e-6
"""The least weight of a pairing relative to its teacher's best, so that every draw can be completed
and the products stay far from underflow."""

Pair = tuple[int, int]
Weights = NDArray[np.float64]


def draw_pairs(weights: Weights, generator: np.random.Generator) -> list[Pair]:
    """Draws the matches of a step.

    Args:
        weights: float [T, S], not negative; the weight of teacher t against student s.
        generator: the only source of chance.

    Returns:
        lcm(T, S) pairs (t, s), sorted, no pair twice: each teacher in lcm/T of them, each student
        in lcm/S. One to one when T equals S.
    """
    weights = _normalised(weights)
    teachers, students = weights.shape
    per_teacher, per_student = _matches_per_member(teachers, students)
    terms = (per_student + 1) ** students * math.comb(students, per_teacher)
    sample = _exact if terms <= EXACT_LIMIT else _swap_chain
    return sorted(sample(weights, generator))


def _matches_per_member(teachers: int, students: int) -> tuple[int, int]:
    """The number of matches of each teacher and of each student in a step."""
    matches = math.lcm(teachers, students)
    return matches // teachers, matches // students


def _normalised(weights: Weights) -> Weights:
    """Each teacher's weights relative to its best, at least FLOOR.

    Scaling a row changes no probability: every draw has equally many pairs of each teacher.
    """
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError("weights must be finite and not negative")
    best = weights.max(axis=1, keepdims=True)
    return np.maximum(np.where(best > 0, weights / np.where(best > 0, best, 1.0), 1.0), FLOOR)


def _exact(weights: Weights, generator: np.random.Generator) -> list[Pair]:
    """Samples teacher after teacher from the exact conditional distribution.

    `mass(t, room)` sums the weights of all ways to complete the draw from teacher t on when student
    s may still play room[s] matches (for T = S this is the permanent of the remaining matrix).
    """
    teachers, students = weights.shape
    per_teacher, per_student = _matches_per_member(teachers, students)
    subsets = list(combinations(range(students), per_teacher))
    worth = [[float(np.prod(row[list(subset)])) for subset in subsets] for row in weights]
    masses: dict[tuple[int, ...], float] = {(0,) * students: 1.0}

    def mass(t: int, room: tuple[int, ...]) -> float:
        # `room` alone names the state: its sum tells which teacher is next.
        if room not in masses:
            masses[room] = sum(term for _, term in choices(t, room))
        return masses[room]

    def choices(t: int, room: tuple[int, ...]) -> list[tuple[int, float]]:
        return [
            (i, worth[t][i] * mass(t + 1, _after(room, subset)))
            for i, subset in enumerate(subsets)
            if all(room[s] for s in subset)
        ]

    pairs: list[Pair] = []
    room = (per_student,) * students
    for t in range(teachers):
        options = choices(t, room)
        terms = np.array([term for _, term in options])
        i = options[generator.choice(len(options), p=terms / terms.sum())][0]
        pairs += [(t, s) for s in subsets[i]]
        room = _after(room, subsets[i])
    return pairs


def _after(room: tuple[int, ...], subset: tuple[int, ...]) -> tuple[int, ...]:
    left = list(room)
    for s in subset:
        left[s] -= 1
    return tuple(left)


def _swap_chain(weights: Weights, generator: np.random.Generator) -> list[Pair]:
    """Metropolis over swaps (a, x), (b, y) -> (a, y), (b, x) from a shuffled round-robin start.

    Swaps keep every member's number of matches and reach every draw (Ryser 1957).
    """
    teachers, students = weights.shape
    per_teacher, _ = _matches_per_member(teachers, students)
    order_t, order_s = generator.permutation(teachers), generator.permutation(students)
    # Consecutive stretches of the students, laid end to end, fill each student equally.
    pairs = [
        (int(order_t[t]), int(order_s[(t * per_teacher + i) % students]))
        for t in range(teachers)
        for i in range(per_teacher)
    ]
    paired = set(pairs)
    tries = SWEEPS * len(pairs)
    picks = generator.integers(len(pairs), size=(tries, 2))
    chances = generator.random(tries)
    for (i, j), chance in zip(picks, chances, strict=True):
        (a, x), (b, y) = pairs[i], pairs[j]
        if (a, y) in paired or (b, x) in paired:
            continue
        if chance * weights[a, x] * weights[b, y] < weights[a, y] * weights[b, x]:
            paired -= {pairs[i], pairs[j]}
            pairs[i], pairs[j] = (a, y), (b, x)
            paired |= {pairs[i], pairs[j]}
    return pairs


@dataclass(frozen=True)
class Match:
    """A teacher paired with a student for one step; both the same for the single agent."""

    teacher: Member
    student: Member


class Matchmaker:
    """Rates members and draws matches by the run's `matchmaking` group."""

    def __init__(self, config: MatchmakingConfig) -> None:
        self.ratings = RatingSystem()
        self.weigh = WEIGHTS[config.weighting]

    def win_probability(self, match: Match) -> float:
        """The chance that the student beats the teacher, by their present ratings."""
        return self.ratings.win_probability(match.student.rating, match.teacher.rating)

    def weights(self, teachers: Sequence[Member], students: Sequence[Member]) -> Weights:
        """The weight of every pairing, float64 [T, S]."""
        odds = [[self.win_probability(Match(t, s)) for s in students] for t in teachers]
        return np.array([list(map(self.weigh, row)) for row in odds], dtype=np.float64)

    def draw(
        self,
        teachers: Sequence[Member],
        students: Sequence[Member],
        generator: np.random.Generator,
    ) -> list[Match]:
        """The lcm(T, S) matches of a step in teacher order: members of one role play equally many,
        and no pair occurs twice; see `draw_pairs`."""
        pairs = draw_pairs(self.weights(teachers, students), generator)
        return [Match(teachers[t], students[s]) for t, s in pairs]


def split_evenly(total: int, parts: int) -> list[int]:
    """`total` split into `parts` as evenly as whole numbers allow, larger shares first."""
    return [total // parts + (part < total % parts) for part in range(parts)]
