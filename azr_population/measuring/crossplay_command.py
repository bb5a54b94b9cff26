"""Stored teachers against stored students, of one or several runs."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from azr_population.errors import UserError
from azr_population.files import write_atomically, writing

if TYPE_CHECKING:
    from azr_population.measuring.crossplay import CrossPlay


def crossplay(
    paths: Sequence[str],
    every: int | None = None,
    tasks: int = 96,
    samples: int = 2,
    seed: int = 1,
    out: Path | None = None,
) -> None:
    """Plays the games and writes JSON, CSV and HTML. Raises UserError: as `games.play`, or `out`
    does not end in .json."""
    from azr_population.analysis.crossplay_page import crossplay_page
    from azr_population.measuring.games import play

    out = out or (Path(paths[0]) if len(paths) == 1 else Path()) / "crossplay.json"
    if out.suffix != ".json":
        raise UserError(f"--out {out} must end in .json")
    outcome = play(paths, every, tasks, samples, seed)
    content = to_json(outcome)
    with writing(f"--out {out}"):
        write_atomically(out, json.dumps(content) + "\n")
        write_atomically(out.with_suffix(".csv"), to_csv(outcome))
        write_atomically(out.with_suffix(".html"), crossplay_page(outcome, sentences(outcome)))
    print("\n".join([*sentences(outcome), f"{out}, the matrix in {out.with_suffix('.html')}"]))


def to_json(outcome: CrossPlay) -> dict[str, Any]:
    """Everything, as plain data; what is not known is null."""
    from azr_population.analysis.statistics import or_none

    difficulty, ability = outcome.rasch
    skill, constant, games = outcome.calibration()
    slopes = outcome.slopes()
    return {
        "teachers": [
            {"member": member.label, "tasks": int(n), "difficulty": or_none(value)}
            for member, n, value in zip(outcome.teachers, outcome.tasks, difficulty, strict=True)
        ],
        "students": [
            {"member": member.label, "ability": or_none(value)}
            for member, value in zip(outcome.students, ability, strict=True)
        ],
        "proposed": outcome.proposed,
        "solve_rates": [[or_none(value) for value in row] for row in outcome.matrix],
        "residuals": or_none(outcome.residuals()),
        "cycles": or_none(outcome.cycles()),
        "brier": {"trueskill": or_none(skill), "constant": or_none(constant), "games": games},
        # Of the run itself where it is alone: what recipes read.
        "slopes": next(iter(slopes.values())) if len(slopes) == 1 else slopes,
    }


def to_csv(outcome: CrossPlay) -> str:
    """A line per pair: teacher, student, valid tasks, solve rate."""
    from azr_population.printable import csv_text

    rows = [
        [teacher.label, student.label, int(count), "" if math.isnan(value) else f"{value:.6g}"]
        for teacher, count, row in zip(outcome.teachers, outcome.tasks, outcome.matrix, strict=True)
        for student, value in zip(outcome.students, row, strict=True)
    ]
    return csv_text(["teacher", "student", "tasks", "solve_rate"], rows)


def sentences(outcome: CrossPlay) -> list[str]:
    """What came out, in sentences."""
    from azr_population.analysis.statistics import interval_text

    text = [
        f"{len(outcome.teachers)} teachers of {outcome.proposed} proposals each, "
        f"{len(outcome.students)} students"
    ]
    for moved in outcome.changes():
        change = interval_text(moved.share, percent=True, signed=True)
        text.append(
            f"{moved.run}: {moved.role}s of step {moved.last} against those of step {moved.first}: "
            + (
                f"{change} of the earliest teachers' tasks solved"
                if moved.role == "student"
                else f"{change} of their tasks left unsolved by the earliest students"
            )
        )
    skill, constant, games = outcome.calibration()
    if games:
        way = "better" if skill < constant else "worse"
        text.append(
            f"TrueSkill predicted {games} games {way} than a constant: Brier score {skill:.3f} "
            f"against {constant:.3f} (0 is perfect)"
        )
    if not math.isnan(cycles := outcome.cycles()):
        text.append(f"Rock-paper-scissors: {cycles:.1%} of quadruples")
    if not math.isnan(residual := outcome.residuals()):
        text.append(
            f"one skill per member leaves a residual of {residual:.2f} standard errors "
            "(1 is chance)"
        )
    return text
