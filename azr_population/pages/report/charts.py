"""What the figures of a run's page show, as plain data: line charts and the lineage.

Reads records only. A record may lack anything; what is not a finite number is left out.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from azr_population.domains.measure import Measure
from azr_population.pages.report.lines import Points, line_of, values
from azr_population.runs.diagnostics.catalogue import is_recorded
from azr_population.runs.diagnostics.measures import OF_DOMAINS, SHARED, find_measure
from azr_population.runs.records import Record, conservative, number, roles_in, section

_DRAWN = [measure for measure in SHARED if measure.section]
_BY_ROLE = [measure for measure in _DRAWN if is_recorded(measure.name)]
_OWN_CHART = ("exam_mean", "exam_best", "exam_worst", "mu", "seconds")
_BY_DIAGNOSTIC = [
    measure
    for measure in _DRAWN
    if not is_recorded(measure.name) and measure.name not in _OWN_CHART
]
DRAWN = tuple(measure.name for measure in _BY_DIAGNOSTIC)
"""The measures that `diagnostic_charts` asks for."""
_SHARED = ("solve_rate", "validity")
"""Measures drawn in two charts, by role and by task type, to the same scale."""
_PHASE_DASHES = ("", "7 3", "2 3", "9 3 2 3", "12 4", "4 2")
_EXAM_DASHES = {"mean": "", "best": "7 3", "worst": "2 3"}


def members_of(metrics: Sequence[Record]) -> list[dict[str, str]]:
    """All members that occur, as `{"name", "role"}` in the order recorded."""
    return [{"name": name, "role": role} for name, role in roles_in(metrics).items()]


def line_charts(
    metrics: Sequence[Record],
    lineage: Sequence[Record] = (),
    own: Iterable[Measure] = tuple(OF_DOMAINS.values()),
) -> list[dict[str, Any]]:
    """Every line chart that has data: its section, title, format, note and lines. `own` are the
    measures of the run's domain.

    `lineage` is what the function of that name gives: a member's line is broken where it was
    replaced. At that step its results are still those of the individual that was replaced, its
    rating is already the child's.

    Lines are those of `lines.line_of`: main ones (a role, a task type) are thick and named in the
    legend, the others (a member) thin. `colour` names a CSS variable; roles and task types have
    colours of their own, which nothing else has. `smooth` says whether a running mean may be drawn,
    since single steps are noisy. Charts with the same `scale`, if they have one, share their axis.
    """
    members = members_of(metrics)
    size = Counter(member["role"] for member in members)
    births = _births(lineage)
    charts = []
    for measure in (*_BY_ROLE, *own):
        key, note = measure.name, measure.about
        lines = [line_of(role, role, True, values(metrics, "roles", role, key)) for role in size]
        if key == "solve_rate" and "teacher" in size:
            note += ": a student's own, those at a teacher's tasks"
            if _coincide([line for line in lines if line["name"] in ("teacher", "student")]):
                lines = [line for line in lines if line["name"] != "teacher"]
                note += " (both roles have the same mean)"
        lines += [
            line_of(
                m["name"],
                m["role"],
                False,
                values(metrics, "members", m["name"], key),
                births=births.get(m["name"], ()),
            )
            for m in members
            if size[m["role"]] > 1
        ]
        charts.append(_chart(measure, lines, note=note))
    for measure in map(find_measure, _SHARED):
        types = dict.fromkeys(type for step in metrics for type in section(step, "types"))
        lines = [
            line_of(type, f"type-{i % 3}", True, values(metrics, "types", type, measure.name))
            for i, type in enumerate(types)
        ]
        charts.append(_chart(measure, lines, title=f"{measure.title} by task type"))
    charts.append(_exam(metrics, members))
    if len(members) > 1:  # a single agent meets nobody
        charts += _ratings(metrics, members, births)
    charts.append(_seconds(metrics))
    return [chart for chart in charts if chart["lines"]]


def diagnostic_charts(
    series_of: Mapping[tuple[str, str], Points], members: Sequence[Mapping[str, str]]
) -> list[dict[str, Any]]:
    """The charts of diagnostics; `series_of` maps (diagnostic, role) to points."""
    charts = []
    for measure in _BY_DIAGNOSTIC:
        # Coverage is that of all proposers: the kinds covered by two roles do not add up.
        roles = [""] if measure.grows else dict.fromkeys(member["role"] for member in members)
        lines = [
            line_of(
                role or "all",
                role or "ink",
                True,
                series_of.get((measure.name, role), []),
                grows=measure.grows,
            )
            for role in roles
        ]
        charts.append(_chart(measure, lines))
    return [chart for chart in charts if chart["lines"]]


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
    colour = takers[0] if takers else "ink"
    lines = []
    for key in ("mean", "best", "worst") if len(takers) != 1 else ("mean",):
        points = [(x, y) for x, exam in exams if (y := number(exam.get(key))) is not None]
        name = key if len(takers) != 1 else colour
        lines.append(line_of(name, colour, True, points, dash=_EXAM_DASHES[key]))
    return _chart(find_measure("exam_mean"), lines, title="Exam")


def _births(lineage: Sequence[Record]) -> dict[str, list[int]]:
    """The steps at whose end each member was replaced."""
    births: dict[str, list[int]] = {}
    for child in sorted(lineage, key=lambda child: int(child["step"])):
        births.setdefault(child["child"], []).append(child["step"])
    return births


def _ratings(
    metrics: Sequence[Record], members: Sequence[Record], births: Mapping[str, Sequence[int]]
) -> list[dict[str, Any]]:
    mu, lines = find_measure("mu"), partial(_rating_lines, metrics, members, births)
    told = "mu - 3 sigma, TrueSkill points; from a member's first match on"
    return [
        _chart(mu, lines(lambda member: number(member.get("mu")))),
        _chart(mu, lines(conservative, newborn=False), title="Conservative rating", note=told),
    ]


def _rating_lines(
    metrics: Sequence[Record],
    members: Sequence[Record],
    births: Mapping[str, Sequence[int]],
    value: Callable[[Record], float | None],
    newborn: bool = True,
) -> list[dict[str, Any]]:
    """The members' ratings and the mean of each role.

    Without `newborn` a child is left out until it has played: its sigma is that of somebody unknown
    and would make a notch in the mean at every replacement.
    """
    lines = []
    for role in dict.fromkeys(member["role"] for member in members):
        thin: list[dict[str, Any]] = []
        by_step: dict[float, list[float]] = {}
        for name in (m["name"] for m in members if m["role"] == role):
            born = births.get(name, ())
            points = [
                (step["step"], y)
                for step in metrics
                if (y := value(section(step, "members").get(name, {}))) is not None
                and (newborn or step["step"] not in born)
            ]
            for step, y in points:
                by_step.setdefault(step, []).append(y)
            # At its birth a child's rating is recorded already.
            thin.append(line_of(name, role, False, points, births=[step - 0.5 for step in born]))
        mean = [(x, math.fsum(ys) / len(ys)) for x, ys in sorted(by_step.items())]
        lines += [line_of(role, role, True, mean), *thin]
    return lines


def _seconds(metrics: Sequence[Record]) -> dict[str, Any]:
    spent: dict[str, Points] = {}
    for step in metrics:
        for name, seconds in (step.get("phases") or {}).items():
            if (y := number(seconds)) is not None:
                spent.setdefault(str(name), []).append((step["step"], y))
    totals = {name: math.fsum(y for _, y in points) for name, points in spent.items()}
    least = 0.01 * math.fsum(totals.values())
    kept = sorted((name for name in totals if totals[name] >= least), key=lambda n: -totals[n])
    lines = [
        line_of(name, f"part-{i % 3}", True, spent[name], dash=_PHASE_DASHES[i % 6])
        for i, name in enumerate(kept)
    ]
    # Some phases are rare: a running mean would spread an exam over steps without one.
    note = "by phase; those of less than 1% are left out"
    return {**_chart(find_measure("seconds"), lines, note=note), "smooth": False}


def _chart(
    measure: Measure, lines: list[dict[str, Any]], title: str = "", note: str = ""
) -> dict[str, Any]:
    return {
        **{"name": measure.name, "section": measure.section},
        **{"title": title or measure.title, "format": measure.format},
        **{"note": note or measure.about, "smooth": not (measure.rare or measure.grows)},
        **{"grows": measure.grows},
        **({"scale": measure.name} if measure.name in _SHARED else {}),
        "lines": [line for line in lines if line["points"]],
    }


def _coincide(lines: Sequence[Record]) -> bool:
    """Whether there are two lines, and they would lie on top of each other."""
    if len(lines) != 2:
        return False
    first, second = (line["points"] for line in lines)
    return len(first) == len(second) and all(
        x == u and math.isclose(y, v, rel_tol=1e-3, abs_tol=1e-6)
        for (x, y), (u, v) in zip(first, second, strict=True)
    )
