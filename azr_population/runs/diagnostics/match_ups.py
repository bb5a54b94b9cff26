"""Who met whom and how the matches went, from `matches.jsonl`."""

from collections.abc import Iterable
from typing import Any

from azr_population.domains.measure import Measure
from azr_population.runs.diagnostics.catalogue import reads
from azr_population.runs.diagnostics.statistics import Series
from azr_population.runs.directory import RunDirectory
from azr_population.runs.records import Record, by_number, config_of, number, step_of, steps_of
from azr_population.runs.records import section as section_of


@reads("win_rate")
def win_rate(run: RunDirectory, measure: Measure) -> dict[str, Series]:
    """By role and member. Every proposed task is a game; with an invalid proposal the teacher loses
    it, unless `matchmaking.invalid_counts_as_loss` says otherwise. A single agent plays no
    games."""
    forfeits = config_of(run, "matchmaking", "invalid_counts_as_loss") is not False
    sums: dict[str, dict[int, list[float]]] = {}
    for match in run.matches():
        step = step_of(match)
        teacher, student = match.get("teacher"), match.get("student")
        if step is None or not teacher or not student or teacher == student:
            continue
        won, lost, drawn, given = (
            number(match.get(name)) or 0.0
            for name in ("student_wins", "teacher_wins", "draws", "forfeits")
        )
        won += given if forfeits else 0.0
        games = won + lost + drawn
        for names, points in (
            (("", "student", str(student)), won + drawn / 2),
            (("teacher", str(teacher)), lost + drawn / 2),
        ):
            for name in names if games else ():
                cell = sums.setdefault(name, {}).setdefault(step, [0.0, 0.0])
                cell[0] += points
                cell[1] += games
    return {
        name: [(step, points / games) for step, (points, games) in sorted(by_step.items())]
        for name, by_step in sums.items()
    }


def who_met_whom(matches: Iterable[Record]) -> dict[str, Any]:
    """How often each teacher met each student, and how the students did.

    `cells[t][s]` is null where the two never met, else `{"matches", "tasks", "solve_rate"}`; the
    solve rate is the mean over their valid tasks, null if there were none.
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


def match_ups(run: RunDirectory) -> dict[str, Any]:
    """The solve rate of each student at each teacher's tasks, and their ratings at the end.

    `{"teachers", "students", "cells", "mu"}`: `cells[t][s]` is None where the two never met, else
    `{"matches", "tasks", "solve_rate"}`; `mu` maps names to TrueSkill points, or to None.
    """
    table = who_met_whom(run.matches())
    steps = steps_of(run)
    last: dict[str, Record] = section_of(steps[-1], "members") if steps else {}
    names = (*table["teachers"], *table["students"])
    return {**table, "mu": {name: number(last.get(name, {}).get("mu")) for name in names}}


def _cell(cell: list[float] | None) -> dict[str, Any] | None:
    if cell is None:
        return None
    matches, tasks, solved = cell
    rate = round(solved / tasks, 4) if tasks else None
    return {"matches": int(matches), "tasks": int(tasks), "solve_rate": rate}
