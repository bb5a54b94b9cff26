"""`azr-population sample`: a member tried by hand."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from azr_population.measuring.play.player import Player, Record

DESCRIPTION = """\
Asks one member: prompts of yours, proposals, or tasks of yours to solve. Completions come with
their verdict, as azr-population show prints them. Without --prompt, --propose and --solve it is a
conversation, typed or piped (/help).

  azr-population sample runs/mine teacher_0
  azr-population sample runs/mine teacher_0 --propose code_o --samples 3
  azr-population sample runs/mine student_1 --solve program.py --input "[1, 2], 3"
  azr-population sample runs/mine base --prompt "def f"       (the base without a member)
  azr-population sample PEFT_FOLDER --base BASE --format chat
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument(
        "path", metavar="RUN_OR_FOLDER", type=Path, help="a run, a PEFT folder, or a base"
    )
    parser.add_argument("member", metavar="MEMBER", nargs="?", help="teacher_0, student_1, base")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--prompt", metavar="TEXT", help="a prompt of yours, as it is")
    what.add_argument("--propose", metavar="TYPE", help="of task")
    what.add_argument("--solve", metavar="FILE.py", help="a program with a function f; - reads it")
    parser.add_argument(
        "--input",
        metavar="ARGUMENTS",
        action="append",
        default=[],
        help="for --solve, as in f(...); a puzzle needs none",
    )
    parser.add_argument("--type", help="of task, for --solve; default: the first")
    parser.add_argument("--samples", type=int, default=1, metavar="N", help="answers")
    parser.add_argument("--temperature", type=float, default=1.0, metavar="T", help="0: greedy")
    parser.add_argument("--max-tokens", type=int, default=0, metavar="N", help="of a completion")
    parser.add_argument("--seed", type=int, default=1, help="of the draws")
    parser.add_argument("--base", type=Path, metavar="DIR", help="in place of what a folder names")
    parser.add_argument(
        "--format", choices=("nano", "chat", "short"), help="default: the run's, or the base's own"
    )
    parser.add_argument("--json", action="store_true", help="records, one a line")


def run(arguments: argparse.Namespace) -> int:
    """Returns the exit code 0."""
    # Imported late: every command of the command line has this module's arguments.
    from azr_population.errors import UserError
    from azr_population.measuring.play.player import SamplingOptions, open_player
    from azr_population.measuring.play.session import session, show, typed
    from azr_population.pages.console.output import plain_output

    if arguments.samples < 1 or arguments.temperature < 0 or arguments.max_tokens < 0:
        raise UserError("--samples begins at 1, --temperature and --max-tokens at 0")
    console = plain_output()
    how = SamplingOptions(
        arguments.samples, arguments.temperature, arguments.max_tokens, arguments.seed
    )
    with open_player(
        arguments.path, arguments.member, arguments.base, arguments.format, how
    ) as player:
        rows = _asked(player, arguments)
        if rows is None:
            if sys.stdin.isatty():
                console.print(f"{player.name} of {arguments.path}; /help, /quit")
                session(player, typed(input, player.name), console)
            else:
                session(player, (line.rstrip("\n") for line in sys.stdin), console)
        elif arguments.json:
            print(*map(json.dumps, rows), sep="\n")
        else:
            show(player, rows, console)
    return 0


def _asked(player: Player, arguments: argparse.Namespace) -> list[Record] | None:
    """What the options ask for; None where they ask for a conversation."""
    from azr_population.files import read_text
    from azr_population.measuring.play.session import task_type

    if arguments.prompt is not None:
        return player.ask(arguments.prompt)
    if arguments.propose:
        return player.propose(task_type(player, [arguments.propose]))
    if arguments.solve:
        stdin = arguments.solve == "-"
        program = sys.stdin.read() if stdin else read_text(Path(arguments.solve))
        type = task_type(player, [arguments.type] if arguments.type else [])
        return player.solve(type, program.strip("\n"), arguments.input)
    return None
