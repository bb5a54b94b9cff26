"""The paper's Table 1 of one or several entries: Markdown, CSV, and JSON for the comparison."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from azr_population.measuring.evaluation.contestants import BASE
from azr_population.measuring.evaluation.evaluate import Result
from azr_population.measuring.evaluation.figures import (
    KS,
    Column,
    Paired,
    Scores,
    columns,
    estimate,
    paired_difference,
)
from azr_population.runs.diagnostics.statistics import Estimate
from azr_population.runs.formatting import csv_text, interval_text, markdown_table, plain_number

_SUMMARIES: tuple[tuple[str, Callable[..., Any]], ...] = (
    ("mean", np.mean),
    ("best member", np.max),
    ("weakest member", np.min),
)


@dataclass(frozen=True)
class Line:
    """One row of the table: a model, or what several come to."""

    entry: str
    model: str
    role: str
    k: int
    cells: Mapping[str, Estimate]


def lines(results: Sequence[Result]) -> list[Line]:
    """The rows: of each entry the base, its members, and what they come to together."""
    made = []
    for k in ks(results):
        for result in results:
            made += _lines_of(result, k)
    return made


def ks(results: Sequence[Result]) -> list[int]:
    """The k of pass@k for which all have enough samples."""
    most = min(result.plan.samples for result in results)
    return [k for k in KS if k <= most]


def _lines_of(result: Result, k: int) -> list[Line]:
    shown = _columns(result)
    scores = {one.name: result.scores(one.name, k) for one in result.entry.contestants}

    def line(model: str, role: str, among: list[dict[str, Scores]], over: Any = np.mean) -> Line:
        cells = {column.title: estimate(column, among, over) for column in shown}
        return Line(result.entry.label, model, role, k, cells)

    made = [line(one.name, one.role, [scores[one.name]]) for one in result.entry.contestants]
    members = [scores[one.name] for one in result.entry.members]
    if len(members) > 1:
        made += [line(name, "summary", members, over) for name, over in _SUMMARIES]
    return made


def _columns(result: Result) -> list[Column]:
    return columns([data.benchmark for data in result.plan.data])


def markdown(results: Sequence[Result]) -> str:
    """One table for each k, then the differences, then what a reader should know."""
    made = lines(results)
    parts = []
    for k in ks(results):
        greedy = results[0].plan.temperature == 0
        drawn = "greedy" if greedy else f"{results[0].plan.samples} samples a problem"
        parts.append(f"**pass@{k}**, {drawn}, percent; 95% bootstrap intervals over problems\n")
        parts.append(_table([line for line in made if line.k == k]))
    apart = _differences(results)
    if apart:
        parts.append("**On the same problems**, percentage points, paired 95% intervals\n")
        parts.append(apart)
    notes = [f"- {note}" for result in results for note in _about(result)]
    return "\n".join([*parts, *dict.fromkeys(notes)]) + "\n"


def _table(rows: Sequence[Line]) -> str:
    titles = list(rows[0].cells)
    entries = len({row.entry for row in rows}) > 1
    shown = []
    for row in rows:
        name = f"{row.entry}: {row.model}" if entries else row.model
        bold = "**" if row.role == "summary" else ""
        cells = (interval_text(row.cells[title], "{:.1f}", 100) for title in titles)
        shown.append([f"{bold}{name}{bold}", *cells])
    return markdown_table(["model", *titles], shown) + "\n"


def differences(results: Sequence[Result]) -> list[tuple[str, str, Paired]]:
    """(what minus what, column, difference) at pass@1: members against their base, and every later
    entry against the first."""
    made = []
    for result in results:
        members = [result.scores(one.name, 1) for one in result.entry.members]
        base = [result.scores(one.name, 1) for one in result.entry.contestants if one.role == BASE]
        if members and base:
            name = f"{result.entry.label}: members - base"
            made += [(name, c.title, paired_difference(c, members, base)) for c in _columns(result)]
    first = results[0]
    for other in results[1:]:
        ours, theirs = (
            [one.scores(m.name, 1) for m in one.entry.members or one.entry.contestants]
            for one in (other, first)
        )
        name = f"{other.entry.label} - {first.entry.label}"
        made += [(name, c.title, paired_difference(c, ours, theirs)) for c in _columns(other)]
    return made


def _differences(results: Sequence[Result]) -> str:
    rows: dict[str, list[str]] = {}
    titles: list[str] = []
    for name, title, found in differences(results):
        p = "" if found.mcnemar is None else f" p={found.mcnemar:.3f}"
        rows.setdefault(name, []).append(interval_text(found.estimate, "{:+.1f}", 100) + p)
        titles = list(dict.fromkeys([*titles, title]))
    if not rows:
        return ""
    return markdown_table(["difference", *titles], [[name, *c] for name, c in rows.items()]) + "\n"


def _about(result: Result) -> list[str]:
    plan = result.plan
    about = [
        f"{data.benchmark.title}: {len(plan.problems(data))} of {len(data.problems)} problems, "
        f"{data.identity}, prompt {plan.wordings[data.benchmark.name].name}, at most "
        f"{plan.sampling(data).max_new_tokens} tokens"
        for data in plan.data
    ]
    return about + [f"{result.entry.label}, {note}" for note in result.notes]


def as_csv(results: Sequence[Result]) -> str:
    """A line for each model and column."""
    header = ["entry", "model", "role", "k", "column", "value", "low", "high", "problems"]
    rows = [
        [
            *(line.entry, line.model, line.role, line.k, title),
            *(*map(plain_number, (e.mean, e.low, e.high)), e.n),
        ]
        for line in lines(results)
        for title, e in line.cells.items()
    ]
    return csv_text(header, rows)


def as_json(result: Result) -> str:
    """What is kept of one entry beside its completions: figures, and right samples by problem."""
    plan = result.plan
    content = {
        "label": result.entry.label,
        "samples": plan.samples,
        "temperature": plan.temperature,
        "benchmarks": [
            {
                "name": data.benchmark.name,
                "title": data.benchmark.title,
                "area": data.benchmark.area,
                "data": data.identity,
                "prompt": plan.wordings[data.benchmark.name].name,
                "max_new_tokens": plan.sampling(data).max_new_tokens,
                "problems": [problem.id for problem in plan.problems(data)],
            }
            for data in plan.data
        ],
        "models": [
            {"name": one.name, "role": one.role, "weights": one.weights}
            for one in result.entry.contestants
        ],
        "right": {
            name: {who: [sum(verdicts) for verdicts in problems] for who, problems in by.items()}
            for name, by in result.right.items()
        },
        "lines": [
            {
                "model": line.model,
                "role": line.role,
                "k": line.k,
                "cells": {
                    title: {"value": e.mean, "low": e.low, "high": e.high, "problems": e.n}
                    for title, e in line.cells.items()
                },
            }
            for line in lines([result])
        ],
        "notes": result.notes,
    }
    return json.dumps(content, indent=1) + "\n"
