"""Progress while a run goes on: live tables in a terminal, plain lines anywhere else."""

from __future__ import annotations

import os
from typing import Protocol

from rich.console import Console

from azr_population.reports.clock import Clock
from azr_population.reports.lines import (
    Record,
    conservative,
    end_lines,
    exam_line,
    match_line,
    replacement_line,
    role_line,
    show,
)


class View(Protocol):
    """What the training loop tells of. The arguments are the records that it also writes down.

    A view shows `-` for what a record lacks, and never touches the run. `on_end` must be called
    however the loop ends, or a terminal may stay without its cursor.
    """

    def on_start(self, run: Record) -> None:
        """Before the first step: `name` (4t4s), `steps` (total), `step` (done before, 0 unless
        resumed), `dir`, `members` (rows of `Roster.to_json`), and when resumed `lineage` (the
        replacements so far)."""

    def on_match(self, match: Record) -> None:
        """A rated match, as in matches.jsonl."""

    def on_replacement(self, child: Record) -> None:
        """A replaced member, as in lineage.jsonl."""

    def on_note(self, text: str) -> None:
        """Something that the person watching should know now, such as that a stop was heard."""

    def on_step(self, step: Record) -> None:
        """The end of a step, as in metrics.jsonl."""

    def on_end(self, result: Record) -> None:
        """After the last step, or when stopped: `status` (finished, interrupted, failed) and any of
        `dir`, `members`, `report`, `resume`: where things lie and the command to go on."""


class PlainView:
    """One line per event, for logs and pipes; the ratings come at the end."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._clock = Clock(0, 0)
        self._origin: dict[str, str] = {}
        self._members: Record = {}

    def on_start(self, run: Record) -> None:
        self._clock = Clock(run.get("step", 0), run.get("steps", 0))
        self._origin = {row["child"]: row["operator"] for row in run.get("lineage", ())}
        self._say(
            f"{run.get('name', 'run')}: {len(run.get('members', ()))} members, steps "
            f"{self._clock.done + 1} to {self._clock.steps}, recorded in {run.get('dir', '?')}"
        )

    def on_match(self, match: Record) -> None:
        self._say(f"  {match_line(match)}")

    def on_replacement(self, child: Record) -> None:
        self._origin[child["child"]] = child["operator"]
        self._say(f"  {replacement_line(child)}")

    def on_note(self, text: str) -> None:
        self._say(text)

    def on_step(self, step: Record) -> None:
        self._clock.tick(step)
        self._members = step.get("members") or {}
        parts = [
            f"step {step['step']}/{self._clock.steps}",
            f"{show(step.get('seconds'), '{:.1f}')} s, {self._clock.left} left",
            *(role_line(role, metrics) for role, metrics in (step.get("roles") or {}).items()),
        ]
        if step.get("exam"):
            parts.append(exam_line(step["exam"]))
        self._say(" | ".join(parts))

    def on_end(self, result: Record) -> None:
        for name, member in self._members.items():
            if member.get("mu") is not None:
                self._say(
                    f"{name:<10} mu {member['mu']:5.1f}  sigma {member['sigma']:4.1f}  "
                    f"conservative {conservative(member):5.1f}  "
                    f"generation {member.get('generation', 0)} "
                    f"{self._origin.get(name, '')}".rstrip()
                )
        for line in end_lines(result, self._clock.done, self._clock.steps):
            self._say(line)

    def _say(self, line: str) -> None:
        # soft_wrap: a log keeps one event on one line however narrow it believes itself to be.
        self._console.print(line, markup=False, highlight=False, emoji=False, soft_wrap=True)


def view_for(console: Console | None = None) -> View:
    """The live view in a terminal that can redraw, the plain one otherwise (also TERM=dumb)."""
    from azr_population.reports.live import LiveView

    console = console or Console()
    live = console.is_terminal and not console.is_dumb_terminal and not os.environ.get("CI")
    return LiveView(console) if live else PlainView(console)
