"""`export`, `push`: a run's tasks, figures and members for others."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import rich_click as click

from azr_population.cli.app import app, flag, only_one, out_option, run_argument
from azr_population.errors import UserError


@app.command()
@run_argument
@click.option(
    "--to",
    "format",
    required=True,
    type=click.Choice(["csv", "jsonl", "verifiers"]),
    help="the format",
)
@out_option(required=True, metavar="FOLDER", help="a new folder")
def export(path: str, format: str, out: Path) -> None:
    """Write a run's tasks and figures as a data set, tables or a taskset.

    \b
      azr-population export runs/mine --to jsonl --out tasks       tasks.jsonl and a card
      azr-population export runs/mine --to csv --out tables        metrics.csv: step, name, value
      azr-population export runs/mine --to verifiers --out envs/mine    a taskset of verifiers
    """
    from azr_population.sharing.export import export

    export(path, format, out)


@app.command()
@run_argument
@click.argument("members", nargs=-1, required=True, metavar="MEMBER...", help="e.g. teacher_0")
@click.option("--repo", metavar="OWNER/NAME", help="repository, created if needed")
@out_option(metavar="FOLDER", help="write the folder here, push nothing")
@click.option("--base", metavar="OWNER/NAME", help="the base's name on the Hub")
@click.option("--license", metavar="ID", help="for the card, e.g. apache-2.0")
@flag("--private", help="make a new repository private")
def push(path: str, members: Sequence[str], **options: Any) -> None:
    """Push members to the Hugging Face Hub, with their cards.

    Members become PEFT repositories; their cards have base, lineage, rating, eval and licence.

    \b
      azr-population push runs/mine teacher_0 --repo me/my-teacher --license apache-2.0
      azr-population push runs/mine student_0 student_1 --repo me/my-students --base Qwen/Qwen3-4B
      azr-population push runs/mine teacher_0 --out teacher     no network: what would be pushed

    Several members are in a folder each. The token is the Hub's own (hf auth login, or HF_TOKEN);
    HF_ENDPOINT names another hub.
    """
    from azr_population.sharing.push import push

    only_one(repo=options["repo"], out=options["out"])
    if options["repo"] is None and options["out"] is None:
        raise UserError("say where to push: --repo OWNER/NAME, or --out FOLDER for no network")
    push(path, members, **options)
