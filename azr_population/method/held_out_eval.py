"""A fixed eval: the same held-out tasks for every member that solves, at every sitting.

Self-play's own solve rate mixes skill with the drift of the tasks; the eval holds the tasks still.

Its headline is greedy decoding, the paper's metric: at temperature 1 a member gains by becoming
surer of what it knows already, so a gain there may be sharpening alone. Beside it stand
temperature 1 and .4, and pass@k. Where a task has one right answer, written in one way, its score
at temperature 1 is that answer's probability, which needs no samples. Elsewhere, and at .4, it is
the share of right answers among samples, whose random numbers belong to (eval, run, step, role and
place of the member): neither who else sits nor how many they are changes a member's score, two
sittings share no noise, and two arms of one seed draw alike.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import correlation
from typing import Any

import numpy as np

from azr_population.config.schema import Config
from azr_population.domains.format import read_answer
from azr_population.domains.task import Task
from azr_population.engines.engine import Sampling
from azr_population.method.members import Member
from azr_population.method.step_context import StepContext, domain_of
from azr_population.runs.streams import Streams

COOL = 0.4
"""The second temperature: between greedy decoding and that of training."""
PASS_AT = 8
"""The k of pass@k, where there are so many samples."""


@dataclass(frozen=True)
class EvalScores:
    """One member's score in [0, 1] at each task, in the eval's order."""

    greedy: list[float]
    cool: list[float]
    """At temperature `COOL`."""
    warm: list[float]
    """At temperature 1: a probability, or a share of samples."""
    passed: list[float]
    """Chance that one of `EvalResult.k` samples at temperature 1 is right, without bias."""


@dataclass(frozen=True)
class EvalResult:
    """What came out of the members' marks."""

    types: tuple[str, ...]
    """Of the tasks."""
    strata: tuple[str, ...]
    """Of the tasks; empty where the eval has none."""
    marks: dict[str, EvalScores]
    attempts: int
    """Samples at each task that was sampled."""
    k: int

    @property
    def scores(self) -> dict[str, list[float]]:
        """The headline: greedy decoding."""
        return {name: marks.greedy for name, marks in self.marks.items()}

    def metrics(self, members: Sequence[Member]) -> dict[str, float]:
        """Means over tasks, `eval/...` in `metrics.jsonl`; greedy where nothing else is said.

        `<member>/eval/greedy` is a member's, `eval/greedy/<type or stratum>` that of some tasks. If
        two members took the eval, `member_std` is the standard deviation of their skill beyond the
        eval's noise, `reliability` the share of their scores' variance that is skill, and
        `disagreement` the mean absolute difference of two members' scores at a task (temperature
        1). `rating_corr` is Pearson's r of rating mu and score, over three members or more.
        """
        greedy = {name: _mean(scores) for name, scores in self.scores.items()}
        all_marks = list(self.marks.values())
        values: dict[str, float | None] = {
            "greedy": _mean(list(greedy.values())),
            "best": max(greedy.values()),
            "worst": min(greedy.values()),
            f"t{COOL:g}": _mean([_mean(marks.cool) for marks in all_marks]),
            "t1": _mean([_mean(marks.warm) for marks in all_marks]),
            f"pass@{self.k}": _mean([_mean(marks.passed) for marks in all_marks]),
            "samples": float(self.attempts),
            "disagreement": _disagreement([marks.warm for marks in all_marks]),
            "rating_corr": _correlation(
                [(member.rating.mu, greedy[member.name]) for member in members]
            ),
        }
        if spread := reliability(list(self.scores.values())):
            values |= {"reliability": spread[0], "member_std": max(0.0, spread[1])}
        for groups in (self.types, self.strata):
            values |= {f"greedy/{group}": score for group, score in self._by(groups).items()}
        metrics = {f"eval/{name}": value for name, value in values.items() if value is not None}
        return metrics | {f"{name}/eval/greedy": score for name, score in greedy.items()}

    def _by(self, groups: Sequence[str]) -> dict[str, float]:
        """Mean greedy score of each group; `groups` names one for each task."""
        return {
            group: _mean(
                [
                    score
                    for scores in self.scores.values()
                    for of, score in zip(groups, scores, strict=True)
                    if of == group
                ]
            )
            for group in dict.fromkeys(groups)
        }

    def records(self, step: int, members: Sequence[Member]) -> list[dict[str, Any]]:
        """The lines of `evals.jsonl`, one per member: its score at every task, by decoding."""
        return [
            {
                "step": step,
                "member": member.name,
                "generation": member.generation,
                "samples": self.attempts,
                "greedy": _rounded(marks.greedy),
                f"t{COOL:g}": _rounded(marks.cool),
                "t1": _rounded(marks.warm),
                f"pass@{self.k}": _rounded(marks.passed),
            }
            for member in members
            for marks in [self.marks[member.name]]
        ]


class HeldOutEval:
    """A list of tasks and how often each is attempted where answers have to be sampled."""

    def __init__(
        self, tasks: Sequence[Task], attempts: int, seed: int, strata: Sequence[str] = ()
    ) -> None:
        """`seed` is the eval's, see `evaluate` for the run's; `strata` names a group for each task
        where there are such."""
        self.tasks = list(tasks)
        self.attempts = attempts
        self.strata = tuple(strata)
        self._streams = Streams(seed)

    def evaluate(
        self,
        tools: StepContext,
        members: Sequence[Member],
        run_seed: int,
        step: int,
        attempts: int = 0,
    ) -> EvalResult:
        """Every member at every task; `attempts` of 0 are the eval's own number."""
        attempts = attempts or self.attempts
        k = min(PASS_AT, attempts)
        exact = [tools.format.gold_answer(task) is not None for task in self.tasks]
        marks = {}
        for member in members:
            seed = self._seed(member, run_seed, step)
            asked = (tools, self.tasks, member.slot)
            warm = self.solve_rates(tools, member, run_seed, step, attempts)
            passed = [
                1 - (1 - rate) ** k if is_exact else pass_at(k, attempts, round(rate * attempts))
                for rate, is_exact in zip(warm, exact, strict=True)
            ]
            greedy = self.greedy(tools, member)
            marks[member.name] = EvalScores(
                greedy, _solve(*asked, COOL, attempts, seed), warm, passed
            )
        types = tuple(task.type for task in self.tasks)
        return EvalResult(types, self.strata, marks, attempts, k)

    def greedy(self, tools: StepContext, member: Member) -> list[float]:
        """One member's score at each task by greedy decoding alone: the headline."""
        return _solve(tools, self.tasks, member.slot, 0.0, 1, 0)

    def solve_rates(
        self,
        tools: StepContext,
        member: Member,
        run_seed: int,
        step: int,
        attempts: int = 0,
    ) -> list[float]:
        """One member's score at each task at temperature 1 alone."""
        gold = [tools.format.gold_answer(task) for task in self.tasks]
        exact = [i for i, answer in enumerate(gold) if answer is not None]
        sampled = [i for i, answer in enumerate(gold) if answer is None]
        likelihoods = tools.engine.likelihoods(
            [tools.format.solve_prompt(self.tasks[i]) for i in exact],
            [str(gold[i]) for i in exact],
            [member.slot] * len(exact),
        )
        tasks = [self.tasks[i] for i in sampled]
        seed = self._seed(member, run_seed, step)
        asked = (tools, tasks, member.slot)
        rates = _solve(*asked, 1.0, attempts or self.attempts, seed)
        scores = [0.0] * len(self.tasks)
        for place, score in zip([*exact, *sampled], [*likelihoods, *rates], strict=True):
            scores[place] = score
        return scores

    def _seed(self, member: Member, run_seed: int, step: int) -> int:
        return self._streams.integer(f"exam {run_seed} {member.place}", step)


def pass_at(k: int, n: int, right: int) -> float:
    """Chance that k of n samples, `right` of which are right, hold a right one: pass@k without bias
    (Chen et al. 2021, arXiv 2107.03374)."""
    return 1.0 - math.comb(n - right, k) / math.comb(n, k)


def tasks_of(*evals: HeldOutEval | None) -> list[Task]:
    """What members must not be trained on: the tasks of all evals that there are."""
    return [task for held_out in evals if held_out for task in held_out.tasks]


def held_out_eval(config: Config) -> HeldOutEval:
    """The eval that the run's `eval` group describes, of the task types that it plays."""
    settings = config.eval
    domain = domain_of(config)
    groups = domain.strata(settings.tasks_per_type) * len(domain.wanted(config.task.types))
    tasks = eval_tasks(config, settings.tasks_per_type, settings.seed)
    return HeldOutEval(tasks, settings.samples, settings.seed, groups)


def eval_tasks(config: Config, per_type: int, seed: int) -> list[Task]:
    """Held-out tasks of the types that the run plays."""
    domain = domain_of(config)
    return domain.eval_tasks(per_type, seed, domain.wanted(config.task.types))


def _solve(
    tools: StepContext,
    tasks: Sequence[Task],
    slot: int,
    temperature: float,
    attempts: int,
    seed: int,
) -> list[float]:
    """The share of the attempts at each task that solved it."""
    format = tools.format
    sampling = Sampling(
        tuple(format.max_new_tokens(task.type, "solve") for task in tasks),
        temperature,
        n=attempts,
    )
    prompts = [format.solve_prompt(task) for task in tasks]
    completions = tools.engine.generate(prompts, [slot] * len(tasks), sampling, seed)
    answers = [
        [read_answer(format, task.type, completion) for completion in group]
        for task, group in zip(tasks, completions, strict=True)
    ]
    asked = [
        (task, [text for text in texts if text is not None])
        for task, texts in zip(tasks, answers, strict=True)
    ]
    judged = tools.domain.grade(asked, tools.referee)
    return [sum(verdict.solved for verdict in of_task) / attempts for of_task in judged]


def _rounded(scores: Sequence[float]) -> list[float]:
    return [round(score, 6) for score in scores]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _disagreement(scores: Sequence[Sequence[float]]) -> float | None:
    """Mean absolute difference of two members' scores [members][tasks]; None for one member."""
    pairs = list(combinations(scores, 2))
    gaps = [abs(a - b) for one, other in pairs for a, b in zip(one, other, strict=True)]
    return _mean(gaps) if gaps else None


def _correlation(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Pearson's r; None for fewer than three pairs, or where one side does not vary."""
    if len(pairs) < 3 or any(len(set(side)) < 2 for side in zip(*pairs, strict=True)):
        return None
    return correlation(*zip(*pairs, strict=True))


def reliability(scores: Sequence[Sequence[float]]) -> tuple[float, float] | None:
    """Of the members' scores at the same tasks [members][tasks]: how much of the variance of their
    means is skill, and the standard deviation of skill, in the scores' unit. Both are below 0 where
    noise alone would make the members differ more. None where there is no telling: fewer than two
    members or tasks, unequal tasks, members without a difference.

    What a member does better at some tasks than at others counts as noise: other tasks of the kind
    might have told otherwise. Source: Hoyt, "Test reliability estimated by analysis of variance"
    (Psychometrika 1941), which is Cronbach's alpha.
    """
    if len({len(row) for row in scores}) != 1:
        return None
    table = np.array(scores, dtype=float)
    if min(table.shape) < 2:
        return None
    (members, tasks), means = table.shape, table.mean(axis=1)
    rest = table - means[:, None] - table.mean(axis=0) + table.mean()
    of_means = tasks * float(means.var(ddof=1))
    noise = float((rest**2).sum()) / ((members - 1) * (tasks - 1))
    if of_means < 1e-12:
        return None
    skill = (of_means - noise) / tasks
    return 1 - noise / of_means, math.copysign(math.sqrt(abs(skill)), skill)
