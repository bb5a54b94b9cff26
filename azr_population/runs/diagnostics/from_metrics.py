"""Diagnostics read from the lines of `metrics.jsonl`, by role and member."""

from statistics import correlation

from azr_population.domains.measure import Measure
from azr_population.runs.diagnostics.catalogue import over_members, reads
from azr_population.runs.diagnostics.statistics import Series
from azr_population.runs.directory import RunDirectory
from azr_population.runs.records import number, roles_of, section, steps_of


@reads("seconds")
def seconds(run: RunDirectory, measure: Measure) -> dict[str, Series]:
    """`""` is the whole step, `training` the step without its exam; the others are phases."""
    series: dict[str, Series] = {}
    for step in steps_of(run):
        whole = number(step.get("seconds"))
        phases = step.get("phases")
        known = {
            str(name): v
            for name, value in (phases if isinstance(phases, dict) else {}).items()
            if (v := number(value)) is not None
        }
        if whole is not None:
            known = {"": whole, "training": whole - known.get("exam", 0.0), **known}
        for name, value in known.items():
            series.setdefault(name, []).append((step["step"], value))
    return series


@reads("exam_mean", "exam_best", "exam_worst", "exam_own")
def _exam(run: RunDirectory, measure: Measure) -> dict[str, Series]:
    """The mean, the best and the worst of those who solve; of a member, task type or stratum by its
    name."""
    key = measure.name.removeprefix("exam_")
    series: dict[str, Series] = {}
    for step in steps_of(run):
        exam = step.get("exam")
        if not isinstance(exam, dict):
            continue
        if (value := number(exam.get(key))) is not None:
            series.setdefault("", []).append((step["step"], value))
        for group in ("members", "types", "strata") if key != "own" else ():
            scores = exam.get(group)
            for name, score in (scores if isinstance(scores, dict) else {}).items():
                if (value := number(score)) is not None:
                    series.setdefault(str(name), []).append((step["step"], value))
    takers = {role for name, role in roles_of(run).items() if name in series}
    if len(takers) == 1 and "" in series:
        series[takers.pop()] = series[""]
    return series


@reads("fitness_skill")
def _fitness_skill(run: RunDirectory, measure: Measure) -> dict[str, Series]:
    """Pearson's, at every exam of at least three students whose ratings and scores differ."""
    series: Series = []
    for step in steps_of(run):
        exam = step.get("exam")
        scores = exam.get("members") if isinstance(exam, dict) else None
        rated = {name: number(row.get("mu")) for name, row in section(step, "members").items()}
        pairs = [
            (mu, score)
            for name, value in (scores if isinstance(scores, dict) else {}).items()
            if (mu := rated.get(name)) is not None and (score := number(value)) is not None
        ]
        if len(pairs) >= 3 and all(len(set(values)) > 1 for values in zip(*pairs, strict=True)):
            series.append((step["step"], correlation(*zip(*pairs, strict=True))))
    return {"": series, "student": series} if series else {}


@reads("fitness_reliability")
def _fitness_reliability(run: RunDirectory, measure: Measure) -> dict[str, Series]:
    series = [
        (step["step"], value)
        for step in steps_of(run)
        if (value := number(step.get("fitness_reliability"))) is not None
    ]
    return {"": series, "student": series} if series else {}


@reads("past_solve_rate")
def _past_solve_rate(run: RunDirectory, measure: Measure) -> dict[str, Series]:
    """Falls where teachers have outgrown the students of earlier steps."""
    series: Series = []
    for step in steps_of(run):
        past = step.get("past")
        if isinstance(past, dict) and (value := number(past.get("solve_rate"))) is not None:
            series.append((step["step"], value))
    return {"": series} if series else {}


@reads("mu", "sigma")
def _rating(run: RunDirectory, measure: Measure) -> dict[str, Series]:
    """A number of the rating, of members and as means of roles. A single agent has no rating; the
    students' mean mu is always the same (`Roster.anchor`), so `""` is the teachers."""
    series: dict[str, Series] = {}
    roles = {name: role for name, role in roles_of(run).items() if role != "agent"}
    for name in roles:
        series[name] = over_members(run, measure.name, (name,))
    for role in dict.fromkeys(roles.values()):
        of_role = [name for name, other in roles.items() if other == role]
        series[role] = over_members(run, measure.name, of_role)
    if "teacher" in series:
        series[""] = series["teacher"]
    return {name: points for name, points in series.items() if points}
