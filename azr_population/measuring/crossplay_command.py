"""Stored teachers against stored students, of one or several runs: what is written and printed."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from azr_population.errors import UserError
from azr_population.files import write_atomically, writing

if TYPE_CHECKING:
    from azr_population.measuring.crossplay import CrossPlay

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
    """Plays the games and writes JSON, CSV and HTML. Raises UserError: as `crossplay.play`, or
    `out` does not end in .json."""
    from azr_population.analysis.statistics import or_none
    from azr_population.measuring.crossplay import play
    from azr_population.printable import csv_text

    out = out or (Path(paths[0]) if len(paths) == 1 else Path()) / "crossplay.json"
    if out.suffix != ".json":
        raise UserError(f"--out {out} must end in .json")
    outcome = play(paths, every, tasks, samples, seed)
    skill, constant, games = outcome.calibration()
    slopes = outcome.slopes()
    content = {
        "teachers": [
            {"member": member.label, "tasks": len(rates.T)}
            for member, rates in zip(outcome.teachers, outcome.rates, strict=True)
        ],
        "students": [{"member": member.label} for member in outcome.students],
        "proposed": outcome.proposed,
        "solve_rates": [[or_none(value) for value in row] for row in outcome.matrix],
        "brier": {"trueskill": or_none(skill), "constant": or_none(constant), "games": games},
        # Of the run itself where it is alone: what recipes read.
        "slopes": next(iter(slopes.values())) if len(slopes) == 1 else slopes,
    }
    frame, text = solve_rates(outcome), sentences(outcome)
    rates = frame["solve_rate"].map(lambda rate: "" if math.isnan(rate) else f"{rate:.6g}")
    table = frame.assign(solve_rate=rates)[["teacher", "student", "tasks", "solve_rate"]]
    with writing(f"--out {out}"):
        write_atomically(out, json.dumps(content) + "\n")
        write_atomically(out.with_suffix(".csv"), csv_text(list(table), table.values.tolist()))
        write_atomically(out.with_suffix(".html"), page(outcome, frame, text))
    print("\n".join([*text, f"{out}, the matrix in {out.with_suffix('.html')}"]))


def page(outcome: CrossPlay, frame: pd.DataFrame, text: Sequence[str]) -> str:
    """One HTML file: the matrix of solve rates as a heat map, and the sentences."""
    from azr_population.analysis import charts, html

    runs = dict.fromkeys(teacher.run for teacher in outcome.teachers)
    several = len({member.run for member in (*outcome.teachers, *outcome.students)}) > 1

    def label(name: str) -> str:
        """`step 75, T2` of `run/teacher_2@75`, after the run's name where there are several."""
        run, _, rest = name.rpartition("/")
        member, _, step = rest.partition("@")
        short = f"step {step}, {member[0].upper()}{member.rpartition('_')[2]}"
        return f"{run}, {short}" if several else short

    cells = frame.assign(row=frame["teacher"].map(label), column=frame["student"].map(label))
    cells = cells.rename(columns={"solve_rate": "value", "tasks": "count"})
    cells = cells[["row", "column", "value", "low", "high", "count"]]
    chart = charts.heatmap(cells, cell=_CELL, counts="tasks")
    note = (
        "Percent of a teacher's valid tasks (row) that a student (column) solves, by the step at "
        "which each was stored. Point at a cell for its interval and the number of tasks."
    )
    matrix = html.embed(chart, "Solve rates", note, "natural")
    title = f"Cross-play of {', '.join(runs)}"
    return html.page("crossplay.html.j2", title, matrix=matrix, sentences=text)


def solve_rates(outcome: CrossPlay) -> pd.DataFrame:
    """A line per pair: `teacher`, `student`, the number of valid `tasks`, and `solve_rate` with its
    95% interval over tasks (`low`, `high`); no rate without tasks."""
    from azr_population.analysis.statistics import interval

    lines: list[dict[str, Any]] = []
    for teacher, rates in zip(outcome.teachers, outcome.rates, strict=True):
        for student, solved in zip(outcome.students, rates, strict=True):
            test = interval(solved.tolist())
            lines.append(
                {"teacher": teacher.label, "student": student.label, "tasks": len(solved)}
                | {"solve_rate": test.mean, "low": test.low, "high": test.high}
            )
    frame = pd.DataFrame(lines)
    return frame.assign(low=frame["low"].clip(0.0, 1.0), high=frame["high"].clip(0.0, 1.0))


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
    skill, constant, games = outcome.calibration()
    if games:
        way = "better" if skill < constant else "worse"
        text.append(
            f"TrueSkill predicted {games} games {way} than a constant: Brier score {skill:.3f} "
            f"against {constant:.3f} (0 is perfect)"
        )
    return text
