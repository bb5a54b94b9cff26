"""A conversation with a member, line by line, typed or piped."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence

from azr_population.errors import UserError
from azr_population.measuring.play.player import Player, Record
from azr_population.pages.console.output import StandardOutput, plain_output
from azr_population.pages.show.cards import card
from azr_population.printable import printable

HELP = """\
/propose TYPE   a task of one of the types {types}, judged as in a run
/solve TYPE     a task of yours: the program, a line with /input ARGUMENTS for each input that the
                type needs, /end
/help /quit
anything else is a prompt; a backslash at the end of a line goes on with the next one"""


def converse(player: Player, path: str) -> None:
    """Answers what is typed or piped; `path` is what the user called the run or folder."""
    console = plain_output()
    if sys.stdin.isatty():
        console.print(f"{player.name} of {path}; /help, /quit")
        session(player, typed(input, player.name), console)
    else:
        session(player, (line.rstrip("\n") for line in sys.stdin), console)


def print_records(player: Player, records: Sequence[Record], as_json: bool) -> None:
    """Prints completions as cards, or as JSON lines."""
    if as_json:
        print(*map(json.dumps, records), sep="\n")
    else:
        show(player, records, plain_output())


def session(player: Player, lines: Iterator[str], console: StandardOutput) -> None:
    """Answers line after line until they end. A mistake is printed and the session continues."""
    for line in lines:
        word, *arguments = line.split() or [""]
        try:
            if word in ("/quit", "/exit"):
                return
            if word == "/help":
                console.print(HELP.format(types=", ".join(player.domain.types)))
            elif word == "/propose":
                show(player, player.propose(task_type(player, *arguments[:1])), console)
            elif word == "/solve":
                type = task_type(player, *arguments[:1])
                console.print("the program, then /input ARGUMENTS, then /end", style="dim")
                show(player, player.solve(type, *_task(lines)), console)
            elif word.startswith("/"):
                raise UserError(f"{printable(word)} is unknown; /help lists what there is")
            elif word:
                show(player, player.ask(_whole(line, lines)), console)
        except UserError as error:
            console.print(str(error), style="bold red")


def show(player: Player, rows: Sequence[Record], console: StandardOutput) -> None:
    """Prints a card for each."""
    for row in rows:
        console.print(card(row, player.domain.marks))


def task_type(player: Player, name: str | None = None) -> str:
    """The type of that name, or the domain's first. Raises UserError: there is none."""
    types = list(player.domain.types)
    if name is not None and name not in types:
        names = ", ".join(types)
        raise UserError(f"{printable(name)} is not a type of task; choose from {names}")
    return name or types[0]


def _whole(line: str, lines: Iterator[str]) -> str:
    parts = [line]
    while parts[-1].endswith("\\"):
        parts[-1] = parts[-1][:-1]
        parts.append(next(lines, ""))
    return "\n".join(parts)


def _task(lines: Iterator[str]) -> tuple[str, list[str]]:
    """Program and inputs up to the line `/end`."""
    program: list[str] = []
    inputs: list[str] = []
    for line in lines:
        if line.strip() == "/end":
            break
        if line.startswith("/input"):
            inputs.append(line.removeprefix("/input").strip())
        else:
            program.append(line)
    return "\n".join(program).strip("\n"), inputs


def typed(read: Callable[[str], str], name: str) -> Iterator[str]:
    """What a person types, until the end of input."""
    while True:
        try:
            yield read(f"{name}> ")
        except EOFError:
            print()
            return
