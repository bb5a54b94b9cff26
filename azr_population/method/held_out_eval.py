"""The held-out eval: the same fixed tasks for every member that solves, at every eval.

The solve rate of self-play mixes skill with changes of the tasks; the eval keeps the tasks fixed.

The main metric is greedy decoding, as in the paper. A gain at temperature 1 can be sharpening
alone. The eval also reports temperature 1 and pass@k. If a task has exactly one right answer text,
its score at temperature 1 is that text's probability and needs no samples. Otherwise it is the
share of right answers among samples. Their random numbers depend on (eval, run, step, role and
number of the member): other members do not change a member's score, two evals share no noise, and
populations with one seed draw the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import correlation
from typing import Any

import numpy as np

from azr_population.config.schema import Config
from azr_population.domains.domain import Domain
from azr_population.domains.task import Task
from azr_population.errors import UserError
from azr_population.method.members import Member
from azr_population.method.phases import StepContext, gold_probabilities, solve_and_grade
from azr_population.runs.records import mean
from azr_population.streams import Streams

PASS_AT = 8
"""The k of pass@k; fewer if there are fewer samples."""

Scores = dict[str, list[float | None]]
"""One member's score in [0, 1] at each task, in the eval's order, by decoding: `greedy`,
`t1` (a probability or a share of samples), and `pass@<k>` (at temperature 1, unbiased). None: the
task could not be judged (see `solve_and_grade`), and counts for nobody."""


@dataclass(frozen=True)
class EvalResult:
    """The scores of members at one eval."""

    held_out: HeldOutEval
    members: Sequence[Member]
    scores: list[Scores]
    """Scores of each member, in the order of `members`."""

    def metrics(self) -> dict[str, float]:
        """Means over tasks, `eval/...` in `metrics.jsonl` (docs/records.md); greedy unless the name
        says otherwise; `disagreement` is at temperature 1."""
        by_task = list(zip(*(scores["greedy"] for scores in self.scores), strict=True))
        unjudged = [None in scores for scores in by_task]
        of_members = [
            {name: [None if void else score for score, void in zip(scores, unjudged, strict=True)]
             for name, scores in by.items()}
            for by in self.scores
        ]  # fmt: skip
        greedy = [mean(scores["greedy"]) for scores in of_members]
        pairs = list(zip(self.members, greedy, strict=True))
        mus = [member.rating.mu for member, score in pairs if score is not None]
        known = [score for score in greedy if score is not None]
        values: dict[str, float | None] = {
            name: mean(mean(scores[name]) for scores in of_members) for name in of_members[0]
        }
        values |= {
            "best": max(known, default=None),
            "worst": min(known, default=None),
            "samples": float(self.held_out.samples),
            "disagreement": mean(
                abs(first - second)
                for pair in combinations([scores["t1"] for scores in of_members], 2)
                for first, second in zip(*pair, strict=True)
                if first is not None and second is not None
            ),
            "unjudged": float(sum(unjudged)) or None,
            "rating_corr": _correlation(mus, known),
        }
        if skill := reliability([scores["greedy"] for scores in of_members]):
            values |= {"reliability": skill[0], "member_std": max(0.0, skill[1])}
        strata = self.held_out.strata
        parts = [stratum.partition("/")[0] for stratum in strata]
        for groups in ([task.type for task in self.held_out.tasks], strata, parts):
            for group in dict.fromkeys(groups):
                values[f"greedy/{group}"] = mean(
                    score
                    for scores in of_members
                    for score, name in zip(scores["greedy"], groups, strict=True)
                    if name == group
                )
        for part in dict.fromkeys(parts):
            of_part = (
                mean(s for s, name in zip(scores["greedy"], parts, strict=True) if name == part)
                for scores in of_members
            )
            values[f"worst/{part}"] = min((s for s in of_part if s is not None), default=None)
        metrics = {f"eval/{name}": value for name, value in values.items()}
        metrics |= {f"{member.name}/eval/greedy": score for member, score in pairs}
        return {name: value for name, value in metrics.items() if value is not None}

    def records(self, step: int) -> list[dict[str, Any]]:
        """The lines of `evals.jsonl`, one per member: its score at every task and decoding."""
        return [
            {
                "step": step,
                "member": member.name,
                "generation": member.generation,
                "samples": self.held_out.samples,
                **{
                    name: [None if score is None else round(score, 6) for score in scores]
                    for name, scores in by.items()
                },
            }
            for member, by in zip(self.members, self.scores, strict=True)
        ]


class HeldOutEval:
    """A list of tasks; tasks without an exact probability are sampled."""

    def __init__(
        self, tasks: Sequence[Task], samples: int, seed: int, strata: Sequence[str] = ()
    ) -> None:
        """`seed` is the eval's (`evaluate` takes the run's); `strata` has each task's stratum, or
        is empty."""
        self.tasks = list(tasks)
        self.samples = samples
        self.strata = tuple(strata)
        self._streams = Streams(seed)

    def evaluate(
        self, context: StepContext, members: Sequence[Member], run_seed: int, step: int
    ) -> EvalResult:
        """Scores of every member at every task."""
        samples, k = self.samples, min(PASS_AT, self.samples)
        gold = [context.format.gold_answer(task) for task in self.tasks]
        scores = []
        for member in members:
            t1 = self.solve_rates(context, member, run_seed, step)
            scores.append(
                {
                    "greedy": solved_shares(context, self.tasks, member.slot, 0.0, 1, 0),
                    "t1": t1,
                    f"pass@{k}": [
                        None
                        if rate is None
                        else pass_at(k, samples, round(rate * samples))
                        if answer is None
                        else 1 - (1 - rate) ** k
                        for answer, rate in zip(gold, t1, strict=True)
                    ],
                }
            )
        return EvalResult(self, members, scores)

    def solve_rates(
        self, context: StepContext, member: Member, run_seed: int, step: int
    ) -> list[float | None]:
        """One member's score at each task at temperature 1."""
        exact = gold_probabilities(context, self.tasks, [member.slot] * len(self.tasks))
        sampled = [t for t, value in zip(self.tasks, exact, strict=True) if value is None]
        # The names of random streams never change, so that published runs can be repeated.
        seed = self._streams.integer(f"exam {run_seed} {member.rng_key}", step)
        rates = iter(solved_shares(context, sampled, member.slot, 1.0, self.samples, seed))
        return [next(rates) if value is None else value for value in exact]


def solved_shares(
    context: StepContext,
    tasks: Sequence[Task],
    slot: int,
    temperature: float,
    samples: int,
    seed: int,
) -> list[float | None]:
    """The share of samples that solved each task; None for a task that could not be judged."""
    replays = solve_and_grade(context, tasks, slot, seed, samples, temperature)
    return [mean(attempt.solved for attempt in replay.attempts) for replay in replays]


def all_known(shares: Sequence[float | None]) -> list[float]:
    """These `solved_shares`, none of them None. Raises ValueError: a task could not be judged."""
    judged = [share for share in shares if share is not None]
    if len(judged) < len(shares):
        raise ValueError(f"{len(shares) - len(judged)} tasks could not be judged")
    return judged


def pass_at(k: int, n: int, right: int) -> float:
    """Unbiased pass@k from n samples of which `right` are right (Chen et al. 2021, arXiv
    2107.03374)."""
    return 1.0 - math.comb(n - right, k) / math.comb(n, k)


def held_out_eval(domain: Domain, config: Config) -> HeldOutEval:
    """The eval of a run's `eval` group, with the task types of the run. Raises UserError: an
    `eval.strata` does not exist."""
    evals, types = config.eval, domain.resolve_types(config.task.types)
    chosen, strata = eval_places(domain, config)
    tasks = domain.eval_tasks(evals.tasks_per_type, evals.seed, types)
    if chosen is not None:
        tasks = [tasks[n] for n in chosen]
    return HeldOutEval(tasks, evals.samples, evals.seed, strata)


def eval_places(domain: Domain, config: Config) -> tuple[Sequence[int] | None, list[str]]:
    """Which of the domain's eval tasks are those of `eval.strata` (None: all), and the stratum of
    each, where the domain has any. Raises UserError: an `eval.strata` does not exist."""
    evals, types = config.eval, domain.resolve_types(config.task.types)
    strata = domain.strata(evals.tasks_per_type) * len(types)
    wanted = set(evals.strata)
    if not wanted:
        return None, strata
    names = [{stratum, *stratum.split("/")} for stratum in strata]
    if unknown := wanted.difference(*names):
        raise UserError(
            f"eval.strata={unknown.pop()} does not exist; choose from "
            f"{', '.join(dict.fromkeys(strata)) or 'none'}",
            key="eval.strata",
        )
    chosen = [number for number, groups in enumerate(names) if wanted & groups]
    return chosen, [strata[n] for n in chosen]


def _correlation(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Pearson's r; None for fewer than three pairs, or if one side does not vary."""
    if len(first) < 3 or any(len(set(side)) < 2 for side in (first, second)):
        return None
    return correlation(first, second)


def reliability(scores: Sequence[Sequence[float | None]]) -> tuple[float | None, float] | None:
    """(reliability, standard deviation of skill) from the members' scores [members][tasks]: the
    share of the variance of their means that is skill, None if these are equal, and skill in the
    unit of the scores. Both are negative if the members differ less than noise alone would make
    them. None if unknown: fewer than two members or tasks, unequal tasks.

    A member's advantage on particular tasks counts as noise, because another draw of tasks could
    favour another member. Source: Hoyt, "Test reliability estimated by analysis of variance"
    (Psychometrika 1941), which is Cronbach's alpha.
    """
    if len({len(member) for member in scores}) != 1:
        return None
    table = np.array(scores, dtype=float)
    table = table[:, ~np.isnan(table).any(axis=0)]  # tasks that could not be judged
    if min(table.shape) < 2:
        return None
    (members, tasks), means = table.shape, table.mean(axis=1)
    residuals = table - means[:, None] - table.mean(axis=0) + table.mean()
    between = tasks * float(means.var(ddof=1))
    noise = float((residuals**2).sum()) / ((members - 1) * (tasks - 1))
    if between < 1e-12:  # equal but for rounding
        between = 0.0
    skill = (between - noise) / tasks
    share = 1 - noise / between if between else None
    return share, math.copysign(math.sqrt(abs(skill)), skill)
