"""From Inspect's logs to the table: pass@k with intervals, and differences from the base.

`mathematics` and `code` are means over benchmarks, `all` is the mean of the two, as in AZR's
tables. Intervals are 95% percentile bootstraps over problems, drawn anew within each benchmark;
the exact binomial bound where none or all were solved.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from inspect_ai.log import EvalLog, read_eval_log
from inspect_ai.scorer import CORRECT

from azr_population.errors import UserError
from azr_population.evals.benchmarks import AREAS, BENCHMARKS
from azr_population.evals.targets import BASE
from azr_population.method.held_out_eval import pass_at

KS = (1, 4, 16, 64, 256)
_DRAWS = 2000
_SEED = 20_260_527
_SUMMARIES: dict[str, Callable[..., Any]] = {
    "members (mean)": np.mean, "best member": np.max, "weakest member": np.min,
}  # fmt: skip
FORMATS = (".csv", ".md", ".tex")


def read_samples(logs: Iterable[EvalLog], names: dict[str, tuple[str, str]]) -> pd.DataFrame:
    """One row a sample: label, model, benchmark, problem, epoch, correct, reason, stop_reason.

    `names` has label and name by Inspect's name of the model, in the order of the table.
    """
    rows = []
    models, tasks = list(names), list(BENCHMARKS)

    def place(log: EvalLog) -> tuple[int, int]:
        return tasks.index(log.eval.task.rpartition("/")[2]), models.index(log.eval.model)

    for header in sorted(logs, key=place):
        log = read_eval_log(header.location, resolve_attachments=False)
        label, name = names[log.eval.model]
        for sample in log.samples or []:
            (score,) = (sample.scores or {}).values()
            rows.append(
                {
                    "label": label,
                    "model": name,
                    "benchmark": log.eval.task.rpartition("/")[2],
                    "problem": str(sample.id),
                    "epoch": sample.epoch,
                    "correct": score.value == CORRECT,
                    "reason": (score.metadata or {}).get("reason", ""),
                    "stop_reason": sample.output.stop_reason,
                }
            )
    return pd.DataFrame(rows)


def columns(benchmarks: Sequence[str]) -> dict[str, dict[str, float]]:
    """Each column of the table: its benchmarks, with weights that sum to 1."""
    shares = {BENCHMARKS[name].title: {name: 1.0} for name in benchmarks}
    areas = {
        title: [name for name in benchmarks if BENCHMARKS[name].area == area]
        for area, title in AREAS.items()
    }
    shares |= {
        t: {n: 1 / len(names) for n in names} for t, names in areas.items() if len(names) > 1
    }
    if all(areas.values()):
        shares["all"] = {n: 1 / len(names) / len(areas) for names in areas.values() for n in names}
    return shares


def figures(samples: pd.DataFrame) -> pd.DataFrame:
    """One row a model, column of the table and k: value, low, high, problems, and the paired
    difference from the base of its label with its interval (NaN where there is no base).

    `role` is base, model, or summary: mean, best and weakest of the members of a label.
    """
    titles = columns(list(dict.fromkeys(samples["benchmark"])))
    fewest = samples.groupby(["label", "model", "benchmark", "problem"]).size().min()
    rows = []
    for (label, group), k in product(samples.groupby("label", sort=False), KS):
        if k > fewest:
            continue
        scores = _scores(group, k)
        for title, weights in titles.items():
            by_model = {name: _draw(by, weights) for name, by in scores.items()}
            base = by_model.get(BASE)
            lines = [(n, "base" if n == BASE else "model", draws) for n, draws in by_model.items()]
            members = [draws for name, role, draws in lines if role == "model"]
            if len(members) > 1:
                lines += [(n, "summary", f(members, axis=0)) for n, f in _SUMMARIES.items()]
            problems = sum(len(next(iter(scores.values()))[name]) for name in weights)
            for name, role, draws in lines:
                gain = None if base is None or role == "base" else draws - base
                rows.append(
                    {
                        "label": label, "model": name, "role": role, "column": title, "k": k,
                        **_interval(draws, problems, "value", "low", "high"),
                        **_interval(gain, 0, "difference", "difference_low", "difference_high"),
                        "problems": problems,
                    }
                )  # fmt: skip
    return pd.DataFrame(rows)


def _scores(samples: pd.DataFrame, k: int) -> dict[str, dict[str, np.ndarray]]:
    """Model -> benchmark -> pass@k of each problem, in [0, 1]; problems in one order for all."""
    grouped = samples.groupby(["model", "benchmark", "problem"], sort=False)["correct"]
    scores = grouped.agg(lambda verdicts: pass_at(k, len(verdicts), int(verdicts.sum())))
    by_model: dict[str, dict[str, np.ndarray]] = defaultdict(dict)
    for benchmark, group in scores.groupby("benchmark", sort=False):
        wide = group.reset_index().pivot(index="problem", columns="model", values="correct")
        wide = wide.reindex(columns=samples["model"].unique())
        if wide.isna().any(axis=None):
            raise UserError(f"{benchmark}: the models were not asked the same problems")
        for model, values in wide.items():
            by_model[str(model)][str(benchmark)] = values.to_numpy(float)
    return by_model


def _draw(scores: dict[str, np.ndarray], weights: dict[str, float]) -> np.ndarray:
    """[1 + draws]: the column's figure, then those of bootstrap samples of the problems. All models
    have the same samples, so that differences are paired."""
    random = np.random.default_rng(_SEED)
    total = np.zeros(1 + _DRAWS)
    for name, weight in weights.items():
        n = len(scores[name])
        # How often each problem is drawn: then a draw's mean is a matrix product.
        counts = random.multinomial(n, np.full(n, 1 / n), size=_DRAWS)
        total += weight * np.append(scores[name].mean(), counts @ scores[name] / n)
    return total


def _interval(draws: Any, problems: int, *names: str) -> dict[str, float]:
    """The first of the draws, and their percentiles; for `problems` > 0 the binomial bound where
    all draws are 0 or 1."""
    if draws is None:
        return dict.fromkeys(names, math.nan)
    value = float(draws[0])
    low, high = np.percentile(draws[1:], (2.5, 97.5))
    if problems and np.ptp(draws) == 0 and value in (0.0, 1.0):
        # All problems agree, so the bootstrap has no spread; the exact binomial bound does.
        unseen = 1.0 - 0.025 ** (1.0 / problems)
        low, high = (0.0, unseen) if value == 0.0 else (1.0 - unseen, 1.0)
    return dict(zip(names, (value, float(low), float(high)), strict=True))


def table(figures: pd.DataFrame) -> pd.DataFrame:
    """The table that is read: a row a model and k, a column a benchmark or area, in percent."""
    several = figures["k"].nunique() > 1
    shown = figures.assign(
        text=figures.apply(_text, axis=1),
        name=[
            f"{model} pass@{k}" if several else model
            for model, k in zip(figures["model"], figures["k"], strict=True)
        ],
    )
    rows = shown[["label", "name"]].drop_duplicates()
    wide = shown.pivot(index=["label", "name"], columns="column", values="text")
    return wide.loc[list(rows.itertuples(index=False)), list(shown["column"].unique())]


def _text(row: Any) -> str:
    percent = row.drop(["label", "model", "role", "column"]).astype(float) * 100
    text = "{value:.1f} [{low:.1f}, {high:.1f}]".format_map(percent)
    if math.isnan(row["difference"]):
        return text
    gain = "; {difference:+.1f} [{difference_low:+.1f}, {difference_high:+.1f}]"
    return text + gain.format_map(percent)


def write(figures: pd.DataFrame, path: Path) -> None:
    """Writes the figures as CSV, or the table as Markdown or LaTeX, by the ending of the name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".csv":
        figures.to_csv(path, index=False)
    elif path.suffix == ".md":
        text = table(figures).reset_index().to_markdown(index=False)
        path.write_text(text + "\n", encoding="utf-8")
    else:
        table(figures).to_latex(path, escape=True)
