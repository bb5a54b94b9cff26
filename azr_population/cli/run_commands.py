"""`demo`, `train`, `resume`, `azr` play a population; `report`, `show`, `play`, `sample` look at
it."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import rich_click as click

from azr_population.cli.app import (
    FILE,
    app,
    base_option,
    flag,
    int_option,
    json_option,
    only_one,
    out_option,
    overrides_argument,
    run_argument,
    seed_option,
)
from azr_population.config.section import groups
from azr_population.errors import UserError
from azr_population.printable import print_lines

# The eval has 60 programs of each number of statements that the bare base solves at 5 to 95%, by
# the committed runs (92, 65, 40 and 10% of those of 6 to 9, eval.seed=9696; recipes/runs/defaults).
DEMO = (
    "population=2t2s base=nano population.batch_size=48 run.steps=24 eval.every=24 "
    "eval.tasks_per_type=720 eval.strata=[06_statements,07_statements,08_statements,09_statements] "
    "eval.samples=1 run.snapshot_every=12 run.dir=runs/demo seed=1"
)

TRAIN = """\
Start a run.

Co-evolves populations of LoRA adapters by self-play. Overrides are Hydra's; any field can be set
(population.batch_size=64), and --config prints them all.

\b
  azr-population train population=4t4s base=nano run.steps=20 seed=1
  azr-population train population=2t2s evolution=none matchmaking=uniform
  azr-population train base=hf base.path=/models/coder engine=torch_cuda

Several seeds:

\b
  for seed in 1 2 3; do azr-population train seed=$seed run.dir=runs/4t4s/seed_$seed; done

Groups of the configuration:

\b
"""


@app.command()
@overrides_argument
def demo(overrides: Sequence[str]) -> int:
    """Co-evolve 2 teachers and 2 students for 24 steps on the CPU.

    Writes runs/demo; overrides are those of train.

    \b
      azr-population demo
      azr-population demo run.steps=100 run.dir=runs/long
    """
    print(
        "Two teachers write small programs, two students predict what these return; a sandbox "
        "judges. docs/laptop.md explains the words below.",
        flush=True,
    )
    return _start([*DEMO.split(), *overrides])


@app.command(
    help=TRAIN + "".join(f"  {group:<12} {' '.join(names)}\n" for group, names in groups().items())
)
@overrides_argument
@flag("--config", help="print the configuration with its meaning, and stop")
@click.option(
    "--config-file", type=FILE, metavar="FILE", help="what --config printed, or a run's config.yaml"
)
@flag("--dry-run", help="print members, samples and memory, and stop")
def train(overrides: Sequence[str], config: bool, config_file: Path | None, dry_run: bool) -> int:
    return _start(overrides, config, config_file, dry_run)


def _start(
    overrides: Sequence[str],
    show_config: bool = False,
    config_file: Path | None = None,
    dry_run: bool = False,
) -> int:
    from azr_population.config.load import config_from_file, load_config

    settings = config_from_file(config_file, overrides) if config_file else load_config(overrides)
    if not (show_config or dry_run):
        from azr_population.hosts.local.run import train as play

        return play(settings).exit_code
    from azr_population.hosts.local.local_plan import page, resolve, with_layout

    plan = resolve(settings)
    if show_config:
        from azr_population.config.explained import explained

        print(explained(settings), end="")
    else:
        print_lines(*page(with_layout(plan)))
    return 0


@app.command()
@run_argument
@overrides_argument
def resume(path: str, overrides: Sequence[str]) -> int:
    """Continue a run from its last checkpoint.

    \b
      azr-population resume runs/demo
      azr-population resume runs/demo run.steps=64
    """
    from azr_population.hosts.local.run import resume as play

    return play(path, overrides).exit_code


@app.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("overrides", nargs=-1, type=click.UNPROCESSED, metavar="[KEY=VALUE]...")
@click.option("--module", metavar="NAME", help="run this module of AZR instead, with its arguments")
def azr(overrides: Sequence[str], module: str | None) -> None:
    """Start the Absolute Zero Reasoner, under AZR's own veRL or today's.

    Run it in AZR's checkout with AZR's overrides and a population.

    \b
      azr-population azr data.train_batch_size=64 +population=4t4s
      azr-population azr data.train_batch_size=64 +population=4t4s population.dry_run=true
    """
    from azr_population.hosts.azr.launch import launch

    launch(overrides, module)


@app.command()
@click.argument("path", metavar="RUN", type=FILE, help="its folder; a folder of runs is listed")
@out_option(metavar="FILE.html", help="default: report.html in the run")
def report(path: Path, out: Path | None) -> None:
    """Write a run's report as one HTML page."""
    from azr_population.analysis.report import run_lines, write_report
    from azr_population.runs import RunDirectory
    from azr_population.runs.directory import runs_in

    if path.suffix == ".html":
        raise UserError(f"{path} is not a run; write RUN --out {path}", key="RUN")
    if not RunDirectory(path).exists and (runs := runs_in(path)):
        print_lines(*run_lines(runs), f"{path} holds {len(runs)} runs; name one of them")
    else:
        print_lines(write_report(path, out))


@app.command()
@click.argument("address", metavar="ADDRESS", help="RUN, or RUN/MEMBER")
@click.option("--step", type=int, metavar="N", help="only this step")
@click.option("--type", "task_type", metavar="TYPE", help="only this type of task, e.g. code_o")
@click.option(
    "--verdict",
    "verdicts",
    multiple=True,
    metavar="NAME",
    help="refused, valid, solved, failed, or a reason, e.g. wrong; repeatable",
)
@int_option("--limit", type=click.IntRange(0), help="the newest N, 0: all; default 6, as JSON all")
@flag("--full", help="whole prompts")
@json_option
def show(
    address: str,
    step: int | None,
    task_type: str | None,
    verdicts: Sequence[str],
    limit: int | None,
    full: bool,
    as_json: bool,
) -> None:
    """Print what the members of a run wrote, and its verdict.

    A run keeps run.log_completions completions of each step, and all of the first. The newest are
    printed last: the verdict with its reason, the prompt and the completion.

    \b
      azr-population show runs/mine
      azr-population show runs/mine --verdict refused --type code_o
      azr-population show runs/mine/student_0 --verdict failed
      azr-population show runs/mine/teacher_0 --step 1 --limit 0
      azr-population show runs/mine --json | jq -r .completion
    """
    from azr_population.console.show import show_completions

    if limit is None:
        limit = 0 if as_json else 6
    show_completions(address, step, task_type, verdicts, limit, full, as_json)


@app.command()
@run_argument
@int_option("--tasks", "count", default=3, help="how many tasks")
def play(path: str, count: int) -> None:
    """Answer a run's late tasks yourself, then see how its students answered.

    Tasks that some attempts solved and others did not come first. After your answer each stored
    attempt is printed step by step, with what is right in it.

    \b
      azr-population play runs/demo
      azr-population play runs/demo --tasks 1
    """
    from azr_population.console.play import play

    play(Path(path), count)


@app.command()
@click.argument("path", metavar="RUN_OR_FOLDER", type=FILE, help="a run, a PEFT folder, or a base")
@click.argument("member", metavar="[MEMBER]", required=False, help="teacher_0, student_1, base")
@click.option("--prompt", metavar="TEXT", help="send this prompt unchanged")
@click.option("--propose", metavar="TYPE", help="ask for a task of this type, as teachers are")
@click.option(
    "--solve",
    metavar="FILE.py",
    help="ask about this program with a function f, as students are; -: standard input",
)
@click.option(
    "--input", "inputs", metavar="ARGUMENTS", multiple=True, help="for --solve, may be repeated"
)
@click.option("--type", "task_type", metavar="TYPE", help="type of task for --solve")
@int_option("--samples", default=1, help="completions")
@click.option(
    "--temperature", type=click.FloatRange(0), default=1.0, metavar="T", help="0 is greedy"
)
@int_option("--max-tokens", type=click.IntRange(0), default=0, help="of a completion; 0: any")
@seed_option(help="seed of the draws")
@base_option
@json_option
def sample(path: Path, member: str | None, **options: Any) -> None:
    """Ask one member by hand: prompts, proposals, tasks of yours.

    Completions come with their verdict, as azr-population show prints them.

    \b
      azr-population sample runs/mine teacher_0 --propose code_o --samples 3
      azr-population sample runs/mine student_1 --solve program.py --input "[1, 2], 3"
      azr-population sample runs/mine base --prompt "def f"
      azr-population sample PEFT_FOLDER --base BASE --propose code_o
    """
    from azr_population.engines.engine import Sampling
    from azr_population.eval.members import one_member
    from azr_population.eval.player import open_player, print_records

    prompt, propose, solve = (options[name] for name in ("prompt", "propose", "solve"))
    only_one(prompt=prompt, propose=propose, solve=solve)
    stored = one_member(path / member if member else path, options["base"], or_base=True)
    if not (propose or solve) and prompt is None:
        raise UserError("say what to ask: --prompt TEXT, --propose TYPE or --solve FILE.py")
    how = Sampling(options["max_tokens"], options["temperature"], n=options["samples"])
    with open_player(stored, how, options["seed"]) as player:
        if prompt is not None:
            records = player.ask(prompt)
        elif propose:
            records = player.propose(_type_named(player.domain, "--propose", propose))
        else:
            from azr_population.files import decode, read_text, refuse_closed_input

            if typed := solve == "-":
                refuse_closed_input("programs")
            program = decode(sys.stdin.buffer.read(), solve) if typed else read_text(Path(solve))
            type = options["task_type"]
            wanted = _type_named(player.domain, "--type", type)
            records = player.solve(wanted, program.strip("\n"), options["inputs"])
        print_records(player, records, options["as_json"])


def _type_named(domain: Any, option: str, name: str | None) -> str:
    """The type of task that the option names; without a name the domain's first. Raises UserError:
    the domain has no such type."""
    try:
        return domain.resolve_types([name] if name else None)[0]
    except UserError as error:
        raise UserError(str(error).replace("task.types=", f"{option} ", 1)) from None
