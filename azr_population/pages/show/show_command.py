"""`azr-population show`: what the members of a run wrote, and what became of it."""

import argparse
import json
import sys

DESCRIPTION = """\
Completions that a run has kept (run.log_completions of each step, all of the first), the newest
last: the verdict with its reason, what was asked and what was written.

  azr-population show runs/mine
  azr-population show runs/mine --refused --type code_o
  azr-population show runs/mine --step 1 --member teacher_0 --limit 0
  azr-population show runs/mine --json | jq -r .completion
"""
VERDICTS = {
    "refused": "proposals that are no task",
    "valid": "proposals that are a task",
    "solved": "attempts that are right",
    "failed": "attempts that are not",
}
LIMIT = 6


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("path", metavar="RUN", help="the run's folder")
    parser.add_argument("--step", type=int, metavar="N", help="of that step alone")
    parser.add_argument("--member", metavar="NAME", help="teacher_0, student_1, ...")
    parser.add_argument("--type", help="of task: code_o, code_i, code_f, or another domain's")
    for verdict, summary in VERDICTS.items():
        parser.add_argument(
            f"--{verdict}", dest="verdicts", action="append_const", const=verdict, help=summary
        )
    parser.add_argument(
        "--limit",
        type=int,
        metavar="N",
        help=f"the newest N, 0: all; default {LIMIT}, with --json all",
    )
    parser.add_argument("--full", action="store_true", help="prompts whole and not folded")
    parser.add_argument("--json", action="store_true", help="the records as they are, one a line")


def run(arguments: argparse.Namespace) -> int:
    """Returns the exit code 0."""
    # Imported late: every command of the command line has this module's arguments.
    from azr_population.errors import UserError
    from azr_population.pages.console.output import plain_output
    from azr_population.pages.show.cards import card
    from azr_population.pages.show.select import Wanted, select
    from azr_population.runs import RunDirectory
    from azr_population.runs.records import domain_of

    limit = arguments.limit if arguments.limit is not None else 0 if arguments.json else LIMIT
    if limit < 0:
        raise UserError(f"--limit {limit} is no number of completions; 0 shows all")
    wanted = Wanted(
        arguments.step, arguments.member, arguments.type, arguments.verdicts or (), limit
    )
    run = RunDirectory(arguments.path)
    chosen = select(run, wanted)
    if arguments.json:
        for row in chosen.rows:
            print(json.dumps(row))
    else:
        console, marks = plain_output(), domain_of(run).marks
        for row in chosen.rows:
            console.print(card(row, marks, arguments.full))
        if len(chosen.rows) < chosen.total:
            console.print(
                f"the newest {len(chosen.rows)} of {chosen.total}; --limit 0 shows all", style="dim"
            )
    if not chosen.rows:
        print("no completion that is kept fits", file=sys.stderr)
    return 0
