"""A recipe's numbers, the tests between its arms, and what is drawn of them: `summary.md`, which is
also printed, CSV, SVG and what made them.

A seed is one observation. The hypotheses are tested as they are written; all other differences to
the baseline are one family, corrected by Holm (1979): of so many some would exclude 0 by luck.
"""

from __future__ import annotations

import json
import math
import shlex
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
from rich.markdown import Markdown

from azr_population.analysis.metrics import MetricSamples
from azr_population.analysis.sentences import hypothesis_sentence, verdict_of
from azr_population.analysis.statistics import (
    LEVEL,
    NOTHING,
    Estimate,
    holm,
    interval_text,
    with_holm,
)
from azr_population.console.output import StandardOutput
from azr_population.errors import UserError
from azr_population.experiments.claims import Tables, births_figure, draw_figure, samples_of
from azr_population.experiments.plan import PlannedRun, RecipePlan
from azr_population.experiments.recipes import Recipe
from azr_population.files import write_atomically, writing
from azr_population.reading.run_data import RunData
from azr_population.reading.tidy import BUDGET, budget
from azr_population.runs.records import finite_or_none
from azr_population.versions import environment

_TABLE_NOTE = (
    "Means over seeds with 95% intervals. **Bold**: differs from "
    "`{baseline}` (Welch), p < .05 after Holm's correction for all differences in the "
    "table, at the planned number of seeds; "
    "differences that a hypothesis is about are bold where that was shown or refuted. "
    "p-values are in table.csv."
)
_BEST_NOTE = (
    "Of several members with one and the same skill the best scores above, and the weakest below, "
    "a single one by luck: a best member above the single agent, or a weakest one below it, is not "
    "evidence. The means can be compared."
)

Runs = Mapping[str, Mapping[str, RunData]]
"""arm -> seed -> the run."""
Rows = Mapping[str, MetricSamples]
"""label of a row -> its samples."""


def draw(plan: RecipePlan) -> Path:
    """Prints the recipe's results, writes them into `plan.results` and returns its `summary.md`.

    Runs that have no records yet are left out; the summary names them. Raises UserError: no run has
    any of the recipe's metrics, or the folder cannot be written.
    """
    recipe, folder = plan.recipe, plan.results
    runs: dict[str, dict[str, RunData]] = {}
    for planned in (run for run in plan.runs if run.started):
        if (run := RunData(planned.path)).lines:
            runs.setdefault(planned.arm_name, {})[planned.path.name] = run
    tables = {
        arm: {
            seed: run.of_run[run.of_run["step"] <= run.stored_step] for seed, run in by_seed.items()
        }
        for arm, by_seed in runs.items()
    }
    missing = _missing_metrics(recipe, tables)
    with writing(f"--out {plan.out}"):
        folder.mkdir(parents=True, exist_ok=True)
    shortest = min(plan.lengths.values())
    files = {"budget.csv": _budget(runs, shortest)}
    heading = [
        f"# {recipe.title} ({recipe.figure}), nano scale",
        f"Made by `{command()}`.",
        _scope(plan),
        f"The paper: {recipe.paper}" if recipe.paper else "",
        f"Recorded by none of these runs: {', '.join(missing)}." if missing else "",
    ]
    parts: list[str] = []
    rows = {
        label: samples_of(row, tables, plan.lengths, recipe.baseline)
        for label, row in recipe.rows.items()
    }
    hypotheses = decide(recipe, rows, plan.planned)
    results = results_table(recipe, rows, hypotheses, plan.planned)
    if recipe.hypotheses:
        files["hypotheses.csv"] = hypotheses.drop(columns="sentence")
        parts.append(_hypotheses_markdown(recipe, hypotheses))
    if recipe.table:
        files["table.csv"] = results.drop(columns=["differs", "step"], errors="ignore")
        parts += [
            _table_markdown(recipe, rows, results),
            _TABLE_NOTE.format(baseline=recipe.baseline),
        ]
        if any(row.metric.startswith(("eval/best", "eval/worst")) for row in recipe.table):
            parts.append(_BEST_NOTE)
    shown = _joined([*heading[2:], *parts])
    drawn = {arm: tables[arm] for arm in recipe.drawn or tables if arm in tables} or tables
    for chart in recipe.charts:
        path = folder / f"{chart.file}.svg"
        if chart.births:
            lines, sentence = births_figure(chart, runs, path)
        else:
            lines, sentence = draw_figure(chart, drawn, plan.lengths, plan.arms, path, results)
        if not sentence:
            parts.append(f"No finished run has `{chart.metric}` yet.")
            continue
        files[f"{chart.file}.csv"] = lines
        parts += [f"![{sentence}]({chart.file}.svg)", chart.note]
    parts.append(f"What a member had per step (steps 1 to {shortest}, means over seeds):")
    parts.append(_markdown(files["budget.csv"]))
    for name, content in files.items():
        text = content.to_csv(index=False, float_format="%.6g", lineterminator="\n")
        write_atomically(folder / name, text)
    write_atomically(folder / "versions.json", json.dumps(_versions(plan), indent=1) + "\n")
    summary = folder / "summary.md"
    write_atomically(summary, _joined([*heading, *parts]) + "\n")
    console = StandardOutput()
    if console.is_terminal:
        console.print(Markdown(shown))
    else:
        print(shown)
    return summary


def decide(recipe: Recipe, rows: Rows, planned: int | None) -> pd.DataFrame:
    """A line per hypothesis: what it says, its test and the verdict, p by Holm's correction.
    Intervals are at Bonferroni's level, since Holm's has none. Hypotheses are decided at `planned`
    seeds of each arm."""
    level = LEVEL / max(len(recipe.hypotheses), 1)
    tests = [
        rows[hypothesis.row].difference(hypothesis.arm, hypothesis.than, level, hypothesis.margin)
        for hypothesis in recipe.hypotheses
    ]
    # Hypotheses without runs yet count as well.
    corrected = holm([1.0 if math.isnan(test.p) else test.p for test in tests])
    lines: list[dict[str, Any]] = []
    for hypothesis, test, p in zip(recipe.hypotheses, tests, corrected, strict=True):
        test = replace(test, p=math.nan if math.isnan(test.p) else p)
        percent = rows[hypothesis.row].percent
        verdict = verdict_of(test, hypothesis.margin, planned)
        written = hypothesis.model_dump()
        sentence = hypothesis_sentence(**written, test=test, percent=percent, verdict=verdict)
        lines.append(
            {**written, "n": test.n, **_bounds("", test)}
            | {"confidence": 1 - test.level if test.n else math.nan, "p": test.p}
            | {"verdict": verdict, "sentence": sentence}
        )
    return pd.DataFrame(lines)


_DIFFERS = {"shown": True, "refuted": True, "not shown": False}
"""By verdict; none of a hypothesis that is not decided."""


def results_table(
    recipe: Recipe, rows: Rows, hypotheses: pd.DataFrame, planned: int | None
) -> pd.DataFrame:
    """A line per row and arm: mean and difference to the baseline, each with its interval; p, also
    corrected by Holm within its `family` (`hypotheses`, or all other `differences`); the values of
    the seeds; and whether it `differs`: by p, or by the hypothesis; None at a number of seeds that
    was not planned."""
    baseline, against = recipe.baseline, f"minus_{recipe.baseline}_"
    tests = {
        (label, arm): samples.difference(arm, baseline) if baseline not in ("", arm) else NOTHING
        for label, samples in rows.items()
        for arm in samples.by_arm
    }
    decided = {
        (line.row, line.arm): (line.p, "hypotheses", _DIFFERS.get(line.verdict))
        for line in hypotheses.itertuples()
        if line.than == baseline and not line.margin
    }
    family = with_holm({key: test for key, test in tests.items() if key not in decided})
    decided |= {
        key: (test.p, "differences", test.p < LEVEL if set(test.counts) == {planned} else None)
        for key, test in family.items()
    }
    lines: list[dict[str, Any]] = []
    for label, row in recipe.rows.items():
        for arm, values in rows[label].by_arm.items():
            test, (p, name, differs) = tests[label, arm], decided[label, arm]
            lines.append(
                {"row": label, "metric": row.metric, "reduce": row.reduce, "role": row.role}
                | {"step": row.step}
                | {"arm": arm, "n": len(values), **_bounds("", rows[label].value(arm))}
                | {**_bounds(against, test), "p": test.p, "p_corrected": p}
                | {
                    "family": "" if math.isnan(test.p) else name,
                    "values": " ".join(map("{:.6g}".format, values.values())),
                }
                | {"paper": row.paper, "differs": differs}
            )
    return pd.DataFrame(lines)


def _bounds(prefix: str, test: Estimate) -> dict[str, float]:
    return {f"{prefix}{name}": getattr(test, name) for name in ("mean", "low", "high")}


def _joined(paragraphs: Iterable[str]) -> str:
    return "\n\n".join(filter(None, paragraphs))


def _missing_metrics(recipe: Recipe, tables: Tables) -> list[str]:
    """The metrics of the recipe's table and charts that no run has. Raises UserError: all."""
    wanted = dict.fromkeys(row.metric for row in recipe.table)
    wanted |= dict.fromkeys(chart.metric for chart in recipe.charts)
    recorded = {
        name
        for by_seed in tables.values()
        for table in by_seed.values()
        for name in table["metric"]
    }
    missing = [metric for metric in wanted if metric not in recorded]
    if wanted and len(missing) == len(wanted):
        raise UserError(
            f"{recipe.name} cannot be drawn: none of its runs has {', '.join(missing)}; they were "
            "played before these were recorded, so run them again: leave out --from-results, and "
            "name another --out"
        )
    return missing


def _table_markdown(recipe: Recipe, rows: Rows, table: pd.DataFrame) -> str:
    """The table for people; a cell names its n where it rests on fewer seeds than its column."""
    seeds = table.groupby("arm")["n"].max() if len(table) else pd.Series(dtype=int)
    arms = [arm for arm in recipe.arms if arm in seeds]
    arms += sorted(set(seeds.index) - set(arms))  # of --arms
    cells = {(line["row"], line["arm"]): line for line in table.to_dict("records")}
    shown_rows = []
    for label, row in recipe.rows.items():
        lines = {arm: cells.get((label, arm)) for arm in arms}
        shown = {
            f"{arm} (n={seeds[arm]})": _cell(rows[label].percent, line, seeds[arm]) if line else "-"
            for arm, line in lines.items()
        }
        paper = {"the paper": row.paper or "-"} if any(r.paper for r in recipe.table) else {}
        shown_rows.append({"": label, **shown, **paper})
    return _markdown(pd.DataFrame(shown_rows))


def _cell(percent: bool, line: Mapping[str, Any], seeds: int) -> str:
    """`**38.2% [37.1, 39.3]**`."""
    text = interval_text(Estimate(line["mean"], line["low"], line["high"], (line["n"],)), percent)
    if line["n"] < seeds:
        text += f" (n={line['n']})"
    return f"**{text}**" if line["differs"] else text


def _hypotheses_markdown(recipe: Recipe, hypotheses: pd.DataFrame) -> str:
    """The hypotheses as they were written, and what came out."""
    lines = ["## Hypotheses, written before the runs", ""]
    lines += [f"- {sentence}." for sentence in hypotheses["sentence"]]
    if len(hypotheses) > 1:
        note = "p is corrected by Holm for their number, and decides; the intervals by Bonferroni."
        lines += ["", note]
    if recipe.decision:
        lines += ["", f"Decision: {recipe.decision}"]
    return "\n".join(lines)


def _budget(runs: Runs, steps: int) -> pd.DataFrame:
    """The budget of a member of each arm per step, which says whether the comparison is fair;
    programs grow, so all up to the same step."""
    lines = []
    for arm, by_seed in runs.items():
        played = list(by_seed.values())
        used = pd.DataFrame([budget(run.of_run, run.members, steps) for run in played]).mean()
        members = played[0].members
        line: dict[str, Any] = {"arm": arm, "members": members}
        for key, title in BUDGET.items():
            digits = {"trained_samples": 1, "updates": 2}.get(key, 0)
            line[title] = f"{used[key]:.{digits}f}"
        line["seconds/step"] = f"{used['seconds']:.1f}"
        roles = ("teacher", "student") if members > 1 else ("agent",)
        rates = dict.fromkeys(learning_rate(run, role) for run in played for role in roles)
        lines.append(line | {"learning rates": ", ".join(filter(None, rates)) or "-"})
    return pd.DataFrame(lines)


def learning_rate(run: RunData, role: str) -> str:
    """A role's learning rate, or the range from which its members drew theirs; empty if it is not
    recorded."""
    drawn = run.value("evolution", "hyperparameters", "lr") or {}
    if role in drawn.get("roles", ()):
        low, high = drawn["init"]
        return f"{role} drawn from {low:g} to {high:g}"
    rate = finite_or_none(run.value("population", f"{role}_lr"))
    return "" if rate is None else f"{role} {rate:g}"


def _markdown(table: pd.DataFrame) -> str:
    rows = [list(table), ["---"] * len(table.columns), *table.astype(str).values.tolist()]
    head, rule, *lines = (f"| {' | '.join(row)} |" for row in rows)
    return "\n".join([head, rule.replace(" ", ""), *lines])


def _scope(plan: RecipePlan) -> str:
    """A paragraph on the runs behind the results, and on those that are missing."""
    finished = [run for run in plan.runs if run.finished]
    lines = [
        f"{len(finished)} of {len(plan.runs)} runs, seeds {plan.seeds[0]} to {plan.seeds[-1]}, "
        f"{' to '.join(map(str, sorted({*plan.lengths.values()})))} steps."
    ]
    absent: dict[str, list[str]] = {}
    for run in plan.missing:
        if not run.done:
            absent.setdefault(run.arm_name, []).append(str(run.seed))
    if absent:
        named = (f"{arm} seeds {', '.join(seeds)}" for arm, seeds in absent.items())
        lines.append(f"Not run: {'; '.join(named)}.")
    if short := [f"{run.name} (step {run.done})" for run in plan.missing if run.done]:
        lines.append(
            f"Not finished, drawn as far as they are and not in the table: {', '.join(short)}."
        )
    if commits := ", ".join(f"{name} ({n})" for name, n in _commits(finished).items()):
        lines.append(f"Run at commits {commits}.")
    return " ".join(lines)


def _versions(plan: RecipePlan) -> dict[str, Any]:
    """The origin of the results: command, versions, bases, and the overrides of every arm."""
    here, arms = environment(), {run.arm_name: plan.arms.find(run.arm_name) for run in plan.runs}
    bases = {
        Path(run.config.base.path or "").name: run.directory.environment().get("base")
        for run in plan.runs
    }
    return {
        "command": command(),
        **{key: here[key] for key in ("commit", "python", "platform", "packages")},
        # Of the runs themselves, which may be older than what draws them.
        "bases": {name: weights for name, weights in bases.items() if weights},
        "commits": dict(_commits(plan.runs)),
        "seeds": list(plan.seeds),
        "common": list(plan.protocol.common),
        "arms": {name: list(arm.overrides) for name, arm in arms.items()},
        "runs": {run.name: run.done for run in plan.runs},
    }


def _commits(runs: Iterable[PlannedRun]) -> Counter[str]:
    """The number of runs that each commit played, by its first seven digits."""
    commits = (run.directory.environment().get("commit") for run in runs if run.started)
    return Counter(str(commit)[:7] for commit in commits if commit)


def command() -> str:
    """The command line as it was typed, without the place of the program."""
    return shlex.join(["azr-population", *sys.argv[1:]])
