"""How often comparisons and recipes state something false, and how often they see what is there.

    python perf/calibration.py [--simulations 20000] [--json perf/results/calibration.json]

Without an effect every verdict is false; with one, an interval should hold it in 95% of cases. The
limits are 6.5% of false verdicts and 93.5% of coverage from three seeds on; a difference that
"would show in 4 of 5 cases" has to be shown in 78%. Seeds are drawn and tested all at once; the
first `CHECKED` simulations of each kind also go through the code of `compare` as made-up runs, and
have to end alike. Recipes, children and tiles go through their code, a tenth as often.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import ttest_ind

from azr_population.analysis.changes import measured_changes
from azr_population.analysis.comparison import compare_pairs, correct_table
from azr_population.analysis.inputs import ComparedArm
from azr_population.analysis.measuring import ComparedMetric, Measured
from azr_population.analysis.metrics import MetricSamples
from azr_population.analysis.statistics import (
    FEWEST,
    LEVEL,
    MANY,
    Estimate,
    detectable,
    holm,
    mean_tests,
)
from azr_population.analysis.summary import evolution_sentence
from azr_population.domains.metric import Metric
from azr_population.experiments.recipes import Recipe
from azr_population.experiments.results import decide, results_table
from azr_population.reading.run_data import RunData
from azr_population.runs.records import Birth

SETTINGS: dict[str, Any] = {
    **{"eval.tasks_per_type": 600, "eval.seed": 1, "task.types": ["code_o"], "task.domain": "code"},
    **{"base.prompt_format": "nano", "engine.max_answer_tokens": 64},
}
STEPS = 30
NO_CURVE = pd.Series(dtype=float)
MOST_FALSE, LEAST_COVERED, SHOWN = 0.065, 0.935, 0.78
EVALS = pd.Index([1]), pd.Index([1, STEPS])
Draw = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]
"""Scores of one arm [simulations, seeds]; NaN where a run ended early."""
CHECKED = 30


def normal(mean: float = 0.35, sd: float = 0.02) -> Draw:
    return lambda rng, shape: rng.normal(mean, sd, shape)


def skewed(way: int = 1) -> Draw:
    """The tail is above the mean of 35%, or below."""
    mean = np.exp(0.75**2 / 2)
    return lambda rng, shape: 0.35 + way * 0.02 * (rng.lognormal(0.0, 0.75, shape) - mean)


def of_tasks(tasks: int) -> Draw:
    """Scores of a small eval, in which seeds tie."""
    return lambda rng, shape: rng.binomial(tasks, 0.35, shape) / tasks


def collapsing(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """One run in five ends early."""
    return np.where(rng.random(shape) < 0.2, np.nan, rng.normal(0.35, 0.02, shape))


KNOWN = "one run in five of one arm alone far below"
"""A known limit: it is printed, and fails nothing."""


def rarely_low(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """One run in five lies 10 points below the others; the mean is 35%."""
    return np.where(rng.random(shape) < 0.2, 0.27, 0.37) + rng.normal(0, 0.02, shape)


class MadeRun(RunData):
    """A run of one eval in memory; without a score it ended before."""

    def __init__(self, score: float, name: str) -> None:
        last = STEPS if np.isfinite(score) else STEPS // 2
        self.path, self.is_log, self.config, self.score = Path(name), False, {}, score
        self.settings, self.figures = SETTINGS, {}  # type: ignore[misc]
        self.lines = [{"step": 1, "eval/greedy": 0.3}]  # type: ignore[misc]
        self.lines += [{"step": last}] if last < STEPS else [{"step": last, "eval/greedy": score}]
        self.complete_lines = self.lines  # type: ignore[misc]

    def curve(self, metric: Metric | str) -> pd.Series:
        name = metric if isinstance(metric, str) else metric.name
        values = [line[name] for line in self.lines if name in line]
        return pd.Series(values, EVALS[len(values) - 1]) if values else NO_CURVE


def pair_tests(arms: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of arms [simulations, seeds] as `compare` tests them.

    Returns:
        verdicts [simulations, pairs], the sign of the difference that is shown, else 0; and the
        bounds [simulations, 2] of the first pair, NaN where there are none.
    """
    finished = np.all([np.isfinite(scores).any(axis=1) for scores in arms], axis=0)
    arms = [np.where(np.isfinite(scores), scores, 0.0) for scores in arms]  # the worst score
    bounds, p_values, means = [], [], []
    for than, arm in combinations(range(len(arms)), 2):
        two = arms[arm], arms[than]
        low, high, p = np.full((3, len(finished)), np.nan)
        valid = finished & (np.min([np.ptp(scores, axis=1) for scores in two], axis=0) > 1e-12)
        if min(scores.shape[1] for scores in two) >= FEWEST and valid.any():
            low[valid], high[valid], p[valid], _ = mean_tests([s[valid] for s in two])
        bounds.append(np.stack([low, high], axis=1))
        p_values.append(p)
        means.append(two[0].mean(axis=1) - two[1].mean(axis=1))
    corrected = np.apply_along_axis(holm, 1, np.stack(p_values, axis=1))
    return np.sign(np.stack(means, axis=1)) * (corrected < LEVEL), bounds[0]


def check(arms: Sequence[np.ndarray], verdicts: np.ndarray, bounds: np.ndarray) -> None:
    """Holds the first simulations against `compare` on made-up runs."""
    for i in range(min(CHECKED, len(verdicts))):
        made = [
            ComparedArm(f"arm{k}", tuple(MadeRun(x, f"{k}/{j}") for j, x in enumerate(scores[i])))
            for k, scores in enumerate(arms)
        ]
        pairs = compare_pairs(made)
        shown = [p.metric is not None and not p.sentence.startswith("No") for p in pairs]
        signs = [s * np.sign(p.difference.mean) for s, p in zip(shown, pairs, strict=True)]
        first = [pairs[0].difference.low, pairs[0].difference.high]
        np.testing.assert_array_equal(np.nan_to_num(signs), verdicts[i])
        np.testing.assert_allclose(first, bounds[i], rtol=1e-9, atol=1e-12)


def comparisons(
    rng: np.random.Generator, arms: Sequence[tuple[Draw, int]], effect: float, simulations: int
) -> dict[str, float]:
    """Shares of comparisons with a false verdict, and of first pairs' intervals that hold the
    difference; `effect` is that of the second arm."""
    scores = [draw(rng, (simulations, n)) for draw, n in arms]
    verdicts, bounds = pair_tests(scores)
    check(scores, verdicts, bounds)
    rates = {"false": float(((verdicts != 0) & (verdicts != np.sign(effect))).any(axis=1).mean())}
    stated = bounds[np.isfinite(bounds[:, 0])]
    held = (stated[:, 0] <= effect) & (effect <= stated[:, 1])
    return rates | ({"coverage": float(held.mean())} if len(stated) else {})


ROWS = 8
"""Of a table, beside those of skill."""


def pages(rng: np.random.Generator, arms: int, n: int, simulations: int) -> dict[str, float]:
    """Shares of pages of equal arms of `n` seeds with a verdict: of the sentences, of the table's
    rows, or of either. The first tables also go through `correct_table`."""
    scores = rng.normal(0.35, 0.02, (simulations, ROWS + 1, arms, n))
    sentences = pair_tests([scores[:, 0, arm] for arm in range(arms)])[0].any(axis=1)
    others = [mean_tests([scores[:, 1:, arm], scores[:, 1:, 0]])[2] for arm in range(1, arms)]
    p_values = np.apply_along_axis(holm, 1, np.concatenate(others, axis=1))
    tables = (2 * p_values < LEVEL).any(axis=1)
    made = [ComparedArm(f"arm{k}", (MadeRun(0.35, str(k)),)) for k in range(arms)]
    for values, shown in zip(scores[:CHECKED], tables, strict=False):
        rows = [
            ComparedMetric(
                made, Metric(f"row{i}", f"Row {i}"), 1,
                [Measured(dict(zip("abcdefghijkl", of, strict=False)), {}, {}) for of in row],
            )
            for i, row in enumerate(values[1:].tolist())
        ]  # fmt: skip
        correct_table(rows)
        words = {row.difference(arm)[1] for row in rows for arm in range(1, arms)}
        assert bool(words & {"higher", "lower"}) == shown
    rates = {"false": sentences | tables, "false, sentences": sentences, "false, table": tables}
    return {name: float(of.mean()) for name, of in rates.items()}


def would_show(rng: np.random.Generator, n: int, pairs: int, simulations: int) -> dict[str, float]:
    """Of pairs of equal arms of `n` seeds without a verdict: the share of further arms, as far
    apart as the sentence says, that show the difference."""
    level = LEVEL / pairs
    a, b = rng.normal(0, 1, (2, simulations, n))
    p_values, error = mean_tests([a, b])[2:]
    least = detectable(Estimate(0, 0, 0, (n, n), error=1.0).upper_sd, n, level)
    least_of = (least * error)[p_values >= level]
    a, b = rng.normal(0, 1, (2, len(least_of), n))
    return {"shown": float((mean_tests([a + least_of[:, None], b], level)[0] > 0).mean())}


class MadeChildren(MadeRun):
    """A run whose children are as good as their parents; each is tested on tasks of its own."""

    def __init__(self, rng: np.random.Generator, children: int, tasks: int = 60) -> None:
        super().__init__(0.35, "children")
        numbers = range(1, children + 1)
        self.births = [  # type: ignore[misc]
            Birth(n, f"student_{n}", (f"parent_{n}",), generation=1) for n in numbers
        ]
        solved = rng.binomial(1, 0.35, (children, 2, tasks)).astype(float).tolist()
        self.evals = [  # type: ignore[misc]
            {"step": n + 1, "member": f"{name}_{n}", "generation": generation, "greedy": scores}
            for n, of in zip(numbers, solved, strict=True)
            for name, generation, scores in zip(("student", "parent"), (1, 0), of, strict=True)
        ]


def evolutions(rng: np.random.Generator, children: int, simulations: int) -> dict[str, float]:
    """The share of runs that call a child better or worse, and none is."""
    texts = (evolution_sentence(MadeChildren(rng, children)) for _ in range(simulations))
    equal = f"none better, none worse, {children} not shown"
    return {"false": sum(equal not in text for text in texts) / simulations}


EFFECTS = (0.5, 1.0, 1.5, 2.0, 3.0)


def power(
    rng: np.random.Generator, n: int, level: float, simulations: int
) -> dict[str, dict[str, float]]:
    """By difference in standard deviations over seeds: how often `n` normal seeds in each arm show
    it at the level, by `compare` and by Welch's test alone."""
    shares = {}
    for effect in EFFECTS:
        a, b = rng.normal(effect, 1, (simulations, n)), rng.normal(0, 1, (simulations, n))
        welch = ttest_ind(a, b, axis=1, equal_var=False)
        shares[f"{effect:g} sd"] = {
            "compare": float((mean_tests([a, b], level)[0] > 0).mean()),
            "Welch": float(((welch.pvalue < level) & (welch.statistic > 0)).mean()),
        }
    return shares


RECIPE = Recipe.model_validate(
    {
        **{"name": "made", "title": "Made", "figure": "ours", "arms": ["a", "b", "c"]},
        "table": [
            {"label": "eval at the end", "metric": "eval/greedy", "reduce": "last"},
            {"label": "lines (late)", "metric": "lines", "reduce": "last_10pct", "role": "agent"},
        ],
        "hypotheses": [
            {"claim": "More.", "row": "eval at the end", "arm": "b", "than": "a"},
            {"claim": "More.", "row": "eval at the end", "arm": "c", "than": "a"},
        ],
    }
)


def recipes(
    rng: np.random.Generator, looks: Sequence[int], simulations: int, planned: int = 6
) -> dict[str, float]:
    """Shares of recipes of three equal arms in which a claim is decided, and in which a cell that
    no claim is about is bold, at any of the numbers of seeds at which it is read."""
    decided = bold = 0
    for _ in range(simulations):
        shape = (len(RECIPE.arms), max(looks))
        drawn = {
            "eval at the end": rng.normal(0.35, 0.02, shape),
            "lines (late)": rng.normal(5, 1, shape),
        }
        verdicts, cells = set(), False
        for n in looks:
            rows = {
                label: MetricSamples(
                    None,
                    RECIPE.rows[label].reduce,
                    {
                        arm: dict(enumerate(of[:n]))
                        for arm, of in zip(RECIPE.arms, values.tolist(), strict=True)
                    },
                )
                for label, values in drawn.items()
            }
            answers = decide(RECIPE, rows, planned)
            frame = results_table(RECIPE, rows, answers, planned)
            verdicts |= set(answers["verdict"])
            cells = cells or bool(frame.loc[frame["row"] == "lines (late)", "differs"].any())
        decided += bool({"shown", "refuted"} & verdicts)
        bold += cells
    return {"false": decided / simulations, "false, bold cells": bold / simulations}


class MadeTasks(MadeRun):
    """A run whose steps have a noise of their own, and tasks of it."""

    def __init__(self, rng: np.random.Generator) -> None:
        super().__init__(0.35, "tasks")
        rates = np.clip(rng.normal(0.4, 0.05, STEPS), 0, 1)
        self.solved = rng.binomial(4, rates[:, None], (STEPS, 24)) / 4

    def read(self, record: str) -> Any:
        if record != "tasks":
            return iter(())
        rows = enumerate(self.solved, 1)
        return ({"step": s, "solve_rate": float(rate)} for s, of in rows for rate in of)


def tiles(rng: np.random.Generator, simulations: int) -> dict[str, float]:
    """The share of runs in which a tile shows a change of the solve rate, and there is none."""
    tests = (
        measured_changes(MadeTasks(rng), STEPS)["solve_rate"].difference for _ in range(simulations)
    )
    false = sum(bool(test.sign()) for test in tests)
    return {"false": false / simulations, "coverage": 1 - false / simulations}


def scenarios(simulations: int) -> Mapping[str, Callable[[np.random.Generator], dict[str, float]]]:
    """By name."""

    def two(a: Draw, n: int, b: Draw, m: int, effect: float = 0.0) -> Any:
        return lambda rng: comparisons(rng, [(a, n), (b, m)], effect, simulations)

    made: dict[str, Any] = {}
    for n, m in ((3, 3), (4, 4), (6, 6), (12, 6), (24, 6), (12, 12)):
        made[f"tails on opposite sides, {n} and {m} seeds"] = two(skewed(), n, skewed(-1), m)
    for n, m in ((2, 2), (2, 12), (3, 3), (3, 12), (6, 6), (6, 12), (12, 12)):
        made[f"equal arms, {n} and {m} seeds"] = two(normal(), n, normal(), m)
    for n, m in ((3, 3), (3, 12), (12, 3), (6, 6), (6, 12), (12, 6)):
        made[f"4 times the spread, {n} and {m} seeds"] = two(normal(), n, normal(sd=0.08), m)
        made[f"skewed, {n} and {m} seeds"] = two(skewed(), n, skewed(), m)
    for n, m in ((6, 6), (6, 12), (12, 6), (12, 12)):
        made[f"one arm skewed, {n} and {m} seeds"] = two(skewed(), n, normal(), m)
    for n, m in ((3, 3), (4, 12), (6, 6)):
        made[f"ties of 20 tasks, {n} and {m} seeds"] = two(of_tasks(20), n, of_tasks(20), m)
    for n in (3, 6, 12):
        made[f"an effect of 3 points, {n} seeds"] = two(normal(), n, normal(0.38), n, 0.03)
    for n, m in ((3, 3), (6, 6), (12, 6)):
        made[f"one run in five ends early, {n} and {m} seeds"] = two(collapsing, n, collapsing, m)
    for k in (3, 4, 6, 8):
        made[f"{k} equal arms of 4 seeds"] = lambda rng, k=k: comparisons(
            rng, [(normal(), 4)] * k, 0.0, simulations
        )
    fewer = max(simulations // 10, 1)
    made["recipe of two claims, 6 planned seeds"] = lambda rng: recipes(rng, [6], fewer)
    made["the same, read at 4, 6 and 12 seeds"] = lambda rng: recipes(rng, [4, 6, 12], fewer)
    # Beyond any test of means: what did not happen in an arm's seeds is not in its numbers.
    made[f"{KNOWN}, 6 and 6 seeds"] = two(normal(), 6, rarely_low, 6)
    made[f"{KNOWN}, 12 and 6 seeds"] = two(normal(), 12, rarely_low, 6)
    for arms, n in ((2, 4), (2, 6), (2, 12), (3, 6), (3, 12)):
        made[f"page of {arms} equal arms of {n} seeds, {ROWS} rows"] = lambda rng, arms=arms, n=n: (
            pages(rng, arms, n, simulations)
        )
    for children in (1, 6, 20):
        made[f"{children} children as good as their parents, 60 tasks"] = lambda rng, k=children: (
            evolutions(rng, k, fewer)
        )
    for n, pairs in ((3, 1), (4, 1), (6, 1), (12, 1), (3, 3), (4, 3), (6, 3)):
        name = f"'differences above X would show', {n} seeds, {pairs} pair{'s' * (pairs > 1)}"
        made[name] = lambda rng, n=n, pairs=pairs: would_show(rng, n, pairs, simulations)
    made["tiles, steps with a noise of 5 points"] = lambda rng: tiles(rng, fewer)
    return made


def failing(rates: Mapping[str, Mapping[str, float]], most: float, least: float) -> list[str]:
    """The scenarios beyond the limits."""
    return [
        f"{name}: {key} {rate:.3f}"
        for name, of in rates.items()
        if not name.startswith(KNOWN)
        for key, rate in of.items()
        if (rate > most if key.startswith("false") else rate < (SHOWN if key == "shown" else least))
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--simulations", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    rates: dict[str, dict[str, float]] = {}
    for name, play in scenarios(given.simulations).items():
        rates[name] = play(np.random.default_rng(given.seed))
        shown = ", ".join(f"{key} {rate:.1%}" for key, rate in rates[name].items())
        print(f"{name}: {shown}", flush=True)
    powers: dict[str, Any] = {}
    for level in (LEVEL, LEVEL / 6):
        for n in (3, 4, MANY, 8, 12, 24):
            name = f"{n} seeds an arm, level {level:.4g}"
            powers[name] = power(np.random.default_rng(given.seed), n, level, given.simulations)
            shown = ", ".join(
                f"{effect} {of['compare']:.0%} (Welch {of['Welch']:.0%})"
                for effect, of in powers[name].items()
            )
            print(f"{name}: {shown}", flush=True)
    if given.json:
        command = f"python perf/calibration.py --simulations {given.simulations}"
        made = {
            "command": command + f" --seed {given.seed}",
            "versions": {name: version(name) for name in ("numpy", "pandas", "scipy")},
            **{"rates": rates, "power": powers},
        }
        given.json.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    wrong = failing(rates, MOST_FALSE, LEAST_COVERED)
    print("\n".join(wrong) or f"all within the limits ({FEWEST} seeds and {LEVEL:g})")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
