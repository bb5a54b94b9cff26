"""Who meets whom with what result, from `matches.jsonl`."""

from __future__ import annotations

from typing import Any

from azr_population.reports import figures
from azr_population.reports.diagnostics.catalogue import DIAGNOSTICS
from azr_population.reports.diagnostics.records import Record, config_of, step_of, steps_of
from azr_population.reports.diagnostics.records import section as section_of
from azr_population.reports.diagnostics.statistics import Series
from azr_population.reports.lines import number
from azr_population.runs.directory import RunDirectory


@DIAGNOSTICS.register(
    "win_rate", "share of rated games won, a draw counting half; unnamed: students"
)
def win_rate(run: RunDirectory) -> dict[str, Series]:
    """Per role and member. A game is a proposed task; an invalid proposal is a game that its
    teacher lost, unless the run was configured otherwise. A single agent plays no games."""
    forfeits = config_of(run, "matchmaking", "forfeit") is not False
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


def match_ups(run: RunDirectory) -> dict[str, Any]:
    """The solve rate per teacher and student, and the ratings that they have at the end.

    `{"teachers", "students", "cells", "mu"}`: `cells[t][s]` is None where the two never met, else
    `{"matches", "tasks", "solve_rate"}`; `mu` maps names to TrueSkill points, or to None.
    """
    found = figures.match_ups(run.matches())
    steps = steps_of(run)
    last: dict[str, Record] = section_of(steps[-1], "members") if steps else {}
    names = (*found["teachers"], *found["students"])
    return {**found, "mu": {name: number(last.get(name, {}).get("mu")) for name in names}}
