"""`report`, `show`, `sample`: look at a run and at its members."""

import sys
from pathlib import Path
from typing import Any

import rich_click as click

from azr_population.cli.app import (
    FILE,
    app,
    base_option,
    flag,
    json_option,
    number,
    only_one,
    out_option,
    run_argument,
    seed_option,
)
from azr_population.errors import UserError


@app.command()
@click.argument("path", metavar="RUN", type=FILE, help="its folder; a folder of runs is listed")
@out_option(metavar="FILE.html", help="default: report.html in the run")
def report(path: Path, out: Path | None) -> None:
    """Write a run's report as one HTML page."""
    from azr_population.analysis.report import run_lines, runs_in, write_report

    if not (path / "config.yaml").exists() and (runs := runs_in(path)):
        print(*run_lines(runs), sep="\n")
        print(f"{path} holds {len(runs)} runs; name one of them")
    else:
        print(write_report(path, out))


@app.command()
@run_argument
@click.option("--step", type=int, metavar="N", help="only this step")
@click.option("--member", metavar="NAME", help="only this member, e.g. teacher_0")
@click.option("--type", "task_type", metavar="TYPE", help="only this type of task, e.g. code_o")
@flag("--refused", help="invalid proposals")
@flag("--valid", help="valid proposals")
@flag("--solved", help="correct attempts")
@flag("--failed", help="incorrect attempts")
@number("--limit", type=click.IntRange(0), help="the newest N, 0: all; default 6, as JSON all")
@flag("--full", help="whole prompts")
@json_option
def show(path: str, limit: int | None, full: bool, as_json: bool, **wanted: Any) -> None:
    """Print what the members of a run wrote, and its verdict.

    A run keeps run.log_completions completions of each step, and all of the first. The newest are
    printed last: the verdict with its reason, the prompt and the completion.

    \b
      azr-population show runs/mine
      azr-population show runs/mine --refused --type code_o
      azr-population show runs/mine --step 1 --member teacher_0 --limit 0
      azr-population show runs/mine --json | jq -r .completion
    """
    from azr_population.pages.show import Wanted, show_completions

    if limit is None:
        limit = 0 if as_json else 6
    step, member, type = (wanted.pop(name) for name in ("step", "member", "task_type"))
    verdicts = [name for name, is_wanted in wanted.items() if is_wanted]
    show_completions(path, Wanted(step, member, type, verdicts, limit), full, as_json)


@app.command()
@click.argument("path", metavar="RUN_OR_FOLDER", type=FILE, help="a run, a PEFT folder, or a base")
@click.argument("member", metavar="[MEMBER]", required=False, help="teacher_0, student_1, base")
@click.option("--prompt", metavar="TEXT", help="send this prompt unchanged")
@click.option("--propose", metavar="TYPE", help="ask for a task of this type")
@click.option(
    "--solve", metavar="FILE.py", help="ask about this program with a function f; -: standard input"
)
@click.option(
    "--input", "inputs", metavar="ARGUMENTS", multiple=True, help="for --solve, may be repeated"
)
@click.option("--type", "task_type", metavar="TYPE", help="type of task for --solve")
@number("--samples", default=1, help="completions")
@click.option(
    "--temperature", type=click.FloatRange(0), default=1.0, metavar="T", help="0 is greedy"
)
@number("--max-tokens", type=click.IntRange(0), default=0, help="of a completion; 0: any")
@seed_option(help="seed of the draws")
@base_option
@click.option(
    "--prompt-format",
    "format",
    type=click.Choice(["nano", "chat", "short"]),
    help="as base.prompt_format; default: the run's",
)
@json_option
def sample(path: Path, member: str | None, **options: Any) -> None:
    """Ask one member by hand: prompts, proposals, tasks of yours.

    Completions come with their verdict, as azr-population show prints them.

    \b
      azr-population sample runs/mine teacher_0 --propose code_o --samples 3
      azr-population sample runs/mine student_1 --solve program.py --input "[1, 2], 3"
      azr-population sample runs/mine base --prompt "def f"       (the base without a member)
      azr-population sample PEFT_FOLDER --base BASE --prompt-format chat
    """
    from azr_population.measuring.player import (
        SamplingOptions,
        open_player,
        print_records,
        task_type,
    )

    prompt, propose, solve = (options[name] for name in ("prompt", "propose", "solve"))
    only_one(prompt=prompt, propose=propose, solve=solve)
    if not (propose or solve) and prompt is None:
        raise UserError("say what to ask: --prompt TEXT, --propose TYPE or --solve FILE.py")
    how = SamplingOptions(*(options[n] for n in ("samples", "temperature", "max_tokens", "seed")))
    with open_player(path, member, options["base"], options["format"], how) as player:
        if prompt is not None:
            records = player.ask(prompt)
        elif propose:
            records = player.propose(task_type(player, propose))
        else:
            from azr_population.files import read_text

            program = sys.stdin.read() if solve == "-" else read_text(Path(solve))
            wanted = task_type(player, options["task_type"])
            records = player.solve(wanted, program.strip("\n"), options["inputs"])
        print_records(player, records, options["as_json"])
