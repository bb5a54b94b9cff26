"""What can be measured of a run: every metric declared once, for tables, charts and comparisons."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from azr_population.domains.domain import Domain
from azr_population.domains.known import DOMAINS, find_domain
from azr_population.domains.measure import PROPOSERS, SOLVERS, Measure
from azr_population.errors import UserError, did_you_mean


@dataclass(frozen=True)
class Metric:
    """A number that a run has at each step, under this name in the tidy table (`frame`)."""

    name: str
    """Of roles and members without their prefix (`solve_rate`); else whole (`eval/greedy`)."""
    title: str
    about: str = ""
    """What follows the title: of what it is a mean or a share."""
    unit: str = ""
    percent: bool = False
    """A fraction that is shown in percent."""
    better: Literal["higher", "lower", ""] = ""
    roles: tuple[str, ...] = ()
    """It is that of the first of these roles which a run has; () where it is the run's."""
    reduce: str = "change"
    """What a comparison makes of the curve: a name in `statistics.REDUCERS`."""
    section: str = ""
    """Of the pages: skill, proposing, complexity, space, standing, training; not drawn if empty."""
    least: float = 0.0
    """No value lies below it; -inf where there is no bound."""

    @property
    def most(self) -> float:
        """No value lies above it."""
        return 1.0 if self.percent else math.inf

    @property
    def is_eval(self) -> bool:
        """Measured at evals: rarely, and precisely."""
        return self.name.startswith(("eval/", "validation", "benchmark"))


def _eval(name: str, title: str, about: str = "", section: str = "skill") -> Metric:
    about = about or "the same held-out tasks every time"
    return Metric(name, title, about, "solved", True, "higher", (), "last", section)


_SIGNED: dict[str, Any] = {"least": -math.inf}
_SHARE: dict[str, Any] = {"percent": True, "better": "higher", "reduce": "last_10pct"}
_PROPOSING: dict[str, Any] = {"roles": PROPOSERS, "section": "proposing"}
_SPACE: dict[str, Any] = {"roles": PROPOSERS, "section": "space", "better": "higher"}
_SPACE |= {"reduce": "last"}

SHARED = (
    _eval("validation", "AZR's validation", "its own held-out tasks, greedy"),
    _eval("benchmark/pass@1", "Benchmarks, pass@1", "the members' mean", section=""),
    _eval("eval/greedy", "Held-out tasks, greedy"),
    _eval("eval/best", "Held-out tasks, best member", "larger populations get lucky more often"),
    _eval("eval/worst", "Held-out tasks, weakest member"),
    _eval("eval/t0.4", "Held-out tasks, temperature 0.4"),
    _eval("eval/t1", "Held-out tasks, temperature 1"),
    _eval("eval/pass@8", "Held-out tasks, pass@8"),
    _eval("eval/self_proposed", "Self-proposed tasks", "the untrained teacher's, every time"),
    Metric(
        *("solve_rate", "Solve rate", "attempts at valid tasks of the step", "solved"),
        roles=SOLVERS,
        section="skill",
        percent=True,
        reduce="last_10pct",
    ),
    Metric("valid_frac", "Valid proposals", "ran and passed the rules", **_PROPOSING, **_SHARE),
    Metric("unique_frac", "Unique proposals", "of the valid ones", **_PROPOSING, **_SHARE),
    Metric("proposal_reward", "Reward of proposals", **_PROPOSING, **_SIGNED),
    Metric("answer_reward", "Reward of answers", roles=SOLVERS, section="skill", **_SIGNED),
    Metric("proposal_tokens", "Proposal length", "", "tokens", **_PROPOSING),
    Metric("answer_tokens", "Answer length", "", "tokens", roles=SOLVERS, section="proposing"),
    Metric(
        *("coverage", "Coverage", "cells so far; it can only grow", "cells"),
        **_SPACE,
    ),
    Metric(
        *("coverage_per_task", "Coverage per equal number of tasks", "12 tasks a step", "cells"),
        **_SPACE,
    ),
    Metric("cells_per_step", "Cells in one step", "12 tasks", "cells", roles=PROPOSERS),
    Metric("mu", "Rating mu", "", "points", roles=("teacher",), section="standing"),
    Metric("sigma", "Rating sigma", "how unsure mu is", "points", roles=PROPOSERS),
    Metric("win_rate", "Games won", "a draw counts half", percent=True, roles=("student",)),
    Metric(
        *("weight_cosine", "How similar are the adapters?", "mean cosine of their updates"),
        roles=SOLVERS,
        section="standing",
        **_SIGNED,
    ),
    Metric(
        *("ancestor_age", "Age of common ancestors"),
        *("steps since the lines of related members parted", "steps"),
        roles=SOLVERS,
        section="standing",
    ),
    Metric("eval/disagreement", "Disagreement", "of two students", percent=True),
    Metric(
        *("eval/member_std", "Do students differ in skill?", "sd beyond evaluation noise"),
        percent=True,
        section="standing",
    ),
    Metric("eval/rating_corr", "Rating and skill", "correlation over students", **_SIGNED),
    Metric("grad_norm", "Gradient norm", "before clipping", roles=SOLVERS, section="training"),
    Metric("entropy", "Entropy", "per token", "nats", roles=SOLVERS, section="training"),
    Metric("time/step", "Seconds per step", "", "s", section="training", reduce="median"),
)


def of_domain(measure: Measure) -> Metric:
    """A domain's measure of its problems as a metric."""
    return Metric(
        measure.name,
        measure.title,
        measure.about,
        measure.unit,
        measure.format == "percent",
        measure.better,
        measure.whose,
        "change",
        measure.section,
        measure.least,
    )


def metrics_for(domains: Iterable[Domain]) -> list[Metric]:
    """The shared metrics and those of these domains, each name once."""
    own = (of_domain(measure) for domain in domains for measure in domain.measures)
    return list({metric.name: metric for metric in (*SHARED, *own)}.values())


@cache
def all_metrics() -> dict[str, Metric]:
    """All metrics by name, with those of the domains that ship."""
    return {one.name: one for one in metrics_for(find_domain(one.name) for one in DOMAINS)}


def find_metric(name: str) -> Metric:
    """The metric of that name. Raises UserError: there is none; the message names the nearest."""
    known = all_metrics()
    if name not in known:
        raise UserError(f"metric={name} is unknown{did_you_mean(name, known)}")
    return known[name]
