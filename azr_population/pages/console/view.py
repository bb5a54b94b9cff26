"""Progress while a run goes on: live tables in a terminal, plain lines anywhere else."""

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from typing import Protocol

from rich.console import Console

from azr_population.method.callbacks import current_phase
from azr_population.pages.console.heartbeat import ELSEWHERE, heartbeat
from azr_population.pages.console.lines import (
    end_lines,
    eval_line,
    match_line,
    origin,
    replacement_line,
    role_line,
)
from azr_population.pages.console.output import StandardOutput
from azr_population.pages.console.time_left import TimeLeft
from azr_population.registry import Registry
from azr_population.runs import RunDirectory
from azr_population.runs.records import (
    Record,
    conservative,
    metrics_of_members,
    metrics_of_roles,
    show,
)


class View(Protocol):
    """What the training loop reports to. The arguments are the records that it also writes.

    A view shows `-` for what a record lacks and never changes the run. `on_end` must be called
    however the loop ends, or the terminal may be left without a cursor.
    """

    def on_start(self, run: Record) -> None:
        """Before the first step: `name` (4t4s), `steps` (total), `step` (steps played before, 0
        unless resumed), `phase` (a function: what is being done), `dir`, `members` (rows of
        `Roster.to_json`) and, if resumed, `lineage` (the replacements so far)."""

    def on_match(self, match: Record) -> None:
        """A rated match, as in matches.jsonl."""

    def on_replacement(self, child: Record) -> None:
        """A replaced member, as in lineage.jsonl."""

    def on_note(self, text: str) -> None:
        """A message for the person watching, such as that the run is about to stop."""

    def on_step(self, step: Record) -> None:
        """The end of a step, as in metrics.jsonl."""

    def on_end(self, result: Record) -> None:
        """After the last step, or when stopped: `status` (finished, interrupted, failed) and any of
        `wrong` (why there is no valid proposal), `changed` (sentences on what changed), `dir`,
        `members`, `report` (paths) and `resume` (the command to go on)."""


VIEWS: Registry[Callable[[], View]] = Registry("run.console")
"""Name -> makes a view."""


@VIEWS.register("plain", "for logs and pipes")
class PlainView:
    """A line per event, for logs and pipes, and the ratings at the end."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or StandardOutput()
        self._time = TimeLeft(0, 0)
        self._births: dict[str, Record] = {}
        self._members: Record = {}
        self._beats = ExitStack()

    def on_start(self, run: Record) -> None:
        self._time = TimeLeft(run.get("step", 0), run.get("steps", 0))
        self._phase = run.get("phase", str)
        self._beats.enter_context(heartbeat(self._say_phase, ELSEWHERE))
        self._births = {row["child"]: row for row in run.get("lineage", ())}
        self._say(
            f"{run.get('name', 'run')}: {len(run.get('members', ()))} members, steps "
            f"{self._time.done + 1} to {self._time.steps}, recorded in {run.get('dir', '?')}"
        )

    def on_match(self, match: Record) -> None:
        self._say(f"  {match_line(match)}")

    def on_replacement(self, child: Record) -> None:
        self._births[child["child"]] = child
        self._say(f"  {replacement_line(child)}")

    def on_note(self, text: str) -> None:
        self._say(text)

    def on_step(self, step: Record) -> None:
        self._time.tick(step)
        self._members = metrics_of_members(step)
        parts = [
            f"step {step['step']}/{self._time.steps}",
            f"{show(step.get('time/step'), '{:.1f}')} s, {self._time.left} left",
            *(role_line(role, metrics) for role, metrics in metrics_of_roles(step).items()),
        ]
        if "eval/greedy" in step:
            parts.append(eval_line(step))
        self._say(" | ".join(parts))

    def _say_phase(self) -> None:
        self._say(f"  {self._time.in_step(self._phase())}")

    def on_end(self, result: Record) -> None:
        self._beats.close()
        for name, member in self._members.items():
            if member.get("mu") is not None:
                self._say(
                    f"{name:<10} mu {member['mu']:5.1f}  sigma {member['sigma']:4.1f}  "
                    f"mu - 3 sigma {conservative(member):5.1f}  "
                    f"generation {member.get('generation', 0)} "
                    f"{origin(self._births, name, self._time.done)}"
                )
        for line in end_lines(result, self._time.done, self._time.steps):
            self._say(line)

    def _say(self, line: str) -> None:
        # soft_wrap keeps an event on one line, whatever width a log claims to have.
        self._console.print(line, markup=False, highlight=False, emoji=False, soft_wrap=True)


@VIEWS.register("lines", "for the log of a program that has lines of its own, such as AZR's")
class StepLines:
    """A line per event, each with its step; nothing at the start and the end."""

    _step = 0

    def on_start(self, run: Record) -> None:
        self._step = run.get("step", 0)

    def on_match(self, match: Record) -> None:
        self._step = match["step"]
        self.on_note(match_line(match))

    def on_replacement(self, child: Record) -> None:
        self.on_note(replacement_line(child))

    def on_note(self, text: str) -> None:
        print(f"population step {self._step}: {text}", flush=True)

    def on_step(self, step: Record) -> None:
        for role, figures in metrics_of_roles(step).items():
            self.on_note(role_line(role, figures))

    def on_end(self, result: Record) -> None:
        if result.get("wrong"):
            self.on_note(str(result["wrong"]))
        if result.get("report"):
            print(f"azr-population: {result['report']}", flush=True)


def show_start(
    view: View,
    directory: RunDirectory,
    name: str,
    steps: int,
    step: int,
    members: Sequence[Record],
) -> None:
    """The run before its first step, or before the one after `step` that it goes on with."""
    view.on_start(
        {
            "name": name,
            "steps": steps,
            "step": step,
            "phase": current_phase,
            "dir": str(directory.path),
            "members": members,
            "lineage": list(directory.lineage()),
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


@VIEWS.register("live", "tables in a terminal")
def live() -> View:
    """Redrawn tables, whatever the output is."""
    from azr_population.pages.console.live import LiveView

    return LiveView(StandardOutput())


@VIEWS.register("auto", "live in a terminal, plain elsewhere")
def view_for(console: Console | None = None) -> View:
    """The live view in a terminal that can redraw, otherwise (and with TERM=dumb) the plain one."""
    from azr_population.pages.console.live import LiveView

    console = console or StandardOutput()
    live = console.is_terminal and not console.is_dumb_terminal and not os.environ.get("CI")
    return LiveView(console) if live else PlainView(console)
