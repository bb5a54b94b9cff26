"""Every stored teacher's tasks against every stored student, of one or several runs: who solves how
much, and how that moves over the steps."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from azr_population.analysis import charts, html
from azr_population.analysis.sentences import progress_sentence
from azr_population.analysis.statistics import interval, or_none
from azr_population.console.output import say
from azr_population.errors import UserError
from azr_population.eval.members import StoredMember, find_members, open_members
from azr_population.files import write_atomically, writing
from azr_population.method.held_out_eval import HeldOutEval
from azr_population.method.matchmaking import Match
from azr_population.method.phases import propose_and_judge
from azr_population.printable import print_lines
from azr_population.runs import RunDirectory
from azr_population.streams import Streams

Matrix = NDArray[np.float64]
_DRAWS = 400
"""Bootstrap samples."""
_CELL = 30
"""Pixels of a cell of the heat map."""


@dataclass(frozen=True)
class CrossPlay:
    """Everybody against everybody."""

    teachers: tuple[StoredMember, ...]
    students: tuple[StoredMember, ...]
    rates: tuple[Matrix, ...]
    """For each teacher the solve rate of each student at its n valid tasks, float64 [S, n];
    NaN at one that could not be judged."""
    proposed: int
    """Proposals of each teacher, valid or not."""

    @cached_property
    def matrix(self) -> Matrix:
        """Mean solve rates, float64 [T, S]; NaN for a teacher without a valid task."""
        return self._by_teacher(lambda rates: np.nanmean(rates, axis=1))

    def slopes(self) -> dict[str, dict[str, float]]:
        """For each run the change per 100 steps of its students' solve rate on the tasks of its
        earliest teachers, and of the share of its teachers' tasks that its earliest students leave
        unsolved; what has no two steps is left out, and so are runs without one of the sides."""
        return self._slopes(self.matrix)

    def sentences(self) -> list[str]:
        """The lines of `slopes` between the first and the last stored step, with 95% bootstrap
        intervals over each teacher's tasks. Some are lines through two steps, so look at the
        interval."""
        random = np.random.default_rng(0)

        def redraw(rates: Matrix) -> Matrix:
            return np.nanmean(rates[:, random.integers(0, len(rates.T), len(rates.T))], axis=1)

        resampled = [self._slopes(self._by_teacher(redraw)) for _ in range(_DRAWS)]
        text = [
            f"{len(self.teachers)} teachers of {self.proposed} proposals each, "
            f"{len(self.students)} students"
        ]
        for run, slopes in self.slopes().items():
            for role, slope in slopes.items():
                side = self.students if role == "student" else self.teachers
                steps = [member.step for member in side if member.run_label == run]
                first, last = min(steps), max(steps)
                span = (last - first) / 100
                drawn = [sample[run][role] for sample in resampled if role in sample[run]]
                change = interval(span * np.array([slope, *drawn]), "bootstrap")
                text.append(progress_sentence(run, role, first, last, change))
        return text

    def _by_teacher(self, statistic: Callable[[Matrix], Matrix]) -> Matrix:
        """A statistic of each teacher's solve rates, float64 [T, S]; NaN without tasks."""
        nothing = np.full(len(self.students), np.nan)
        return np.stack([statistic(rates) if rates.size else nothing for rates in self.rates])

    def _slopes(self, matrix: Matrix) -> dict[str, dict[str, float]]:
        sides = [[(m.run_label, m.step) for m in side] for side in (self.teachers, self.students)]
        rates = pd.DataFrame(matrix, *(pd.MultiIndex.from_tuples(side) for side in sides))
        slopes = {}
        with_students = {student.run_label for student in self.students}
        for run in dict.fromkeys(teacher.run_label for teacher in self.teachers):
            if run not in with_students:
                continue
            by_step = rates.loc[run][run]
            lines = {
                "student": by_step.loc[[by_step.index.min()]].mean(axis=0).dropna(),
                "teacher": (1 - by_step[[by_step.columns.min()]].mean(axis=1)).dropna(),
            }
            slopes[run] = {
                role: float(100 * np.polyfit(line.index, line, 1)[0])
                for role, line in lines.items()
                if line.index.nunique() > 1
            }
        return slopes


def play(
    addresses: Sequence[str | Path], every: int | None, tasks: int, attempts: int, seed: int
) -> CrossPlay:
    """All teachers that are stored at these addresses propose `tasks` each, and all students
    attempt them.

    Where a task has one right answer its probability is the solve rate, elsewhere the share of
    right answers among `attempts`. Arguments: see `find_members` for addresses and `every`.

    Raises UserError: nothing is stored at an address, there is no teacher or no student, or the
    members have different bases, domains or prompt formats.
    """
    by_address = [find_members(address, every=every) for address in addresses]
    stored = [member for members in by_address for member in members if member.folder]
    runs = {member.run.path.resolve(): member.run_label for member in stored if member.run}
    for label, count in Counter([*(m.label for m in stored), *runs.values()]).items():
        if count > 1:
            raise UserError(f"two are called {label}; name each once, or rename a folder")
    teachers = [member for member in stored if member.proposes]
    students = [member for member in stored if member.solves]
    for role, side in (("teacher", teachers), ("student", students)):
        if not side:
            raise UserError(f"{', '.join(map(str, addresses))}: there is no {role}; add one")
    streams = Streams(seed)
    with open_members(stored) as members:
        context, task_config = members.context, members.plan.config.task
        proposed = []
        types = members.plan.types
        for n, teacher in enumerate(teachers, 1):
            say(f"{teacher.label} proposes, {n} of {len(teachers)} teachers")
            proposer = members.load(teacher)
            drawn = streams.integer(f"crossplay {teacher.label}", teacher.step)
            wanted = [(Match(proposer, proposer), types[i % len(types)]) for i in range(tasks)]
            rows = propose_and_judge(context, wanted, task_config, drawn)
            proposed.append([row.task for row in rows if row.task is not None])
        all_tasks = [task for batch in proposed for task in batch]
        held_out = HeldOutEval(all_tasks, attempts, seed)
        rates: list[Matrix] = []
        for n, student in enumerate(students, 1):
            say(f"{student.label} attempts {len(all_tasks)} tasks, {n} of {len(students)} students")
            # Its label, because members of several runs have the same names.
            member = replace(members.load(student), name=student.label)
            solved = held_out.solve_rates(context, member, seed, student.step)
            rates.append(np.array(solved, dtype=np.float64))
    ends = np.cumsum([len(batch) for batch in proposed])[:-1]
    by_teacher = np.split(np.stack(rates), ends, axis=1)
    return CrossPlay(tuple(teachers), tuple(students), tuple(by_teacher), tasks)


def crossplay(
    addresses: Sequence[str],
    every: int | None,
    tasks: int,
    out: Path | None,
    samples: int = 2,
    seed: int = 1,
) -> None:
    """Plays the games and writes JSON and HTML. Raises UserError: as `play`, or `out` does not
    end in .json."""
    alone = len(addresses) == 1 and RunDirectory(addresses[0]).exists
    out = out or (Path(addresses[0]) if alone else Path()) / "crossplay.json"
    if out.suffix != ".json":
        raise UserError(f"--out {out} must end in .json")
    if not out.parent.is_dir():  # before the games
        raise UserError(f"--out {out} cannot be written: {out.parent} is not a folder")
    outcome = play(addresses, every, tasks, samples, seed)
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
    text, page = outcome.sentences(), out.with_suffix(".html")
    with writing(f"--out {out}"):
        write_atomically(out, json.dumps(content) + "\n")
        write_atomically(page, page_of(outcome, text))
    print_lines(*text, f"{out}, the matrix in {page}")


def page_of(outcome: CrossPlay, text: Sequence[str]) -> str:
    """One HTML file: the matrix of solve rates as a heat map, and the sentences."""
    runs = dict.fromkeys(teacher.run_label for teacher in outcome.teachers)
    several = len({member.run_label for member in (*outcome.teachers, *outcome.students)}) > 1

    def label(member: StoredMember) -> str:
        """`step 75, T2`, after the run's name where there are several."""
        short = f"step {member.step}, {member.name[0].upper()}{member.name.rpartition('_')[2]}"
        return f"{member.run_label}, {short}" if several else short

    cells = []
    for teacher, rates in zip(outcome.teachers, outcome.rates, strict=True):
        for student, solved in zip(outcome.students, rates, strict=True):
            judged = solved[~np.isnan(solved)]
            test = interval(judged.tolist())
            cells.append(
                {"row": label(teacher), "column": label(student), "value": test.mean}
                | {"low": test.low, "high": test.high, "count": len(judged)}
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
