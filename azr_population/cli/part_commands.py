"""`export`, `push` share a run; `evolve`, `new`, `referee`, `doctor` stand alone."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import rich_click as click

from azr_population.cli.app import (
    app,
    base_option,
    dtype_option,
    flag,
    int_option,
    only_one,
    out_option,
    seed_option,
)
from azr_population.cli.new_files import KINDS, write_new
from azr_population.errors import UserError
from azr_population.printable import print_lines


@app.command()
@click.argument("operator", required=False, metavar="[OPERATOR]", help="its name, see --list")
@click.argument("parents", nargs=-1, metavar="[PARENT]...", help="PEFT adapter folders")
@click.option("--out", metavar="FOLDER", help="new folder of the child")
@seed_option(type=click.IntRange(0, 2**63 - 1), default=0, metavar="S", help="seed of the draws")
@click.option(
    "--set", "settings", multiple=True, metavar="OPTION=VALUE", help="of the operator, repeatable"
)
@flag("--list", "show_list", help="the operators and their options")
def evolve(show_list: bool, operator: str | None, out: str | None, **options: Any) -> None:
    """Make a child adapter from PEFT folders by a weight-space operator.

    Crossovers take two parents, the better one first. A mutation can follow a crossover:
    svd_subspace+full_gaussian (the options are then named svd_subspace.k, full_gaussian.eps).
    The child is a PEFT folder of the same rank; its README.md has its lineage.

    \b
      azr-population evolve --list
      azr-population evolve dare runs/a/members/student_0 runs/a/members/student_1 --out child
    """
    from azr_population.weights.evolve_command import operator_list, write_child

    if show_list:
        print(operator_list())
        return
    if operator is None:
        raise UserError("name an operator and its parents, or --list the operators")
    if out is None:
        raise UserError("name the child's folder: --out FOLDER")
    print_lines(write_child(operator, out=out, **options))


@app.command()
@click.argument("kind", type=click.Choice(list(KINDS)), metavar="KIND", help="its kind")
@click.argument("name", metavar="NAME", help="of the module, e.g. my_reward")
def new(kind: str, name: str) -> None:
    """Write a domain, a reward or an operator of your own, and a test that runs.

    \b
      azr-population new reward squared       squared.py and test_squared.py
      azr-population new domain chess
    """
    print(*write_new(kind, name), sep="\n")


@app.command()
@int_option("--workers", type=int, default=0, help="processes; 0: one per core")
@click.option(
    "--timeout",
    type=float,
    default=2.0,
    metavar="S",
    help="wall-clock seconds per execution; of processor time a quarter",
)
@flag("--allow-unsandboxed", help="run even where programs cannot be confined, at your own risk")
def referee(**limits: Any) -> None:
    """Judge tasks from standard input, verdicts to standard output.

    One JSON object per line in, one per line out, in the same order. In:

    \b
      {"id": 1, "type": "code_o", "program": "def f(x): ...", "input": "3", "answers": ["4"]}
      {"id": 2, "type": "code_f", "inputs": ["1", "2"], "outputs": ["2", "3"],
       "answers": ["def f(x): return x + 1"]}

    code_i (answers are inputs) is written like code_o: the gold output is computed from input.
    imports (import statements) may be added; code_f may give program in place of outputs. Out:

    \b
      {"id": 1, "valid": true, "output": "4", "solved": [true], "reasons": ["solved"]}
      {"id": 9, "valid": false, "reason": "timeout"}

    code_f verdicts also have accuracy; banned and malformed programs have a detail. A line that
    cannot be read, or has another key, gets the reason malformed, its line number and what is
    wrong, and the rest continues. A line has at most 2 MiB and asks for at most 4,096 executions.
    """
    from azr_population.referee.limits import RefereeSettings
    from azr_population.referee.pipe import judge_standard_input

    judge_standard_input(RefereeSettings(**limits, cpu_seconds=limits["timeout"] / 4))


@app.command()
@flag(
    "--azr",
    help="packages that AZR imports and this environment lacks, with the line that installs them",
)
def doctor(azr: bool) -> int:
    """Print what this machine has, and what works here."""
    from azr_population.hosts.local.doctor import doctor, doctor_azr

    return doctor_azr() if azr else doctor()


@app.command()
@click.argument("address", metavar="ADDRESS", help="a run; for --merged RUN/MEMBER, PEFT folder")
@click.option(
    "--to", "format", type=click.Choice(["jsonl", "verifiers"]), help="the format of tasks"
)
@out_option(metavar="FOLDER", help="a new folder for them")
@click.option(
    "--merged", type=click.Path(path_type=Path), metavar="FOLDER", help="a new folder for a model"
)
@flag("--check", help="load the merged model and compare it with base and adapter")
@base_option
def export(
    address: str,
    format: str | None,
    out: Path | None,
    merged: Path | None,
    check: bool,
    base: Path | None,
) -> None:
    """Write a run's tasks as a data set or a taskset; or a member as a model.

    \b
      azr-population export runs/mine --to jsonl --out tasks       tasks.jsonl and a card
      azr-population export runs/mine --to verifiers --out envs/mine    a taskset of verifiers
      azr-population export runs/mine/student_0 --merged model     base and adapter in one
    """
    if merged is not None:
        from azr_population.sharing.merge import merge

        only_one(to=format, merged=merged)
        print_lines(merge(address, merged, base, check))
        return
    if format is None or out is None:
        raise UserError("say what to export: --to FORMAT --out FOLDER, or --merged FOLDER")
    from azr_population.sharing.export import export

    export(address, format, out)


@app.command()
@click.argument("address", metavar="ADDRESS", help="RUN/MEMBER, or a run and the members")
@click.argument("members", nargs=-1, metavar="[MEMBER]...", help="e.g. teacher_0")
@click.option("--repo", metavar="OWNER/NAME", help="repository, created if needed")
@out_option(metavar="FOLDER", help="write the folder here, push nothing")
@click.option("--base", metavar="OWNER/NAME", help="the base's name on the Hub")
@click.option("--license", metavar="ID", help="for the card, e.g. apache-2.0")
def push(address: str, members: Sequence[str], **options: Any) -> None:
    """Push members to the Hugging Face Hub, with their cards.

    Members become PEFT repositories; their cards have base, lineage, rating, eval and licence.

    \b
      azr-population push runs/mine/teacher_0 --repo me/my-teacher --license apache-2.0
      azr-population push runs/mine student_0 student_1 --repo me/my-students --base Qwen/Qwen3-4B
      azr-population push runs/mine/teacher_0 --out teacher     no network: what would be pushed

    Several members are in a folder each. The token is the Hub's own (hf auth login, or HF_TOKEN);
    HF_ENDPOINT names another hub.
    """
    from azr_population.sharing.push import push

    only_one(repo=options["repo"], out=options["out"])
    if options["repo"] is None and options["out"] is None:
        raise UserError("say where to push: --repo OWNER/NAME, or --out FOLDER for no network")
    push(address, members, **options)


@app.command()
@click.argument("url", metavar="URL", help="of the server, e.g. http://localhost:8000")
@click.option(
    "--base", metavar="FOLDER", help="the base, or its name on the Hub; default: the members'"
)
@click.option(
    "--adapter",
    "adapters",
    multiple=True,
    required=True,
    metavar="NAME=ADDRESS",
    help="a name at the server, and RUN/MEMBER or a PEFT folder, repeatable",
)
@click.option("--old", multiple=True, metavar="NAME=ADDRESS", help="what it was before, repeatable")
@dtype_option(default="bfloat16", help="the server's")
@click.option("--device", type=click.Choice(["cpu", "cuda"]), default="cpu", help="to score on")
def check_serving(url: str, adapters: Sequence[str], old: Sequence[str], **options: Any) -> int:
    """Ask a server whether it answers with these adapters.

    Works with vLLM, SGLang and what else has /v1/completions with log-probabilities. Prints for
    each name: served, the base, another one, an old one, scaled otherwise, some modules missing,
    something else, or not reachable. Exit code 0: all are served; 1: some are not; 3: some are not
    reachable. A server that asks for a key gets OPENAI_API_KEY.

    \b
      azr-population check-serving http://localhost:8000 --adapter student_0=runs/mine/student_0
      azr-population check-serving http://localhost:8000 --base Qwen/Qwen2.5-Coder-7B
          --adapter student_0=student-0
    """
    from azr_population.sharing.check_serving import check_serving, exit_code

    verdicts = check_serving(
        url, adapters=_by_name("--adapter", adapters), old=_by_name("--old", old), **options
    )
    print_lines(*verdicts)
    return exit_code(verdicts)


def _by_name(option: str, pairs: Sequence[str]) -> dict[str, str]:
    split = [pair.partition("=") for pair in pairs]
    if wrong := [name + equals + folder for name, equals, folder in split if not (name and folder)]:
        raise UserError(f"{option} {wrong[0]} is not NAME=ADDRESS", key=option)
    named = {name: folder for name, _, folder in split}
    if len(named) < len(split):
        raise UserError(f"{option} names one thing twice: {' '.join(pairs)}", key=option)
    return named
