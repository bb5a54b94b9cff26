"""What the figures of a run's page show, as plain data: line charts, tiles and the lineage.

Reads records only. A record may lack anything; what is not a finite number is left out.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from azr_population.diagnostics.changes import Change
from azr_population.diagnostics.takes import early, late
from azr_population.runs.records import Record, conservative, number, roles_in, section

Points = list[tuple[float, float]]

MAX_POINTS = 400
"""Points per line. A longer run is drawn by means over equal spans of steps."""

# section, key in metrics, title, format, what it is
_BY_ROLE = (
    ("standing", "reward", "Mean reward", "number", "per training row"),
    ("solving", "solve_rate", "Solve rate", "percent", "of attempts at valid tasks"),
    ("validity", "validity", "Valid proposals", "percent", "executed and accepted"),
    ("validity", "unique", "Unique proposals", "percent", "of the valid ones"),
    ("complexity", "ast_nodes", "AST nodes", "number", "per valid program"),
    ("complexity", "ast_depth", "AST depth", "number", "per valid program"),
    ("complexity", "cyclomatic", "Cyclomatic complexity", "number", "per valid program"),
    ("complexity", "lines", "Lines of code", "number", "per valid program"),
    ("lengths", "proposal_tokens", "Proposal length", "number", "tokens"),
    ("lengths", "answer_tokens", "Answer length", "number", "tokens"),
    ("training", "loss", "Loss", "number", "policy gradient"),
    ("training", "grad_norm", "Gradient norm", "number", "before clipping"),
    ("training", "entropy", "Entropy", "number", "nats per sampled token"),
)
_BY_TYPE = (
    ("solving", "solve_rate", "Solve rate by task type", "percent", "of attempts at valid tasks"),
    ("validity", "validity", "Valid proposals by task type", "percent", "of all proposals"),
)
_BY_DIAGNOSTIC = (
    ("complexity", "halstead_volume", "Halstead volume", "number", "bits, per valid program"),
    ("space", "coverage", "Kinds of problems covered", "number", "cells filled so far"),
    (
        "space",
        "coverage_per_task",
        "Kinds per equal number of tasks",
        "number",
        "cells among equally many tasks of each step",
    ),
)
TILES = {
    "Solve rate": "solve_rate",
    "Exam": "exam_mean",
    "Valid proposals": "validity",
    "AST nodes": "ast_nodes",
    "Kinds of problems covered": "",
}
"""Title -> the name in `diagnostics.changes`."""


def members_of(metrics: Sequence[Record]) -> list[dict[str, str]]:
    """All members that occur, as `{"name", "role"}` in the order recorded."""
    return [{"name": name, "role": role} for name, role in roles_in(metrics).items()]


def line_charts(metrics: Sequence[Record]) -> list[dict[str, Any]]:
    """Every line chart that has data: its section, title, format, note and lines.

    A line is `{"name", "colour", "main", "points"}`. Main lines (a role, a task type) are thick and
    named in the legend, the others (a member) thin. `colour` names a CSS variable. `smooth` says
    whether a running mean may be drawn, since single steps are noisy.
    """
    members = members_of(metrics)
    size = Counter(member["role"] for member in members)
    charts = []
    for where, key, title, form, note in _BY_ROLE:
        lines = [_line(role, role, True, _values(metrics, "roles", role, key)) for role in size]
        if key == "solve_rate" and "teacher" in size:
            note += ": a student's own, those at a teacher's tasks"
            if _coincide([line for line in lines if line["name"] in ("teacher", "student")]):
                lines = [line for line in lines if line["name"] != "teacher"]
                note += "; the roles' means coincide"
        lines += [
            _line(m["name"], m["role"], False, _values(metrics, "members", m["name"], key))
            for m in members
            if size[m["role"]] > 1
        ]
        charts.append(_chart(where, title, form, note, lines))
    for where, key, title, form, note in _BY_TYPE:
        types = dict.fromkeys(type for step in metrics for type in section(step, "types"))
        lines = [
            _line(type, f"line-{i % 6}", True, _values(metrics, "types", type, key))
            for i, type in enumerate(types)
        ]
        charts.append(_chart(where, title, form, note, lines))
    charts.append(_exam(metrics, members))
    if len(members) > 1:  # a single agent meets nobody
        charts += _ratings(metrics, members)
    charts.append(_seconds(metrics))
    return [chart for chart in charts if chart["lines"]]


def diagnostic_charts(
    series_of: Mapping[tuple[str, str], Points], members: Sequence[Mapping[str, str]]
) -> list[dict[str, Any]]:
    """The charts of diagnostics; `series_of` maps (diagnostic, role) to points."""
    charts = []
    for where, key, title, form, note in _BY_DIAGNOSTIC:
        # Coverage is that of all proposers: the kinds covered by two roles do not add up.
        roles = [""] if where == "space" else dict.fromkeys(member["role"] for member in members)
        lines = [
            _line(
                role or "all",
                role or "line-0",
                True,
                series_of.get((key, role), []),
                grows=where == "space",
            )
            for role in roles
        ]
        charts.append(_chart(where, title, form, note, lines, smooth=where != "space"))
    return [chart for chart in charts if chart["lines"]]


def headline_tiles(
    charts: Sequence[Record], steps: int, changes: Mapping[str, Change] | None = None
) -> list[dict[str, Any]]:
    """The figures at the top of the page: means over the first and the last tenth of `steps`.

    A quantity that only grows, or is measured rarely and precisely, has its first and last value
    instead. A tile is `{"title", "line", "colour", "format", "smooth", "grows", "first", "last",
    "low", "high", "points"}`: `low` and `high` bound the change, null where `changes` does not tell
    it. There is no tile for a line with fewer than two points, or with none in either tenth.
    """
    tiles = []
    for title, name in TILES.items():
        chart = next((chart for chart in charts if chart["title"] == title), None)
        main = [line for line in chart["lines"] if line["main"]] if chart else []
        # The solve rate is that of the solvers.
        line = next((line for line in main if line["name"] == "student"), next(iter(main), None))
        if chart is None or line is None or len(line["points"]) < 2:
            continue
        points = line["points"]
        first, last = points[0][1], points[-1][1]
        if chart["smooth"]:
            first, last = early(points, steps), late(points, steps)
        tile = {
            **{key: line[key] for key in ("colour", "points")},
            **{key: chart[key] for key in ("title", "format", "smooth")},
            **{"line": line["name"], "grows": chart["section"] == "space"},
            **{"first": first, "last": last, "low": None, "high": None},
        }
        change = (changes or {}).get(name)
        if change and math.isfinite(change.difference.low):
            low, high = change.difference.low, change.difference.high
            tile |= {"first": change.first, "last": change.last, "low": low, "high": high}
        if math.isfinite(tile["first"]) and math.isfinite(tile["last"]):
            tiles.append(tile)
    return tiles


def lineage(children: Iterable[Record]) -> list[dict[str, Any]]:
    """The replacements, with what the family tree and the table need."""
    return [
        {
            "step": int(child["step"]),
            "child": str(child["child"]),
            "generation": child.get("generation"),
            "parents": [str(name) for name in child.get("parents") or ()],
            "operator": str(child.get("operator", "?")),
            "options": {str(k): str(v) for k, v in (child.get("options") or {}).items()},
            "victim": number((child.get("fitness") or {}).get("victim")),
        }
        for child in children
        if number(child.get("step")) is not None and "child" in child
    ]


def born_at(lineage: Sequence[Record], step: int) -> set[str]:
    """The members that were replaced at the end of this step: whoever bears the name now has not
    played yet if it is the last one."""
    return {str(child["child"]) for child in lineage if child.get("step") == step}


def _exam(metrics: Sequence[Record], members: Sequence[Record]) -> dict[str, Any]:
    exams = [(step["step"], step["exam"]) for step in metrics if isinstance(step.get("exam"), dict)]
    takers = [member["role"] for member in members if member["role"] in ("student", "agent")]
    lines = []
    for i, key in enumerate(("mean", "best", "worst") if len(takers) != 1 else ("mean",)):
        points = [(x, y) for x, exam in exams if (y := number(exam.get(key))) is not None]
        name, colour = (key, f"line-{i}") if len(takers) != 1 else (takers[0], takers[0])
        lines.append(_line(name, colour, True, points))
    note = "solved of fixed held-out tasks: skill apart from task drift"
    return _chart("solving", "Exam", "percent", note, lines, smooth=False)


def _ratings(metrics: Sequence[Record], members: Sequence[Record]) -> list[dict[str, Any]]:
    charts = []
    for title, note, value in (
        ("Rating mu", "TrueSkill points; expected skill", lambda m: number(m.get("mu"))),
        ("Conservative rating", "TrueSkill points; mu - 3 sigma", conservative),
    ):
        lines = []
        for role in dict.fromkeys(member["role"] for member in members):
            thin: list[dict[str, Any]] = []
            by_step: dict[float, list[float]] = {}
            for name in (m["name"] for m in members if m["role"] == role):
                points = []
                for step in metrics:
                    y = value(section(step, "members").get(name, {}))
                    if y is not None:
                        points.append((step["step"], y))
                        by_step.setdefault(step["step"], []).append(y)
                thin.append(_line(name, role, False, points))
            mean = [(x, math.fsum(ys) / len(ys)) for x, ys in by_step.items()]
            lines += [_line(role, role, True, mean), *thin]
        charts.append(_chart("standing", title, "number", note, lines))
    return charts


def _seconds(metrics: Sequence[Record]) -> dict[str, Any]:
    spent: dict[str, Points] = {}
    for step in metrics:
        for name, seconds in (step.get("phases") or {}).items():
            if (y := number(seconds)) is not None:
                spent.setdefault(str(name), []).append((step["step"], y))
    totals = {name: math.fsum(y for _, y in points) for name, points in spent.items()}
    least = 0.01 * math.fsum(totals.values())
    kept = [name for name, total in totals.items() if total >= least]
    lines = [_line(name, f"line-{i % 8}", True, spent[name]) for i, name in enumerate(kept)]
    # Some phases are rare: a running mean would spread an exam over steps without one.
    note = "phases of 1% and more"
    return _chart("training", "Seconds per step", "number", note, lines, smooth=False)


def _values(metrics: Sequence[Record], group: str, name: str, key: str) -> Points:
    return [
        (step["step"], y)
        for step in metrics
        if (y := number(section(step, group).get(name, {}).get(key))) is not None
    ]


def _chart(
    where: str, title: str, form: str, note: str, lines: list[dict[str, Any]], smooth: bool = True
) -> dict[str, Any]:
    return {
        **{"section": where, "title": title, "format": form, "note": note, "smooth": smooth},
        "lines": [line for line in lines if line["points"]],
    }


def _coincide(lines: Sequence[Record]) -> bool:
    """Whether the two lines would lie on top of each other."""
    first, second = (line["points"] for line in lines)
    return len(first) == len(second) and all(
        x == u and math.isclose(y, v, rel_tol=1e-3, abs_tol=1e-6)
        for (x, y), (u, v) in zip(first, second, strict=True)
    )


def _line(
    name: str, colour: str, main: bool, points: Points, grows: bool = False
) -> dict[str, Any]:
    """A line of at most MAX_POINTS points: means of spans, or last values if it only grows."""
    stride = math.ceil(len(points) / MAX_POINTS) or 1
    buckets = [points[i : i + stride] for i in range(0, len(points), stride)]
    if grows:
        buckets = [bucket[-1:] for bucket in buckets]
    means = [
        (
            round(math.fsum(x for x, _ in bucket) / len(bucket), 1),
            float(f"{math.fsum(y for _, y in bucket) / len(bucket):.5g}"),
        )
        for bucket in buckets
    ]
    return {"name": name, "colour": colour, "main": main, "points": means}
