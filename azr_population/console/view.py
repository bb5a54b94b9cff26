"""Progress while a run goes on: live tables in a terminal, plain lines anywhere else."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from rich.console import Console

from azr_population.console.heartbeat import ELSEWHERE, heartbeat
from azr_population.console.output import StandardOutput
from azr_population.method.callbacks import current_phase
from azr_population.method.population import Population
from azr_population.printable import duration
from azr_population.runs import RunDirectory
from azr_population.runs.records import (
    Record,
    conservative,
    metrics_of_members,
    metrics_of_roles,
    show,
)

WINDOW = 10
"""Steps whose mean duration estimates the time left."""
Column = tuple[str, str, str]
"""A heading, its key in a role's metrics, its format."""
ROLE_COLUMNS: tuple[Column, ...] = (
    ("valid", "valid_frac", "{:.0%}"),
    ("unique", "unique_frac", "{:.0%}"),
    ("solved", "solve_rate", "{:.0%}"),
    ("reward", "reward", "{:+.2f}"),
)
"""The columns of every domain, in the order shown."""


class View:
    """Base of views, to which the training loop reports; it knows how far the run is, and prints
    nothing. The arguments are the records that the loop also writes.

    A view shows `-` for what a record lacks and never changes the run. `on_end` must be called
    however the loop ends, or the terminal may be left without a cursor.
    """

    def __init__(self) -> None:
        self.name, self.done, self.steps = "run", 0, 0
        self.members: dict[str, Record] = {}
        """Members' metrics by name, as far as recorded."""
        self.births: dict[str, Record] = {}
        """The last birth of each member that was replaced."""
        self.columns = ROLE_COLUMNS
        """Columns of a role: `ROLE_COLUMNS`, and the measures of the run's domain."""
        self._durations: deque[float] = deque(maxlen=WINDOW)
        self._began = time.monotonic()
        self._beats = ExitStack()

    def on_start(self, run: Record) -> None:
        """Before the first step: `name` (4t4s), `steps` (total), `step` (steps played before, 0
        unless resumed), `dir`, `members` (rows of `Roster.to_json`), `measures` (of its domain)
        and, if resumed, `lineage` (the replacements so far)."""
        self.name = run.get("name", "run")
        self.done, self.steps = run.get("step", 0), run.get("steps", 0)
        self.members = {member["name"]: member for member in run.get("members", ())}
        self.births = {row["child"]: row for row in run.get("lineage", ())}
        measures = [measure for measure in run.get("measures", ()) if measure.short]
        self.columns = (*ROLE_COLUMNS, *((m.short, m.name, m.form) for m in measures))
        self._began = time.monotonic()

    def on_match(self, match: Record) -> None:
        """A rated match, as in matches.jsonl."""

    def on_replacement(self, child: Record) -> None:
        """A replaced member, as in lineage.jsonl."""
        self.births[child["child"]] = child

    def on_note(self, text: str) -> None:
        """A message for the person watching, such as that the run is about to stop."""

    def on_step(self, step: Record) -> None:
        """The end of a step, as in metrics.jsonl."""
        self.done = step["step"]
        self._durations.append(step.get("time/step") or 0.0)
        self._began = time.monotonic()
        self.members = {
            name: {**self.members.get(name, {}), **member}
            for name, member in metrics_of_members(step).items()
        }

    def on_end(self, result: Record) -> None:
        """After the last step, or when stopped: `status` (finished, interrupted, failed) and any of
        `wrong` (why there is no valid proposal), `changed` (sentences on what changed), `dir`,
        `members`, `report` (paths) and `resume` (the command to go on)."""
        self._beats.close()

    @property
    def per_step(self) -> float | None:
        """Seconds per step over the last `WINDOW`; None before the first step."""
        return sum(self._durations) / len(self._durations) if self._durations else None

    @property
    def left(self) -> str:
        """`0:34 left`; empty before the first step."""
        per_step = self.per_step
        if per_step is None:
            return ""
        return f"{duration(per_step * max(0, self.steps - self.done))} left"

    @property
    def in_step(self) -> str:
        """The phase of the current step and its duration: `step 3: solve, 2:05 so far`; after the
        last step the report is being written."""
        phase = current_phase()
        name = f"{phase}, " if phase else ""
        if self.done >= self.steps:
            return f"all {self.steps} steps are done; writing the report"
        return f"step {self.done + 1}: {name}{duration(time.monotonic() - self._began)} so far"

    def _beat(self, beat: Callable[[], None], seconds: float) -> None:
        """Calls `beat` every so many seconds until the end."""
        self._beats.enter_context(heartbeat(beat, seconds))


def match_line(match: Record) -> str:
    """`teacher_1 vs student_3: 37 valid of 48, 41% solved; mu -0.4, +0.4`.

    The teacher's rating comes first. It prints the change, not the new value: after the step all
    ratings move together, so that the students' mean stays. The line must fit into 80 columns.
    """
    text = (
        f"{match['teacher']} vs {match['student']}: {match.get('valid', '?')} valid of "
        f"{match.get('proposed', '?')}, {show(match.get('solve_rate'), '{:.0%}', 'none')} solved"
    )
    moves = [
        f"{after - before:+.1f}"
        for side in ("teacher", "student")
        for before, after in [match.get(f"{side}_mu") or (None, None)]
        if before is not None
    ]
    return f"{text}; mu {', '.join(moves)}" if moves else text


def birth_line(child: Record) -> str:
    """`student_2 replaced by svd_subspace(student_0, student_3), k=4; fitness 9.1, ...`."""
    options = "".join(f", {name}={_short(value)}" for name, value in child["options"].items())
    fitness = child.get("fitness") or {}
    parents = ", ".join(show(value, "{:.1f}") for value in fitness.get("parents", ()))
    compared = f"; fitness {show(fitness.get('victim'), '{:.1f}')}, its parents' {parents}"
    return (
        f"{child['child']} replaced by {child['operator']}({', '.join(child['parents'])}){options}"
        f"{compared if parents else ''}; generation {child['generation']}"
    )


def role_line(role: str, metrics: Record, columns: Sequence[Column]) -> str:
    """`teacher valid 79%, unique 97%, reward +0.31, nodes 26.1, lines 4.1`, as far as known."""
    parts = [
        f"{heading} {show(metrics[key], form)}"
        for heading, key, form in columns
        if metrics.get(key) is not None
    ]
    return f"{role} {', '.join(parts)}" if parts else role


def eval_line(step: Record) -> str:
    """`eval 31%, best 36%`: the mean and the best member on the fixed held-out tasks."""
    mean, best = (show(step.get(f"eval/{name}"), "{:.0%}") for name in ("greedy", "best"))
    return f"eval {mean}, best {best}"


def origin(births: Mapping[str, Record], name: str, step: int) -> str:
    """The origin of a member: `start`, the operator that made it, or `new: ` and the operator
    if it was born at the end of this step and has not played yet. `births` are the last births."""
    if name not in births:
        return "start"
    mark = "new: " if births[name].get("step") == step else ""
    return f"{mark}{births[name]['operator']}"


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def end_lines(result: Record, done: int, steps: int) -> list[str]:
    """A view's last lines: how the run ended and where its files are; see `View.on_end`."""
    lines = [f"{result.get('status', 'finished')} after step {done} of {steps}"]
    if result.get("wrong"):
        lines = [f"{lines[0]}, without a valid proposal", str(result["wrong"])]
    lines += result.get("changed", ())
    for label, key in (
        ("run directory", "dir"),
        ("members (PEFT folders)", "members"),
        ("report", "report"),
        ("continue with", "resume"),
    ):
        if result.get(key):
            lines.append(f"{label}: {result[key]}")
    return lines


class LinesView(View):
    """A line per event, for logs and pipes, and the ratings at the end. With a `prefix` its lines
    stand among those of another program, which alone says what it is doing."""

    def __init__(self, console: Console | None = None, prefix: str = "") -> None:
        super().__init__()
        self._console = console or StandardOutput()
        self._prefix = prefix

    def on_start(self, run: Record) -> None:
        super().on_start(run)
        if not self._prefix:
            self._beat(lambda: self.on_note(f"  {self.in_step}"), ELSEWHERE)
        steps = f"steps {self.done + 1} to {self.steps}" if self.done < self.steps else "no steps"
        self.on_note(
            f"{self.name}: {len(self.members)} members, {steps}, recorded in {run.get('dir', '?')}"
        )

    def on_match(self, match: Record) -> None:
        self.on_note(f"  {match_line(match)}")

    def on_replacement(self, child: Record) -> None:
        super().on_replacement(child)
        self.on_note(f"  {birth_line(child)}")

    def on_note(self, text: str) -> None:
        # soft_wrap keeps an event on one line, whatever width a log claims to have.
        line = f"{self._prefix}{text}"
        self._console.print(line, markup=False, highlight=False, emoji=False, soft_wrap=True)

    def on_step(self, step: Record) -> None:
        super().on_step(step)
        parts = [
            f"step {self.done}/{self.steps}",
            f"{show(step.get('time/step'), '{:.1f}')} s, {self.left}",
            *(
                role_line(role, metrics, self.columns)
                for role, metrics in metrics_of_roles(step).items()
            ),
            *([eval_line(step)] if "eval/greedy" in step else []),
        ]
        self.on_note(" | ".join(parts))

    def on_end(self, result: Record) -> None:
        super().on_end(result)
        for name, member in self.members.items():
            if self._durations and member.get("mu") is not None:
                self.on_note(
                    f"{name:<10} mu {member['mu']:5.1f}  sigma {member['sigma']:4.1f}  "
                    f"mu - 3 sigma {conservative(member):5.1f}  "
                    f"generation {member.get('generation', 0)} "
                    f"{origin(self.births, name, self.done)}"
                )
        for line in end_lines(result, self.done, self.steps):
            self.on_note(line)


def show_start(
    view: View,
    directory: RunDirectory,
    name: str,
    steps: int,
    step: int,
    population: Population,
) -> None:
    """The run before its first step, or before the one after `step` that it goes on with."""
    view.on_start(
        {
            "name": name,
            "steps": steps,
            "step": step,
            "dir": str(directory.path),
            "members": population.roster.to_json(),
            "measures": population.domain.measures,
            "lineage": list(directory.read("lineage")),
        }
    )


def show_step(
    view: View,
    step: Record,
    matches: Iterable[Record],
    births: Iterable[Record],
    notes: Iterable[str],
) -> None:
    """A finished step: its matches, replacements and notes, and then its metrics."""
    for match in matches:
        view.on_match(match)
    for birth in births:
        view.on_replacement(birth)
    for note in notes:
        view.on_note(note)
    view.on_step(step)
