"""What a cross-play says: ratings of a Rasch model, how far it is from transitive, slopes over
steps, and how well TrueSkill had foreseen it.

Sources: Rasch, "Probabilistic models for some intelligence and attainment tests" (1960): the chance
that student s solves a task of teacher t is 1 / (1 + exp(b_t - a_s)); Brier, "Verification of
forecasts expressed in terms of probability" (1950).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from azr_population.analysis.statistics import Estimate
from azr_population.measuring.stored import StoredMember
from azr_population.method.members import RatingSystem

Matrix = NDArray[np.float64]
_DRAWS = 400
_RIDGE = 1e-3
"""Of the Rasch fit: keeps abilities finite where everything or nothing is solved."""


@dataclass(frozen=True)
class Moved:
    """How far students (or teachers) of a run came against the earliest of the other side."""

    run: str
    role: str
    first: int
    last: int
    """Steps between which it was seen."""
    share: Estimate
    """Of tasks solved (or left unsolved); `n` is the number of stored steps."""


@dataclass(frozen=True)
class CrossPlay:
    """Everybody against everybody."""

    teachers: tuple[StoredMember, ...]
    students: tuple[StoredMember, ...]
    rates: tuple[Matrix, ...]
    """For each teacher the solve rate of each student at its n valid tasks, float64 [S, n]."""
    proposed: int
    """Proposals of each teacher, valid or not."""

    @cached_property
    def matrix(self) -> Matrix:
        """Mean solve rates, float64 [T, S]; NaN for a teacher without a valid task."""
        return self._by_teacher(lambda rates: rates.mean(axis=1))

    @property
    def tasks(self) -> NDArray[np.int64]:
        """Valid tasks of each teacher."""
        return np.array([rate.shape[1] for rate in self.rates])

    @cached_property
    def rasch(self) -> tuple[Matrix, Matrix]:
        """(difficulty of each teacher, ability of each student) in logits; abilities have mean 0.
        A teacher without a valid task has NaN."""
        from scipy.optimize import minimize

        played = self.tasks > 0
        observed, weight = self.matrix[played], self.tasks[played][:, None]
        count = len(observed)

        def loss(x: Matrix) -> tuple[float, Matrix]:
            logits = x[count:][None, :] - x[:count, None]
            value = (weight * (np.logaddexp(0.0, logits) - observed * logits)).sum()
            slope = weight * (1.0 / (1.0 + np.exp(-logits)) - observed)
            gradient = np.concatenate([-slope.sum(axis=1), slope.sum(axis=0)])
            return float(value + _RIDGE * (x @ x) / 2), gradient + _RIDGE * x

        fit = minimize(loss, np.zeros(count + len(self.students)), jac=True, method="L-BFGS-B").x
        shift = fit[count:].mean()
        difficulty = np.full(len(self.teachers), np.nan)
        difficulty[played] = fit[:count] - shift
        return difficulty, fit[count:] - shift

    def residuals(self) -> float:
        """Root mean square of (seen - fitted) in standard errors of a mean over tasks; 1 where one
        number per member explains the matrix."""
        difficulty, ability = self.rasch
        fitted = 1.0 / (1.0 + np.exp(difficulty[:, None] - ability[None, :]))
        errors = self._errors()
        usable = np.isfinite(errors) & (errors > 0)
        scaled = (self.matrix - fitted)[usable] / errors[usable]
        return float(np.sqrt((scaled**2).mean())) if scaled.size else math.nan

    def cycles(self) -> float:
        """Share of pairs of teachers x pairs of students in which the order turns round: one
        student is better against one teacher, the other against the other, both by two standard
        errors."""
        matrix, errors = self.matrix, self._errors()
        turned = total = 0
        for s, u in combinations(range(len(self.students)), 2):
            error = np.hypot(errors[:, s], errors[:, u])
            signs = np.sign(matrix[:, s] - matrix[:, u])
            signs[~(np.abs(matrix[:, s] - matrix[:, u]) > 2 * error)] = 0
            turned += int((signs > 0).sum() * (signs < 0).sum())
            total += math.comb(len(self.teachers), 2)
        return turned / total if total else math.nan

    def calibration(self) -> tuple[float, float, int]:
        """(Brier of TrueSkill's odds, Brier of a constant, games): each task is a game, won by
        the side with more than half of the solve rate; members of one run at one step, as they were
        rated."""
        odds, games = [], []
        for teacher, rate in zip(self.teachers, self.rates, strict=True):
            for student, solved in zip(self.students, rate, strict=True):
                same = (teacher.run, teacher.step) == (student.run, student.step)
                if same and teacher.rating and student.rating:
                    p = RatingSystem().win_probability(student.rating, teacher.rating)
                    odds += [p] * len(solved)
                    games += list(np.where(solved == 0.5, 0.5, solved > 0.5))
        if not games:
            return math.nan, math.nan, 0
        seen = np.array(games, dtype=np.float64)
        return float(((odds - seen) ** 2).mean()), float(seen.var()), len(seen)

    def slopes(self) -> dict[str, dict[str, float]]:
        """For each run the change per 100 steps of its students' solve rate on the tasks of its
        earliest teachers, and of the share of its teachers' tasks that its earliest students leave
        unsolved; what has no two steps is left out."""
        return self._slopes(self.matrix)

    def changes(self) -> list[Moved]:
        """The same lines between the first and the last stored step, for nothing is known beyond
        them; with 95% bootstrap intervals over each teacher's tasks. Lines through two steps are
        among them, so look at the interval."""
        chance = np.random.default_rng(0)
        resampled = [self._slopes(self._redrawn(chance)) for _ in range(_DRAWS)]
        moves = []
        for run, slopes in self.slopes().items():
            for role, slope in slopes.items():
                who = self.students if role == "student" else self.teachers
                steps = [member.step for member in who if member.run == run]
                span = (steps[-1] - steps[0]) / 100
                again = [member[run][role] for member in resampled if role in member[run]]
                low, high = span * np.percentile(again, (2.5, 97.5))
                estimate = Estimate(span * slope, float(low), float(high), (len(set(steps)),))
                moves.append(Moved(run, role, steps[0], steps[-1], estimate))
        return moves

    def _redrawn(self, chance: np.random.Generator) -> Matrix:
        """The matrix of as many tasks of each teacher, drawn with replacement."""
        return self._by_teacher(lambda r: r[:, chance.integers(0, len(r.T), len(r.T))].mean(axis=1))

    def _by_teacher(self, statistic: Callable[[Matrix], Matrix], least: int = 1) -> Matrix:
        """A statistic of each teacher's solve rates, float64 [T, S]; NaN below `least` tasks."""
        nothing = np.full(len(self.students), np.nan)
        return np.stack([statistic(r) if len(r.T) >= least else nothing for r in self.rates])

    def _slopes(self, matrix: Matrix) -> dict[str, dict[str, float]]:
        slopes = {}
        for run in dict.fromkeys(member.run for member in self.teachers):
            t = [i for i, member in enumerate(self.teachers) if member.run == run]
            s = [i for i, member in enumerate(self.students) if member.run == run]
            early_t = [i for i in t if self.teachers[i].step == self.teachers[t[0]].step]
            early_s = [i for i in s if self.students[i].step == self.students[s[0]].step]
            both = {
                "student": _slope(
                    [self.students[i].step for i in s],
                    pd.DataFrame(matrix[np.ix_(early_t, s)]).mean(axis=0),
                ),
                "teacher": _slope(
                    [self.teachers[i].step for i in t],
                    1 - pd.DataFrame(matrix[np.ix_(t, early_s)]).mean(axis=1),
                ),
            }
            slopes[run] = {role: slope for role, slope in both.items() if math.isfinite(slope)}
        return slopes

    def _errors(self) -> Matrix:
        """Standard error of each cell over the teacher's tasks, float64 [T, S]."""
        return self._by_teacher(lambda r: r.std(axis=1, ddof=1) / math.sqrt(len(r.T)), least=2)


def _slope(steps: Sequence[int], values: pd.Series) -> float:
    line = values.set_axis(steps).dropna()
    return float(100 * np.polyfit(line.index, line, 1)[0]) if line.index.nunique() > 1 else math.nan
