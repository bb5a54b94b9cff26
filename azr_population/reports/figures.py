"""What the report's figures show, as plain data: line charts, the lineage, the match-up table.

Reads records only; a record may lack anything, and a value that is no finite number is left out.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from azr_population.reports.diagnostics.records import Record, roles_in, section
from azr_population.reports.lines import conservative, number
from azr_population.reports.takes import early, late

Points = list[tuple[float, float]]

MAX_POINTS = 400
"""Points per line; longer runs show the mean of as many steps as it takes."""

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
TILES = ("Solve rate", "Exam", "Valid proposals", "AST nodes", "Kinds of problems covered")


def members_of(metrics: Sequence[Record]) -> list[dict[str, str]]:
    """All members that occur, as `{"name", "role"}` in the order recorded."""
    return [{"name": name, "role": role} for name, role in roles_in(metrics).items()]


def charts(metrics: Sequence[Record]) -> list[dict[str, Any]]:
    """Every line chart that has data: section, title, format, note and its lines.

    A line is `{"name", "colour", "main", "points"}`: main lines are drawn thick and shown in the
    legend (a role, a task type), the others thin (a member). `colour` names a CSS variable. The
    chart's `smooth` says whether a running mean may be drawn: single steps are noisy.
    """
    members = members_of(metrics)
    size = Counter(member["role"] for member in members)
    found = []
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
        found.append(_chart(where, title, form, note, lines))
    for where, key, title, form, note in _BY_TYPE:
        types = dict.fromkeys(type for step in metrics for type in section(step, "types"))
        lines = [
            _line(type, f"line-{i % 6}", True, _values(metrics, "types", type, key))
            for i, type in enumerate(types)
        ]
        found.append(_chart(where, title, form, note, lines))
    found.append(_exam(metrics, members))
    if len(members) > 1:  # a single agent meets nobody
        found += _ratings(metrics, members)
    found.append(_seconds(metrics))
    return [chart for chart in found if chart["lines"]]


def more_charts(
    series_of: Mapping[tuple[str, str], Points], members: Sequence[Mapping[str, str]]
) -> list[dict[str, Any]]:
    """The charts whose lines are diagnostics: `series_of` maps (diagnostic, role) to points."""
    found = []
    for where, key, title, form, note in _BY_DIAGNOSTIC:
        # Coverage is of all who propose: the kinds that two roles have met do not add up.
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
        found.append(_chart(where, title, form, note, lines, smooth=where != "space"))
    return [chart for chart in found if chart["lines"]]


def tiles(charts: Sequence[Record], steps: int) -> list[dict[str, Any]]:
    """The figures that head the page: the means of the first and the last tenth of `steps`.

    What only grows or is measured seldom and precisely is told by its first and last value instead.
    `{"title", "line", "colour", "format", "smooth", "first", "last", "points"}`; what has fewer
    than two points, or none in a tenth, has no change to show and is left out.
    """
    found = []
    for title in TILES:
        chart = next((chart for chart in charts if chart["title"] == title), None)
        main = [line for line in chart["lines"] if line["main"]] if chart else []
        # The solve rate is told of those who solve.
        line = next((line for line in main if line["name"] == "student"), next(iter(main), None))
        if chart is None or line is None or len(line["points"]) < 2:
            continue
        points = line["points"]
        first, last = points[0][1], points[-1][1]
        if chart["smooth"]:
            first, last = early(points, steps), late(points, steps)
        if math.isfinite(first) and math.isfinite(last):
            found.append(
                {
                    **{key: line[key] for key in ("colour", "points")},
                    **{key: chart[key] for key in ("title", "format", "smooth")},
                    **{"line": line["name"], "first": first, "last": last},
                }
            )
    return found


def lineage(children: Iterable[Record]) -> list[dict[str, Any]]:
    """The replacements with what the timeline and its table need."""
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


def match_ups(matches: Iterable[Record]) -> dict[str, Any]:
    """Who met whom how often and with what result.

    `cells[t][s]` is null where the two never met, else `{"matches", "tasks", "solve_rate"}`; the
    solve rate is the mean over their valid tasks, null without one.
    """
    met: dict[tuple[str, str], list[float]] = {}
    for match in matches:
        if "teacher" not in match or "student" not in match:
            continue
        cell = met.setdefault((str(match["teacher"]), str(match["student"])), [0.0, 0.0, 0.0])
        valid = number(match.get("valid")) or 0.0
        rate = number(match.get("solve_rate"))
        cell[0] += 1
        if rate is not None:
            cell[1] += valid
            cell[2] += valid * rate
    teachers = sorted({t for t, _ in met}, key=by_number)
    students = sorted({s for _, s in met}, key=by_number)
    return {
        "teachers": teachers,
        "students": students,
        "cells": [[_cell(met.get((t, s))) for s in students] for t in teachers],
    }


def by_number(name: str) -> tuple[str, int]:
    """Sorts `student_10` after `student_9`."""
    stem, _, digits = name.rpartition("_")
    return (stem, int(digits)) if digits.isdecimal() else (name, 0)


def _cell(cell: list[float] | None) -> dict[str, Any] | None:
    if cell is None:
        return None
    matches, tasks, solved = cell
    rate = round(solved / tasks, 4) if tasks else None
    return {"matches": int(matches), "tasks": int(tasks), "solve_rate": rate}


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
    found = []
    for title, note, value in (
        ("Rating mu", "TrueSkill points; expected skill", lambda m: number(m.get("mu"))),
        ("Conservative rating", "TrueSkill points; mu - 3 sigma", conservative),
    ):
        lines = []
        for role in dict.fromkeys(member["role"] for member in members):
            one: list[dict[str, Any]] = []
            by_step: dict[float, list[float]] = {}
            for name in (m["name"] for m in members if m["role"] == role):
                points = []
                for step in metrics:
                    y = value(section(step, "members").get(name, {}))
                    if y is not None:
                        points.append((step["step"], y))
                        by_step.setdefault(step["step"], []).append(y)
                one.append(_line(name, role, False, points))
            mean = [(x, math.fsum(ys) / len(ys)) for x, ys in by_step.items()]
            lines += [_line(role, role, True, mean), *one]
        found.append(_chart("standing", title, "number", note, lines))
    return found


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
    # Some phases are rare: a running mean would spread an exam over steps that had none.
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
    """Whether the two lines could not be told apart."""
    one, other = (line["points"] for line in lines)
    return len(one) == len(other) and all(
        x == u and math.isclose(y, v, rel_tol=1e-3, abs_tol=1e-6)
        for (x, y), (u, v) in zip(one, other, strict=True)
    )


def _line(
    name: str, colour: str, main: bool, points: Points, grows: bool = False
) -> dict[str, Any]:
    """Of many points means are kept, of what only ever grows the last of as many."""
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
