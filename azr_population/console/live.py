"""Progress as tables that are redrawn in a terminal."""

import os
import time
from collections.abc import Mapping

from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from azr_population.console.heartbeat import IN_A_TERMINAL
from azr_population.console.output import StandardOutput
from azr_population.console.view import (
    LinesView,
    View,
    birth_line,
    end_lines,
    eval_line,
    match_line,
    origin,
)
from azr_population.runs.records import (
    Record,
    conservative,
    metrics_of_roles,
    rating,
    role_of,
    show,
)

ROLE_STYLE = {"teacher": "magenta", "student": "cyan", "agent": "green"}


class LiveView(View):
    """Matches and replacements scroll by above a table of progress, roles and ratings.

    It redraws on events and by a timer, and has no thread: the referee forks workers, and a fork
    can hang while another thread holds the output lock.
    """

    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console
        self._live = Live(console=console, auto_refresh=False)
        self._playing = True
        self._writing = False
        self._step: Record = {}
        self._eval: Record | None = None

    def on_start(self, run: Record) -> None:
        super().on_start(run)
        self._print(f"{self.name}, recorded in {run.get('dir', '?')}")
        self._live.start()
        self._redraw()
        self._beat(self._on_beat, IN_A_TERMINAL)

    def on_match(self, match: Record) -> None:
        self._print(f"step {match.get('step', '?')}  {match_line(match)}")

    def on_replacement(self, child: Record) -> None:
        super().on_replacement(child)
        self._print(f"step {child.get('step', '?')}  {birth_line(child)}", "bold yellow")

    def on_note(self, text: str) -> None:
        self._print(text, "bold")

    def on_step(self, step: Record) -> None:
        super().on_step(step)
        self._step = step
        self._eval = step if "eval/greedy" in step else self._eval
        self._redraw()

    def on_end(self, result: Record) -> None:
        super().on_end(result)
        self._playing = False
        self._redraw()
        self._writing = True
        self._live.stop()
        for i, line in enumerate(end_lines(result, self.done, self.steps)):
            style = "bold red" if result.get("wrong") and i < 2 else ""
            self._console.print(Text(line, style), highlight=False)

    def _print(self, line: str, style: str = "") -> None:
        """The line with members' names in the colour of their role; nothing in it is markup."""
        text = Text(line, style)
        for role, colour in ROLE_STYLE.items():
            text.highlight_regex(rf"{role}_\d+", colour)
        self._writing = True
        self._console.print(text, highlight=False)
        self._writing = False

    def _on_beat(self) -> None:
        """A beat that interrupts a write would leave parts of two tables on the screen."""
        if not self._writing:
            self._redraw()

    def _redraw(self) -> None:
        parts: list[RenderableType] = [Text(), self._header()]
        if self._playing:
            bar = ProgressBar(pulse=True, animation_time=time.monotonic())
            parts.append(_beside(Text(self.in_step), bar))
        if metrics := metrics_of_roles(self._step):
            parts.append(self._roles(metrics))
        if self.members:
            roles = dict.fromkeys(map(role_of, self.members))
            parts.append(Columns([self._sub_population(role) for role in roles], padding=(0, 2)))
        self._writing = True
        self._live.update(Group(*parts), refresh=True)
        self._writing = False

    def _header(self) -> Table:
        words = f"{self.name}  step {self.done}/{self.steps}"
        if self.per_step is not None:
            words += f"  {self.per_step:.1f} s/step  {self.left}"
        if self._eval:
            words += f"  {eval_line(self._eval)}"
        bar = ProgressBar(total=max(1, self.steps), completed=self.done)
        return _beside(Text(words, style="bold"), bar)

    def _roles(self, roles: Mapping[str, Record]) -> Table:
        table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
        table.add_column("role", no_wrap=True)
        columns = [
            column for column in self.columns if any(column[1] in of for of in roles.values())
        ]
        for heading, _, _ in columns:
            table.add_column(heading, justify="right", no_wrap=True)
        for role, metrics in roles.items():
            cells = (show(metrics.get(key), form) for _, key, form in columns)
            table.add_row(Text(role, style=ROLE_STYLE.get(role, "")), *cells)
        return table

    def _sub_population(self, role: str) -> Table:
        """The members of a role, the highest conservative rating first."""
        room = 24 if self._console.width >= 120 else 14 if self._console.width >= 96 else 7
        table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim")
        table.add_column("member", no_wrap=True)
        for heading in ("mu ± sigma", "mu-3s", "gen"):
            table.add_column(heading, justify="right", no_wrap=True)
        table.add_column("origin", no_wrap=True, overflow="ellipsis", max_width=room)
        members = {name: of for name, of in self.members.items() if role_of(name) == role}
        for name in sorted(members, key=lambda name: -(conservative(members[name]) or 0.0)):
            member = members[name]
            table.add_row(
                Text(name, style=ROLE_STYLE.get(role, "")),
                rating(member),
                show(conservative(member), "{:.1f}"),
                str(member.get("generation", 0)),
                Text(origin(self.births, name, self.done), style="dim"),
            )
        return table


def _beside(words: Text, bar: ProgressBar) -> Table:
    """Words and a bar that takes the rest of the line."""
    row = Table.grid(padding=(0, 1), expand=True)
    row.add_column(no_wrap=True)
    row.add_column(ratio=1)
    row.add_row(words, bar)
    return row


def console_view(name: str = "auto", console: Console | None = None) -> View:
    """The view `live`, `lines` or `auto`: the live one in a terminal that can redraw, otherwise
    (and with TERM=dumb) lines."""
    console = console or StandardOutput()
    redraws = console.is_terminal and not console.is_dumb_terminal and not os.environ.get("CI")
    live = name == "live" or (name == "auto" and redraws)
    return LiveView(console) if live else LinesView(console)
