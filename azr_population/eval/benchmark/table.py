"""From Inspect's logs to the table: pass@k with intervals, and differences from the base.

`mathematics` and `code` are means over benchmarks, `all` is the mean of the two, as in AZR's
tables. Intervals are 95% percentile bootstraps over problems, drawn anew within each benchmark;
the exact binomial bound where none or all were solved. Other values that are the same for every
problem have no interval (NaN): the bootstrap cannot tell how sure they are.
"""

import math
from bisect import bisect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
import pandas as pd
from inspect_ai.log import EvalLog, read_eval_log
from inspect_ai.scorer import CORRECT

from azr_population.analysis.statistics import interval
from azr_population.errors import UserError
from azr_population.eval.benchmark.benchmarks import AREAS, BENCHMARKS
from azr_population.eval.members import BASE
from azr_population.files import write_atomically, writing
from azr_population.method.held_out_eval import pass_at

KS = (1, 4, 16, 64, 256)
FORMATS = (".csv", ".md", ".tex")
_DRAWS = 2000
_SEED = 20_260_527


def read_samples(logs: Iterable[EvalLog], names: Mapping[str, str]) -> pd.DataFrame:
    """One row a sample: model, benchmark, problem, epoch, correct, reason, stop_reason, and the
    identity of its data; in the table's order. `names` has the models' names by Inspect's."""
    rows = []
    models, tasks = list(names), list(BENCHMARKS)

    def place(log: EvalLog) -> tuple[int, int]:
        return tasks.index(log.eval.task.rpartition("/")[2]), models.index(log.eval.model)

    for header in sorted(logs, key=place):
        log = read_eval_log(header.location, resolve_attachments=False)
        for sample in log.samples or []:
            (score,) = (sample.scores or {}).values()
            rows.append(
                {
                    "model": names[log.eval.model],
                    "benchmark": log.eval.task.rpartition("/")[2],
                    "problem": str(sample.id),
                    "epoch": sample.epoch,
                    "correct": score.value == CORRECT,
                    "reason": (score.metadata or {}).get("reason", ""),
                    "stop_reason": sample.output.stop_reason,
                    "data": (log.eval.metadata or {}).get("data", ""),
                }
            )
    return pd.DataFrame(rows)


def columns(benchmarks: Sequence[str]) -> dict[str, dict[str, float]]:
    """The columns of the table: their benchmarks, with weights that sum to 1."""
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
    for label, group in samples.groupby("label", sort=False):
        for k in KS[: bisect(KS, fewest)]:
            scores = _scores(group, k)
            for title, weights in titles.items():
                place = {"column": title, "k": k}
                rows += [{"label": label, **line} for line in _lines(scores, weights, place)]
    return pd.DataFrame(rows)


def _scores(samples: pd.DataFrame, k: int) -> dict[str, pd.DataFrame]:
    """Benchmark -> pass@k in [0, 1] of each problem (row) by each model (column)."""
    grouped = samples.groupby(["model", "benchmark", "problem"], sort=False)["correct"]
    scores = grouped.agg(lambda verdicts: pass_at(k, len(verdicts), int(verdicts.sum())))
    wide = {}
    for benchmark, group in scores.groupby("benchmark", sort=False):
        by_model = group.reset_index().pivot(index="problem", columns="model", values="correct")
        wide[str(benchmark)] = by_model.reindex(columns=samples["model"].unique()).astype(float)
        if wide[str(benchmark)].isna().any(axis=None):
            raise UserError(f"{benchmark}: the models were not asked the same problems")
    return wide


def _lines(
    scores: dict[str, pd.DataFrame], weights: dict[str, float], place: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """The lines of one column at this place: the models in order, then the summaries."""
    draws = _draw(scores, weights)
    base, problems = draws.get(BASE, math.nan), sum(len(scores[name]) for name in weights)
    # Where none or all is solved: what a benchmark of few problems leaves open weighs most.
    fewest = int(min(len(scores[name]) / weight for name, weight in weights.items()))
    lines = [(name, "base" if name == BASE else "model", drawn) for name, drawn in draws.items()]
    members = [drawn for _, role, drawn in lines if role == "model"]
    if len(members) > 1:
        lines.append(("members (mean)", "summary", np.mean(members, axis=0)))
        lines.append(("best member", "summary", np.max(members, axis=0)))
        lines.append(("weakest member", "summary", np.min(members, axis=0)))
    for name, role, drawn in lines:
        score = interval(drawn, "bootstrap", fewest)
        gain = interval(drawn - (math.nan if role == "base" else base), "bootstrap")
        yield {
            **{"model": name, "role": role, **place},
            **{"value": score.mean, "low": score.low, "high": score.high},
            **{"difference": gain.mean, "difference_low": gain.low},
            **{"difference_high": gain.high, "problems": problems},
        }


def _draw(wide: dict[str, pd.DataFrame], weights: dict[str, float]) -> dict[str, np.ndarray]:
    """The column's figure of each model, then those of bootstrap samples [1 + draws] of the
    problems. All models have the same samples, so that differences are paired."""
    random = np.random.default_rng(_SEED)
    total: Any = 0.0
    for name, weight in weights.items():
        scores = wide[name]
        n = len(scores)
        # How often each problem is drawn: then a draw's mean is a matrix product.
        counts = random.multinomial(n, np.full(n, 1 / n), size=_DRAWS)
        means = np.concatenate([scores.to_numpy().mean(0)[None], counts @ scores.to_numpy() / n])
        total = total + weight * means
    return {str(model): total[:, column] for column, model in enumerate(scores.columns)}


def table(figures: pd.DataFrame) -> pd.DataFrame:
    """The table that is read: a row a model and k, a column a benchmark or area, in percent."""
    several = figures["k"].nunique() > 1
    names = figures["model"] + (" pass@" + figures["k"].astype(str) if several else "")
    shown = figures.assign(name=names, text=figures.apply(_text, axis=1))
    rows = shown[["label", "name"]].drop_duplicates()
    wide = shown.pivot(index=["label", "name"], columns="column", values="text")
    return wide.loc[list(rows.itertuples(index=False)), list(shown["column"].unique())]


def _text(row: Any) -> str:
    text = _with_interval("{:.1f}", row[["value", "low", "high"]])
    if math.isnan(row["difference"]):
        return text
    gain = row[["difference", "difference_low", "difference_high"]]
    return f"{text}; {_with_interval('{:+.1f}', gain)}"


def _with_interval(form: str, numbers: Any) -> str:
    """A value and its bounds in percent; the value alone where there are none."""
    value, low, high = (form.format(100 * float(number)) for number in numbers)
    return f"{value} [{low}, {high}]" if numbers.notna().all() else value


def check_out(path: Path) -> None:
    """Makes the folder of a file for `write`. Raises UserError: the file's name has another ending,
    or it cannot be written, which is to be known before hours of work."""
    if path.suffix not in FORMATS:
        raise UserError(f"--out={path}: it must end in {', '.join(FORMATS)}", key="out")
    if path.is_dir():
        raise UserError(f"--out {path} is a folder, and a file belongs there")
    with writing(f"--out {path}"):
        path.parent.mkdir(parents=True, exist_ok=True)
        TemporaryFile(dir=path.parent).close()


def write(figures: pd.DataFrame, path: Path) -> None:
    """Writes the figures as CSV, or the table as Markdown or LaTeX, by the ending of the name.
    Raises UserError: the file cannot be written."""
    if path.suffix == ".csv":
        text = figures.to_csv(index=False, lineterminator="\n")
    elif path.suffix == ".md":
        text = table(figures).reset_index().to_markdown(index=False) + "\n"
    else:
        text = table(figures).to_latex(escape=True)
    with writing(f"--out {path}"):
        write_atomically(path, text)
