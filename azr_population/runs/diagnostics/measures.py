"""What can be measured of a run: shared measures and, of its problems, those of its domain.

Titles, notes and units stand here or in the domain; `catalogue.reads` files how each is read.
"""

import math
from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from azr_population.domains.domain import Domain
from azr_population.domains.known import DOMAINS, find_domain
from azr_population.domains.measure import SOLVERS, Measure
from azr_population.errors import UserError, did_you_mean

_SIGNED = -math.inf
_SOLVED = "share of attempts solved"

_of_solvers = partial(Measure, whose=SOLVERS)
_skill = partial(_of_solvers, section="skill")
_exam = partial(
    _skill,
    about="the same held-out tasks at every sitting",
    unit=_SOLVED,
    format="percent",
    better="higher",
    rare=True,
)
_proposing = partial(Measure, section="proposing")
_share = partial(_proposing, format="percent", better="higher")
_space = partial(Measure, unit="cells", better="higher", section="space", grows=True)
_standing = partial(_of_solvers, section="standing")
_training = partial(Measure, whose=(), section="training")

SHARED = (
    _exam(
        "validation",
        "AZR's validation",
        about="its own held-out tasks, greedy; of a population the best rated student",
    ),
    _exam("benchmarks", "Benchmarks, pass@1", about="by evaluate, the members' mean", section=""),
    _exam("exam_mean", "Exam, mean of the members"),
    _exam("exam_best", "Exam, best member"),
    _exam("exam_worst", "Exam, worst member"),
    replace(
        _exam("exam_own", "Exam of the run's own kind"),
        about="the untrained teacher's tasks, at every sitting",
    ),
    _share("validity", "Valid proposals", "that ran and passed the rules", short="valid"),
    _share("unique", "Unique proposals", "of the valid ones", short="unique"),
    _skill(
        *("solve_rate", "Solve rate", "of the attempts at valid tasks", _SOLVED, "percent"),
        short="solved",
    ),
    Measure("reward", "Reward", "of proposals and answers", least=_SIGNED, short="reward"),
    _proposing("proposal_reward", "Reward of proposals", "by the run's own rule", least=_SIGNED),
    _skill("answer_reward", "Reward of answers", "in the matches", least=_SIGNED),
    _proposing("proposal_tokens", "Proposal length", "tokens (paper, Fig 19)", "tokens"),
    _proposing("answer_tokens", "Answer length", "tokens (paper, Fig 19)", "tokens", whose=SOLVERS),
    _space("coverage", "Kinds of problems covered", "so far: this can only grow (paper, Fig 9)"),
    _space("coverage_per_task", "Kinds per equal number of tasks", "so far, by 12 tasks a step"),
    Measure("cells_per_step", "Kinds in one step", "among 12 of its tasks", "cells"),
    _standing("mu", "Rating mu", "TrueSkill points, of which only differences count", "points"),
    Measure("sigma", "Rating sigma", "TrueSkill points: how unsure mu is", "points"),
    _of_solvers("win_rate", "Games won", "a draw counting half", format="percent"),
    _standing("weight_cosine", "Likeness of weights", "mean cosine of two members' dW", rare=True),
    _standing(
        *("exam_disagreement", "Disagreement at the exam"),
        *("mean difference of two students' scores at a task", "", "percent"),
        rare=True,
    ),
    _standing(
        *("exam_spread", "Spread of skill"),
        *("sd of the students at the exam, its noise taken off", "", "percent"),
        rare=True,
    ),
    _of_solvers(
        *("exam_reliability", "Reliability of who is better"),
        *("1 - noise / variance of the students' scores at the exam",),
        least=_SIGNED,
        rare=True,
    ),
    _of_solvers(
        *("fitness_reliability", "Reliability of measured fitness"),
        *("1 - noise / variance of the students' skill where some were replaced",),
        least=_SIGNED,
        rare=True,
    ),
    _of_solvers(
        *("founders", "Founders with descendants", "share of the lines that live on"),
        format="percent",
    ),
    _standing(
        *("ancestor_age", "Age of common ancestors"),
        *("steps since the lines of related members parted", "steps"),
    ),
    _of_solvers("descent_depth", "Depth of descent", "births since the founders", "births"),
    _of_solvers("related_pairs", "Related pairs", "with a common ancestor", format="percent"),
    _of_solvers(
        *("fitness_skill", "Fitness and skill", "correlation of mu and exam over the students"),
        least=-1.0,
    ),
    _of_solvers(
        *("past_solve_rate", "Solve rate of past opponents", "of today's tasks", _SOLVED),
        format="percent",
    ),
    _of_solvers(
        *("student_slope", "Students against the earliest teachers"),
        *("change of their solve rate per 100 steps, in cross-play", "share per 100 steps"),
        better="higher",
        least=_SIGNED,
    ),
    Measure(
        *("teacher_slope", "Teachers against the earliest students"),
        *("change of what these leave unsolved, in cross-play", "share per 100 steps"),
        better="higher",
        least=_SIGNED,
    ),
    _training("loss", "Loss", "of the policy gradient", least=_SIGNED),
    _training("grad_norm", "Gradient norm", "before it is clipped"),
    _training("entropy", "Entropy", "nats per sampled token", "nats"),
    _training("seconds", "Seconds per step", "wall-clock time", "s"),
)

OF_DOMAINS = {
    measure.name: measure
    for entry in reversed(list(DOMAINS))
    for measure in find_domain(entry.name).measures
}
"""Of the problems of the domains that have a name; of a name that two have the first one's."""

MEASURES = {measure.name: measure for measure in (*SHARED, *OF_DOMAINS.values())}


def measures_for(domains: Iterable[Domain]) -> list[Measure]:
    """The shared measures and those of these domains, each name once."""
    own = (measure for domain in domains for measure in domain.measures)
    return list({measure.name: measure for measure in (*SHARED, *own)}.values())


def size_of(domain: Domain) -> Measure | None:
    """What the size of a domain's problem is told by."""
    return next(iter(domain.measures), None)


def find_measure(name: str, domain: Domain | None = None) -> Measure:
    """The measure called `name`, which may be the domain's own.

    Raises:
        UserError: there is none; the message lists them all.
    """
    known = MEASURES | {measure.name: measure for measure in (domain.measures if domain else ())}
    if name not in known:
        hint = did_you_mean(name, known)
        raise UserError(f"diagnostic={name} is unknown{hint}; choose one of: {', '.join(known)}")
    return known[name]
