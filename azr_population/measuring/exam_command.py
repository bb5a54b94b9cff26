"""`azr-population eval`: stored members sit a held-out exam after their run."""

import argparse
from pathlib import Path

DESCRIPTION = """\
The members that solve, as a run stored them, sit a held-out exam: those of its last step, and with
--every those of its snapshots (run.snapshot_every). The bare base sits it too. The score is
greedy decoding; the JSON has temperature 1 beside it: the right answer's probability where a task
has one, else samples.

  azr-population eval runs/mine
  azr-population eval runs/mine --every 25 --tasks 150 --samples 10 --seed 1121

Intervals are 95% over tasks: what another exam of the kind would tell of these members. They say
nothing about another run.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("path", metavar="RUN", help="the run's folder")
    parser.add_argument("--every", type=int, default=0, metavar="N", help="snapshots too")
    parser.add_argument("--tasks", type=int, metavar="N", help="of each type; default: the run's")
    parser.add_argument(
        "--samples",
        type=int,
        metavar="N",
        help="at temperature 1, for the JSON; default: the run's",
    )
    parser.add_argument("--seed", type=int, metavar="S", help="of the exam; default: the run's")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE.json",
        help="default: exam_S.json in the run; a CSV beside",
    )


def run(arguments: argparse.Namespace) -> int:
    """Returns the exit code 0."""
    # Imported late: every command of the command line has this module's arguments.
    from azr_population.measuring.exam import examine, print_table, write_results

    given = {"tasks_per_type": arguments.tasks, "samples": arguments.samples}
    given["seed"] = arguments.seed
    typed = [f"eval.{key}={value}" for key, value in given.items() if value is not None]
    about, results = examine(arguments.path, typed, arguments.every)
    print_table(about, results)
    print(write_results(about, results, arguments.out))
    return 0
