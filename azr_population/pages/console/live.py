"""Progress as tables that are redrawn in a terminal."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from azr_population.pages.console.heartbeat import IN_A_TERMINAL, heartbeat, moving
from azr_population.pages.console.lines import (
    ROLE_COLUMNS,
    end_lines,
    eval_line,
    match_line,
    origin,
    replacement_line,
)
from azr_population.pages.console.time_left import TimeLeft
from azr_population.runs.records import (
    Record,
    conservative,
    metrics_of_members,
    metrics_of_roles,
    rating,
    role_of,
    show,
)

ROLE_STYLE = {"teacher": "magenta", "student": "cyan", "agent": "green"}
SIDE_BY_SIDE = 76
"""Terminal width from which the two sub-populations are shown side by side."""


class LiveView:
    """Matches and replacements scroll by above a table of progress, roles and ratings.

    It redraws on events and by a timer, and has no thread: the referee forks workers, and a fork
    can hang while another thread holds the output lock.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, auto_refresh=False)
        self._time = TimeLeft(0, 0)
        self._name = "run"
        self._done = False
        self._step: dict[str, Any] = {}
        self._eval: Record | None = None
        self._members: dict[str, Record] = {}
        self._births: dict[str, Record] = {}
        self._beats = ExitStack()
        self._phase: Callable[[], str] = str

    def on_start(self, run: Record) -> None:
        self._time = TimeLeft(run.get("step", 0), run.get("steps", 0))
        self._name = run.get("name", "run")
        self._members = {member["name"]: member for member in run.get("members", ())}
        self._births = {row["child"]: row for row in run.get("lineage", ())}
        self._print(Text(f"{self._name}, recorded in {run.get('dir', '?')}"))
        self._phase = run.get("phase", str)
        self._live.start()
        self._redraw()
        self._beats.enter_context(heartbeat(self._redraw, IN_A_TERMINAL))

    def on_match(self, match: Record) -> None:
        self._print(_coloured(match_line(match)))

    def on_replacement(self, child: Record) -> None:
        self._births[child["child"]] = child
        self._print(_coloured(replacement_line(child), "bold yellow"))

    def on_note(self, text: str) -> None:
        self._print(_coloured(text, "bold"))

    def on_step(self, step: Record) -> None:
        self._time.tick(step)
        self._step = dict(step)
        self._eval = step if "eval/greedy" in step else self._eval
        self._members = {
            name: {**self._members.get(name, {}), **member}
            for name, member in metrics_of_members(step).items()
        }
        self._redraw()

    def on_end(self, result: Record) -> None:
        self._beats.close()
        self._done = True
        self._redraw()
        self._live.stop()
        lines = end_lines(result, self._time.done, self._time.steps)
        for i, line in enumerate(lines):
            self._print(Text(line, style="bold red" if result.get("wrong") and i < 2 else ""))

    def _print(self, line: Text) -> None:
        self._console.print(line, highlight=False)

    def _redraw(self) -> None:
        parts: list[RenderableType] = [Text(), self._header()]
        if not self._done and self._time.done < self._time.steps:
            parts.append(moving(self._time.in_step(self._phase())))
        if roles := metrics_of_roles(self._step):
            parts.append(self._roles(roles))
        if self._members:
            parts.append(self._ratings())
        self._live.update(Group(*parts), refresh=True)

    def _header(self) -> Table:
        time = self._time
        pace = show(time.per_step, "{:.1f} s/step")
        words = f"{self._name}  step {time.done}/{time.steps}  {pace}  {time.left} left"
        if self._eval:
            words += f"  {eval_line(self._eval)}"
        row = Table.grid(padding=(0, 1), expand=True)
        row.add_column(no_wrap=True)
        row.add_column(ratio=1)
        row.add_row(
            Text(words, style="bold"), ProgressBar(total=max(1, time.steps), completed=time.done)
        )
        return row

    def _roles(self, roles: Mapping[str, Record]) -> Table:
        table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
        table.add_column("role", no_wrap=True)
        columns = [
            column
            for column in ROLE_COLUMNS
            if any(column[1] in metrics for metrics in roles.values())
        ]
        for heading, _, _ in columns:
            table.add_column(heading, justify="right", no_wrap=True)
        for role, metrics in roles.items():
            cells = (show(metrics.get(key), form) for _, key, form in columns)
            table.add_row(Text(role, style=ROLE_STYLE.get(role, "")), *cells)
        return table

    def _ratings(self) -> RenderableType:
        roles = list(dict.fromkeys(role_of(name) for name in self._members))
        tables = [self._sub_population(role) for role in roles]
        if len(tables) < 2 or self._console.width < SIDE_BY_SIDE:
            return Group(*tables)
        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_row(*tables)
        return grid

    def _sub_population(self, role: str) -> Table:
        """The members of a role, the highest conservative rating first."""
        room = 24 if self._console.width >= 120 else 14 if self._console.width >= 96 else 7
        table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim")
        table.add_column("member", no_wrap=True)
        table.add_column("mu ± sigma", justify="right", no_wrap=True)
        table.add_column("mu-3s", justify="right", no_wrap=True)
        table.add_column("gen", justify="right", no_wrap=True)
        table.add_column("origin", no_wrap=True, overflow="ellipsis", max_width=room)
        rows = [item for item in self._members.items() if role_of(item[0]) == role]
        for name, member in sorted(rows, key=lambda item: -(conservative(item[1]) or 0.0)):
            table.add_row(
                Text(name, style=ROLE_STYLE.get(role, "")),
                rating(member),
                show(conservative(member), "{:.1f}"),
                str(member.get("generation", 0)),
                Text(origin(self._births, name, self._time.done), style="dim"),
            )
        return table


def _coloured(line: str, style: str = "") -> Text:
    """The line with members' names in the colour of their role; nothing in it is markup."""
    text = Text(line, style=style)
    for role, colour in ROLE_STYLE.items():
        text.highlight_regex(rf"{role}_\d+", colour)
    return text
