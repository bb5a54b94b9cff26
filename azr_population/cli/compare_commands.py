"""`compare`, `crossplay`, `recipe`: one run against another, and the paper's tables."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import rich_click as click

from azr_population.cli.app import (
    app,
    flag,
    json_option,
    number,
    out_option,
    seed_option,
)


@app.command()
@click.argument("runs", nargs=-1, required=True, metavar="[NAME=]RUN...", help="see above")
@out_option(default="comparison.html", metavar="FILE.html", help="the page")
@json_option
def compare(runs: Sequence[str], out: Path, as_json: bool) -> None:
    """Say which runs are better, by how much, at what cost.

    Prints a sentence for each pair of arms, with 95% intervals over seeds, and a table, and writes
    one page, which adds the differences of the settings, the budget of each arm, and the curves.
    Skill is the first of AZR's validation, the benchmarks and the held-out tasks that both arms
    have and measured alike.

    \b
      azr-population compare runs/single runs/4t4s
      azr-population compare runs/recipes/nano/single runs/recipes/nano/4t4s   folders of seed_*
      azr-population compare one=runs/a one=runs/b other=runs/c --out ab.html   seeds by name
      azr-population compare stock=azr_console.log ours=runs/4t4s               a stock AZR log
      azr-population compare stock=azr.log stock=evaluations/azr/figures.json ours=runs/4t4s

    A RUN is a run's folder, a folder of runs named seed_*, a stock AZR log (console output, or a
    CSV export from Weights & Biases, one run per file), or the figures.json of the command
    benchmark.
    """
    from azr_population.analysis.comparison import compare_arms
    from azr_population.analysis.comparison_page import print_comparison, write_comparison

    compared = compare_arms(runs)
    page = str(write_comparison(compared, out))
    if as_json:
        print(json.dumps({**compared.to_json(), "page": page}, indent=2, allow_nan=False))
    else:
        print_comparison(compared)
        print(f"page: {page}")


@app.command()
@click.argument("paths", nargs=-1, required=True, metavar="RUN...", help="folders of runs")
@number("--every", help="snapshots at multiples of N steps; default: all, or 8 of them")
@number("--tasks", default=96, help="proposals of each teacher")
@number("--samples", default=2, help="attempts at each proposal")
@seed_option(help="seed of the draws")
@out_option(metavar="FILE.json", help="CSV and HTML beside it; default: crossplay.json in the run")
def crossplay(**options: Any) -> None:
    """Let stored teachers play stored students, of one or several runs.

    The teachers that runs have stored (run.snapshot_every) propose tasks once, and all stored
    students attempt all of them. Prints whether TrueSkill predicted who solves how much, and for
    each run whether late students beat early ones against the earliest teachers, and late teachers
    early ones against the earliest students. The page has the matrix.

    \b
      azr-population crossplay runs/mine --every 25 --tasks 96
      azr-population crossplay runs/a runs/b --out both.json
    """
    from azr_population.measuring.crossplay_command import crossplay

    crossplay(**options)


@app.command()
@click.argument("name", required=False, metavar="[NAME]", help="see --list")
@flag("--list", "show_list", help="all recipes, and how long they take")
@flag("--from-results", help="run nothing; runs that --out lacks come from the committed results")
@flag("--plot-only", help="run nothing, draw what is there")
@flag("--resume", help="continue unfinished runs")
@flag("--dry-run", help="print runs, time and folders, and stop")
@flag("--yes", help="do not ask before playing more than 5 minutes")
@click.option("--seeds", metavar="N|A-B", help="how many or which; default: the recipe's")
@number("--steps", help="default: the recipe's")
@click.option("--arms", metavar="A,B", help="arms of recipes/arms.yaml, not the recipe's")
@click.option(
    "--scale",
    type=click.Choice(["nano", "7b"]),
    default="nano",
    help="local runs, or a script with AZR's commands",
)
@out_option(metavar="DIR", help="runs, and results in results/NAME; default: runs/recipes/SCALE")
@flag("--save-results", help="write the recipe's results and the runs' metrics, for a commit")
@number("--jobs", default=1, help="runs at a time")
def recipe(show_list: bool, **options: Any) -> int:
    """Run a recipe for one of the paper's tables or figures, and draw it.

    \b
      azr-population recipe --list
      azr-population recipe fig3_dynamics --from-results
    """
    from azr_population.analysis.recipe_command import print_list, run_recipe
    from azr_population.analysis.recipe_plan import RecipeOptions

    if show_list or options["name"] is None:
        print_list()
        return 0
    return run_recipe(RecipeOptions(**options))
