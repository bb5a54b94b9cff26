"""Metrics of a run, each declared once, for tables, charts and comparisons."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from azr_population.analysis.statistics import LEVEL, NOTHING, Estimate, compare, interval
from azr_population.domains.known import DOMAINS, find_domain
from azr_population.domains.metric import SOLVERS, Metric
from azr_population.reading.run_data import RunData


def _eval(name: str, title: str, about: str = "", **more: Any) -> Metric:
    settings = {"unit": "solved", "percent": True, "better": "higher", "reduce": "last"}
    about = about or "the same held-out tasks every time"
    return Metric(name, title, about, **{**settings, "section": "skill", "roles": (), **more})


_SIGNED: dict[str, Any] = {"least": -math.inf}
_SHARE: dict[str, Any] = {"percent": True, "better": "higher", "reduce": "last_10pct"}
_PROPOSING: dict[str, Any] = {"section": "proposing"}
_SPACE: dict[str, Any] = {"section": "space", "better": "higher", "reduce": "last"}
_STANDING: dict[str, Any] = {"section": "standing"}
_TRAINING: dict[str, Any] = {"section": "training", "roles": SOLVERS}
_LATE: dict[str, Any] = {"percent": True, "reduce": "last_10pct"}

SHARED = (
    _eval("validation", "AZR's validation", "its own held-out tasks, greedy"),
    _eval("benchmark/pass@1", "Benchmarks, pass@1", "the members' mean", section=""),
    _eval("eval/greedy", "Held-out tasks, greedy"),
    _eval("eval/best", "Held-out tasks, best member", "larger populations get lucky more often"),
    _eval("eval/worst", "Held-out tasks, weakest member"),
    _eval("eval/t1", "Held-out tasks, temperature 1"),
    _eval("eval/pass@8", "Held-out tasks, pass@8"),
    Metric("solve_rate", "Solve rate", "attempts at valid tasks of the step", "solved",
           roles=SOLVERS, section="skill", **_LATE),
    Metric("valid_frac", "Valid proposals", "ran and passed the rules", **_PROPOSING, **_SHARE),
    Metric("unique_frac", "Unique proposals", "of the valid ones", **_PROPOSING, **_SHARE),
    Metric("proposal_reward", "Reward of proposals", **_PROPOSING, **_SIGNED),
    Metric("answer_reward", "Reward of answers", roles=SOLVERS, section="skill", **_SIGNED),
    Metric("proposal_tokens", "Proposal length", "", "tokens", **_PROPOSING),
    Metric("answer_tokens", "Answer length", "", "tokens", roles=SOLVERS, **_PROPOSING),
    Metric("coverage", "Coverage", "cells filled so far; a jump can be a single task",
           "cells", **_SPACE),
    Metric("coverage_per_task", "Coverage per equal number of tasks", "12 tasks a step", "cells",
           **_SPACE),
    Metric("mu", "Rating mu", "", "points", roles=("teacher",), **_STANDING),
    Metric("sigma", "Rating sigma", "how unsure mu is", "points"),
    Metric("win_rate", "Games won", "a draw counts half", percent=True, roles=("student",)),
    Metric("weight_cosine", "Similarity of adapters",
           "mean cosine of two updates: 0 unrelated, 1 alike",
           roles=SOLVERS, **_STANDING, **_SIGNED),
    Metric("eval/disagreement", "Disagreement", "of two students", percent=True, roles=()),
    Metric("eval/member_std", "Spread of students' skill",
           "standard deviation over students, less the noise", percent=True, roles=(), **_STANDING),
    Metric("eval/rating_corr", "Rating and skill", "correlation over students", roles=(),
           **_SIGNED),
    Metric("grad_norm", "Gradient norm", "before clipping", **_TRAINING),
    Metric("proposal_entropy", "Entropy of proposals", "per sampled token", "nats",
           section="training"),
    Metric("entropy", "Entropy", "per token trained on", "nats", roles=SOLVERS),
    Metric("answer_entropy", "Entropy of answers", "per sampled token", "nats", **_TRAINING),
    Metric("engine/mismatch_kl", "Sampler and learner, KL", "of importance-weighted updates",
           "nats per token", **_TRAINING),
    Metric("time/step", "Seconds per step", "", "s", roles=(), section="training", reduce="median"),
)  # fmt: skip


def own_metrics(runs: Iterable[RunData]) -> list[Metric]:
    """Metrics of these runs beside the shared ones, each name once."""
    shared = {metric.name for metric in SHARED}
    measures = {metric.name: metric for run in runs for metric in run.measures}
    return [metric for name, metric in measures.items() if name not in shared]


def metric_named(name: str) -> Metric | None:
    """The metric of this name; a part of the held-out tasks (`eval/greedy/deep`) is like all."""
    if name.startswith(("eval/greedy/", "eval/worst/")):
        name = name[: name.index("/", len("eval/"))]
    return all_metrics().get(name)


@dataclass(frozen=True)
class MetricSamples:
    """A metric of several arms, a number for each seed; comparisons and recipes consist of them."""

    metric: Metric | None
    """Bounds the intervals of means; None: nothing does."""
    reduce: str
    """The reduction of a seed's curve to one number, a name in `REDUCERS`."""
    by_arm: Mapping[str, Mapping[str, float]]

    @property
    def percent(self) -> bool:
        """Whether the numbers are fractions, which are shown in percent."""
        return self.metric is not None and self.metric.percent and self.reduce != "autocorrelation"

    def value(self, arm: str) -> Estimate:
        """The mean of an arm; its interval ends where no value of the metric can lie."""
        estimate = interval(self.by_arm.get(arm, {}))
        return estimate.within(*self.metric.bounds(self.reduce)) if self.metric else estimate

    def difference(
        self, arm: str, than: str, level: float = LEVEL, margin: float = 0.0
    ) -> Estimate:
        """The mean of `arm` minus that of `than`, or the mean of `arm` where that is empty; nothing
        without samples. An equal seed does not make two arms play the same tasks, so seeds are not
        paired."""
        samples, others = self.by_arm.get(arm), self.by_arm.get(than)
        if not samples or (than and not others):
            return NOTHING
        return compare(samples, others, False, level, margin)


@cache
def all_metrics() -> dict[str, Metric]:
    """All metrics by name, with those of the domains that ship."""
    of_domains = (metric for name in DOMAINS for metric in find_domain(name).measures)
    return {metric.name: metric for metric in (*SHARED, *of_domains)}
