"""The command line: `azr-population COMMAND`. Every command is a few lines; rooms do the work."""

from __future__ import annotations

import argparse
import errno
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from azr_population import __version__
from azr_population.arguments import Parser
from azr_population.errors import UserError
from azr_population.printable import printable
from azr_population.registry import EVERYTHING, trust

_TRAIN = """\
Co-evolve populations of LoRA adapters by self-play. Overrides are Hydra's:

  azr-population train population=4t4s base=nano run.steps=20 run.dir=runs/demo seed=1
  azr-population train population=2t2s evolution=none matchmaking=uniform
  azr-population train base=hf base.path=/models/coder engine=torch_cuda

several seeds:

  for seed in 1 2 3; do azr-population train seed=$seed run.dir=runs/4t4s/seed_$seed; done

Any field can be set (population.batch_size=96); `azr-population train --config` prints them all.
Groups:

"""

_COMPARE = """\
Which arm is better, by how much, at what cost: a sentence for each pair of arms, with 95% intervals
over seeds, and a table, in the terminal and on one page, which also has what differs between the
runs, the budget of each, and the curves. Skill is the first of AZR's validation, the benchmarks and
the held-out tasks that both arms have and measured alike.

  azr-population compare runs/single runs/4t4s
  azr-population compare runs/recipes/nano/single runs/recipes/nano/4t4s     folders of seed_*
  azr-population compare one=runs/a one=runs/b other=runs/c --out ab.html     seeds by name
  azr-population compare stock=azr_console.log ours=runs/4t4s                a stock AZR log
  azr-population compare stock=azr.log stock=evaluations/azr/figures.json ours=runs/4t4s

A RUN is a run's folder, a folder of runs named seed_*, a stock AZR log (console output, or an
export from Weights & Biases as JSON or CSV, one run per file), or the figures.json that
benchmark left.
"""


LONGEST_LINE = 2000
"""Characters of a mistake's line: a value that somebody sent may have millions."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code: 0, 2 for a user's mistake, 130 for Ctrl-C, 141
    when the reader of its output went away (both as shells count signals)."""
    try:
        arguments = _parser().parse_args(argv)
        if arguments.trust:
            trust(EVERYTHING)
        code: int = arguments.run(arguments)
        if sys.stdout:  # None where it was closed before we came
            sys.stdout.flush()
        return code
    except UserError as error:
        print(f"azr-population: {printable(str(error)[:LONGEST_LINE])}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("azr-population: stopped", file=sys.stderr)
        return 130
    except BrokenPipeError as error:
        if error.errno is None or error.strerror != os.strerror(error.errno):
            print(f"azr-population: {error.strerror}", file=sys.stderr)
        _leave_output()
        return 128 + signal.SIGPIPE
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        _leave_output()
        where = error.filename or "its output"
        print(f"azr-population: {where} cannot be written: {error.strerror}", file=sys.stderr)
        return 2


def _leave_output() -> None:
    """The interpreter flushes what is left of the output when it ends, and there it would fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parser() -> Parser:
    parser = Parser(
        prog="azr-population",
        description="Co-evolving populations of LoRA adapters for reasoning self-play.",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    parser.add_argument(
        "--trust", action="store_true", help="run the code that a run's folder names as its own"
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    train = commands.add_parser(
        "train",
        help="start a run",
        description=_TRAIN + _groups(),
    )
    train.add_argument(
        "overrides", nargs="*", default=[], metavar="KEY=VALUE", help="e.g. run.steps=40"
    )
    train.add_argument(
        "--config",
        action="store_true",
        help="print the configuration with the meaning and bounds of every field, and stop",
    )
    train.add_argument(
        "--config-file",
        metavar="FILE",
        help="start from what --config printed, or from a run's config.yaml",
    )
    train.add_argument(
        "--dry-run",
        action="store_true",
        help="print who plays, the rows of a step and what memory it needs, and stop",
    )
    train.set_defaults(run=_train)

    resume = commands.add_parser("resume", help="go on with a run from its last checkpoint")
    resume.add_argument("path", metavar="RUN", help="the run's folder")
    resume.add_argument(
        "overrides", nargs="*", default=[], metavar="KEY=VALUE", help="e.g. run.steps=40; or none"
    )
    resume.set_defaults(run=_resume)

    report = commands.add_parser("report", help="write a run's report as one HTML page")
    report.add_argument(
        "path", metavar="RUN", help="its folder; of a folder of runs, all are listed"
    )
    report.add_argument("--out", metavar="FILE.html", help="default: report.html in the run")
    report.set_defaults(run=_report)

    recipe = commands.add_parser(
        "recipe", help="run a recipe for one of the paper's tables or figures, and draw it"
    )
    from azr_population.analysis.recipe_command import add_arguments
    from azr_population.evals import benchmark_command
    from azr_population.measuring import crossplay_command, exam_command
    from azr_population.measuring.play import play_command
    from azr_population.pages.show import show_command
    from azr_population.sharing import export_command, push_command

    add_arguments(recipe)
    recipe.set_defaults(run=_recipe)

    compare = commands.add_parser(
        "compare",
        help="write a page that lays runs over each other",
        description=_COMPARE,
    )
    compare.add_argument(
        "runs", nargs="+", metavar="[NAME=]RUN", help="what is compared: see above"
    )
    compare.add_argument(
        "--out",
        metavar="FILE.html",
        default="comparison.html",
        help="the page",
    )
    compare.add_argument("--json", action="store_true", help="print the verdicts as JSON")
    compare.set_defaults(run=_compare)

    for name, module, summary in (
        ("show", show_command, "what the members of a run wrote, and what became of it"),
        ("sample", play_command, "try a member by hand: prompts, proposals, tasks of yours"),
        (
            "benchmark",
            benchmark_command,
            "the paper's benchmarks for members, PEFT folders or a server's models",
        ),
        ("eval", exam_command, "a held-out exam for the members that a run has stored"),
        (
            "crossplay",
            crossplay_command,
            "stored teachers against stored students of one or several runs",
        ),
        ("export", export_command, "a run's tasks and figures: a data set, tables, a taskset"),
        ("push", push_command, "members to the Hugging Face Hub, with their cards"),
    ):
        command = commands.add_parser(
            name,
            help=summary,
            description=module.DESCRIPTION,
        )
        module.add_arguments(command)
        command.set_defaults(run=module.run)

    doctor = commands.add_parser("doctor", help="what this machine has, and what works here")
    doctor.set_defaults(run=_doctor)

    base = commands.add_parser("base", help="make a base model for self-play, or measure one")
    from azr_population.bases.base_command import add_arguments as add_base_arguments

    add_base_arguments(base)

    completion = commands.add_parser(
        "completion", help="a script that completes commands in a shell"
    )
    completion.add_argument("shell", choices=("bash", "zsh", "tcsh"), help="which one")
    completion.set_defaults(run=_completion)

    for name, text in (
        ("evolve", "make a child adapter from PEFT folders by a weight-space operator"),
        ("referee", "judge tasks from standard input, verdicts to standard output"),
    ):
        # No prefix of options here: `evolve --list` belongs to the command itself.
        command = commands.add_parser(name, help=text, add_help=False, prefix_chars="\0")
        command.add_argument("rest", nargs=argparse.REMAINDER, help=f"see {name} --help")
        command.set_defaults(run={"evolve": _evolve, "referee": _referee}[name])
    return parser


def _groups() -> str:
    """The groups of the configuration with their choices, from their files."""
    folders = sorted(path for path in (Path(__file__).parent / "config").iterdir() if path.is_dir())
    choices = {
        folder.name: sorted(file.stem for file in folder.glob("*.yaml")) for folder in folders
    }
    return "".join(f"  {name:<12} {' '.join(files)}\n" for name, files in choices.items() if files)


def _train(arguments: argparse.Namespace) -> int:
    from azr_population.config.load import config_from_file, load_fork

    if arguments.config_file:
        config = config_from_file(Path(arguments.config_file), arguments.overrides)
    else:
        config = load_fork(arguments.overrides)
    from azr_population.hosts.local.check import check_config

    trust(config)
    check_config(config)
    if arguments.config:
        from azr_population.config.explained import explained

        print(explained(config), end="")
        return 0
    if arguments.dry_run:
        from azr_population.hosts.local.plan import plan

        print(*plan(config), "nothing was started; leave out --dry-run to play", sep="\n")
        return 0
    from azr_population.hosts.local.run import train

    return train(config, typed=arguments.overrides).exit_code


def _resume(arguments: argparse.Namespace) -> int:
    from azr_population.hosts.local.run import resume

    return resume(arguments.path, arguments.overrides).exit_code


def _report(arguments: argparse.Namespace) -> int:
    from azr_population.analysis.listing import run_lines, runs_in
    from azr_population.analysis.report import write_report

    folder = Path(arguments.path)
    if not (folder / "config.yaml").exists() and (runs := runs_in(folder)):
        print(*run_lines(runs), sep="\n")
        print(f"{folder} holds {len(runs)} runs; name one of them")
        return 0
    print(write_report(arguments.path, Path(arguments.out) if arguments.out else None))
    return 0


def _recipe(arguments: argparse.Namespace) -> int:
    from azr_population.analysis.recipe_command import run

    return run(arguments)


def _compare(arguments: argparse.Namespace) -> int:
    from azr_population.analysis.comparison import compare_arms
    from azr_population.analysis.comparison_page import print_comparison, write_comparison

    compared = compare_arms(arguments.runs)
    page = str(write_comparison(compared, Path(arguments.out)))
    if arguments.json:
        print(json.dumps({**compared.to_json(), "page": page}, indent=2, allow_nan=False))
    else:
        print_comparison(compared)
        print(f"page: {page}")
    return 0


def _doctor(arguments: argparse.Namespace) -> int:
    from azr_population.hosts.local.doctor import doctor

    return doctor()


def _completion(arguments: argparse.Namespace) -> int:
    try:
        import shtab
    except ImportError:
        raise UserError("completion needs the package shtab: pip install shtab") from None
    print(shtab.complete(_parser(), arguments.shell))
    return 0


def _evolve(arguments: argparse.Namespace) -> int:
    from azr_population.weights.evolve_command import main as evolve

    return evolve(arguments.rest)


def _referee(arguments: argparse.Namespace) -> int:
    from azr_population.domains.piped import TYPES
    from azr_population.referee.pipe import main as referee

    if "--mcp" in arguments.rest:
        from azr_population.referee import RefereeSettings
        from azr_population.sharing.mcp_server import serve

        serve(RefereeSettings())
        return 0
    return referee(arguments.rest, TYPES)


if __name__ == "__main__":
    sys.exit(main())
