"""`azr-population crossplay`: stored teachers against stored students, of one or several runs."""

from __future__ import annotations

import argparse
import csv
import io
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from azr_population.errors import UserError
from azr_population.files import write_atomically

if TYPE_CHECKING:
    from azr_population.measuring.outcome import Outcome

DESCRIPTION = """\
The teachers that runs have stored (run.snapshot_every) propose tasks once, and all stored students
attempt all of them. Tells who solves how much, ratings from it, how far it is from transitive,
whether TrueSkill had foreseen it, and for each run whether late students beat early ones against
the earliest teachers, and late teachers early ones against the earliest students.

  azr-population crossplay runs/mine --every 25 --tasks 96
  azr-population crossplay runs/a runs/b --out both.json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("paths", nargs="+", metavar="RUN")
    parser.add_argument("--every", type=int, default=25, metavar="N", help="snapshots (25)")
    parser.add_argument("--tasks", type=int, default=96, metavar="N", help="of each teacher (96)")
    parser.add_argument(
        "--attempts", type=int, default=2, metavar="N", help="where answers are sampled (2)"
    )
    parser.add_argument("--seed", type=int, default=1, metavar="S")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE.json",
        help="CSV and HTML beside it; default: crossplay.json in the run, or here for several",
    )


def run(arguments: argparse.Namespace) -> int:
    """Returns the exit code 0."""
    # Imported late: every command of the command line has this module's arguments.
    from azr_population.measuring.crossplay_page import page
    from azr_population.measuring.games import play

    alone = len(arguments.paths) == 1
    out = arguments.out or (Path(arguments.paths[0]) if alone else Path()) / "crossplay.json"
    if out.suffix != ".json":
        raise UserError(f"--out {out} must end in .json")
    for name in ("every", "tasks", "attempts"):
        if getattr(arguments, name) < 1:
            raise UserError(f"--{name} {getattr(arguments, name)} is too small; the least is 1")
    outcome = play(
        arguments.paths, arguments.every, arguments.tasks, arguments.attempts, arguments.seed
    )
    content = to_json(outcome)
    try:
        write_atomically(out, json.dumps(content) + "\n")
        write_atomically(out.with_suffix(".csv"), to_csv(outcome))
        write_atomically(out.with_suffix(".html"), page(outcome, lines(content)))
    except OSError as error:
        raise UserError(f"--out {out} cannot be written: {error.strerror}") from error
    print("\n".join([*lines(content), f"{out}, the matrix in {out.with_suffix('.html')}"]))
    return 0


def to_json(outcome: Outcome) -> dict[str, Any]:
    """Everything, as plain data; what is not known is null."""
    difficulty, ability = outcome.rasch
    skill, constant, games = outcome.calibration()
    slopes = outcome.slopes()
    return {
        "teachers": [
            {"member": one.label, "tasks": int(n), "difficulty": _known(value)}
            for one, n, value in zip(outcome.teachers, outcome.tasks, difficulty, strict=True)
        ],
        "students": [
            {"member": one.label, "ability": _known(value)}
            for one, value in zip(outcome.students, ability, strict=True)
        ],
        "proposed": outcome.proposed,
        "solve_rates": [[_known(value) for value in row] for row in outcome.matrix],
        "residuals": _known(outcome.residuals()),
        "cycles": _known(outcome.cycles()),
        "brier": {"trueskill": _known(skill), "constant": _known(constant), "games": games},
        # Of the run itself where it is alone: what recipes read.
        "slopes": next(iter(slopes.values())) if len(slopes) == 1 else slopes,
    }


def to_csv(outcome: Outcome) -> str:
    """A line per pair: teacher, student, valid tasks, solve rate."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["teacher", "student", "tasks", "solve_rate"])
    for teacher, count, row in zip(outcome.teachers, outcome.tasks, outcome.matrix, strict=True):
        for student, value in zip(outcome.students, row, strict=True):
            told = "" if math.isnan(value) else f"{value:.6g}"
            writer.writerow([teacher.label, student.label, int(count), told])
    return text.getvalue()


def lines(content: dict[str, Any]) -> list[str]:
    """What came out, in sentences."""
    brier, slopes = content["brier"], content["slopes"]
    by_run = slopes if all(isinstance(v, dict) for v in slopes.values()) else {"": slopes}
    told = [
        f"{len(content['teachers'])} teachers of {content['proposed']} proposals each, "
        f"{len(content['students'])} students",
        f"Rasch residuals {_text(content['residuals'])} standard errors (1: one number per member "
        f"tells all), order turned round in {_text(content['cycles'], 100)}% of quadruples",
        f"TrueSkill's Brier {_text(brier['trueskill'])} against {_text(brier['constant'])} of a "
        f"constant, {brier['games']} games",
    ]
    for name, of_run in by_run.items():
        for role, against in (("student", "solved of"), ("teacher", "left unsolved by")):
            if role in of_run:
                other = "teachers" if role == "student" else "students"
                told.append(
                    f"{name + ': ' if name else ''}{role}s: {100 * of_run[role]:+.1f} points per "
                    f"100 steps {against} the earliest {other}"
                )
    return told


def _known(value: float) -> float | None:
    return None if math.isnan(value) else round(float(value), 6)


def _text(value: float | None, times: float = 1) -> str:
    return "-" if value is None else f"{times * value:.3g}"
