"""Stored teachers against stored students, of one or several runs: what is written and printed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from azr_population.errors import UserError
from azr_population.files import write_atomically, writing

if TYPE_CHECKING:
    from azr_population.measuring.crossplay import CrossPlay
    from azr_population.measuring.stored import StoredMember

_CELL = 30
"""Pixels of a cell of the heat map."""


def crossplay(
    paths: Sequence[str],
    every: int | None = None,
    tasks: int = 96,
    samples: int = 2,
    seed: int = 1,
    out: Path | None = None,
) -> None:
    """Plays the games and writes JSON and HTML. Raises UserError: as `crossplay.play`, or `out`
    does not end in .json."""
    from azr_population.analysis.statistics import or_none
    from azr_population.measuring.crossplay import play

    out = out or (Path(paths[0]) if len(paths) == 1 else Path()) / "crossplay.json"
    if out.suffix != ".json":
        raise UserError(f"--out {out} must end in .json")
    outcome = play(paths, every, tasks, samples, seed)
    slopes = outcome.slopes()
    content = {
        "teachers": [
            {"member": member.label, "tasks": len(rates.T)}
            for member, rates in zip(outcome.teachers, outcome.rates, strict=True)
        ],
        "students": [{"member": member.label} for member in outcome.students],
        "proposed": outcome.proposed,
        "solve_rates": [[or_none(value) for value in row] for row in outcome.matrix],
        # Of the run itself where it is alone: what recipes read.
        "slopes": next(iter(slopes.values())) if len(slopes) == 1 else slopes,
    }
    text, page = sentences(outcome), out.with_suffix(".html")
    with writing(f"--out {out}"):
        write_atomically(out, json.dumps(content) + "\n")
        write_atomically(page, page_of(outcome, text))
    print("\n".join([*text, f"{out}, the matrix in {page}"]))


def page_of(outcome: CrossPlay, text: Sequence[str]) -> str:
    """One HTML file: the matrix of solve rates as a heat map, and the sentences."""
    from azr_population.analysis import charts, html
    from azr_population.analysis.statistics import interval

    runs = dict.fromkeys(teacher.run for teacher in outcome.teachers)
    several = len({member.run for member in (*outcome.teachers, *outcome.students)}) > 1

    def label(member: StoredMember) -> str:
        """`step 75, T2`, after the run's name where there are several."""
        short = f"step {member.step}, {member.name[0].upper()}{member.name.rpartition('_')[2]}"
        return f"{member.run}, {short}" if several else short

    cells = []
    for teacher, rates in zip(outcome.teachers, outcome.rates, strict=True):
        for student, solved in zip(outcome.students, rates, strict=True):
            test = interval(solved.tolist())
            cells.append(
                {"row": label(teacher), "column": label(student), "value": test.mean}
                | {"low": test.low, "high": test.high, "count": len(solved)}
            )
    frame = pd.DataFrame(cells)
    frame[["low", "high"]] = frame[["low", "high"]].clip(0.0, 1.0)
    chart = charts.heatmap(frame, cell=_CELL, counts="tasks")
    note = (
        "Percent of a teacher's valid tasks (row) that a student (column) solves, by the step at "
        "which each was stored. Point at a cell for its interval and the number of tasks."
    )
    matrix = html.embed(chart, "Solve rates", note, "natural")
    title = f"Cross-play of {', '.join(runs)}"
    return html.page("crossplay.html.j2", title, matrix=matrix, sentences=text)


def sentences(outcome: CrossPlay) -> list[str]:
    """What came out, in sentences."""
    from azr_population.analysis.statistics import interval_text

    text = [
        f"{len(outcome.teachers)} teachers of {outcome.proposed} proposals each, "
        f"{len(outcome.students)} students"
    ]
    share = {
        "student": "of the earliest teachers' tasks solved",
        "teacher": "of their tasks left unsolved by the earliest students",
    }
    for moved in outcome.changes().itertuples():
        change = interval_text(moved.change, percent=True, signed=True)
        text.append(
            f"{moved.run}: {moved.role}s of step {moved.last} against those of step {moved.first}: "
            f"{change} {share[moved.role]}"
        )
    return text
