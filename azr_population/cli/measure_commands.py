"""`eval`, `benchmark` measure members after their run; `compare`, `crossplay`, `recipe` hold runs
against each other."""

import json
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
    json_option,
    out_option,
    seed_option,
)
from azr_population.errors import UserError
from azr_population.printable import print_lines


@app.command()
@click.argument("address", metavar="ADDRESS", help="run, RUN/MEMBER, PEFT folder, base")
@int_option("--every", type=click.IntRange(0), default=0, help="also every Nth snapshot; 0: none")
@int_option("--tasks", "tasks_per_type", help="tasks of each type; default: the run's")
@int_option("--samples", help="samples of each task at temperature 1; default: the run's")
@seed_option(default=None, metavar="S", help="seed of the tasks; default: the run's")
@base_option
@out_option(metavar="FILE.json", help="a CSV beside it; default: eval_S.json in the run")
def eval(
    address: str, every: int, base: Path | None, out: Path | None, **settings: int | None
) -> None:
    """Measure stored members on held-out tasks.

    Measures the members that solve, as the run stored them at its last step, and with --every
    those of its snapshots (run.snapshot_every), and the bare base. The score is greedy decoding;
    the JSON adds temperature 1: the correct answer's probability where a task has one, else
    samples.

    \b
      azr-population eval runs/mine
      azr-population eval runs/mine/student_0
      azr-population eval runs/mine --every 25 --tasks 150 --samples 10 --seed 1121

    Intervals are 95% over tasks: they hold for these members and other tasks of the kind, not for
    another run.
    """
    from azr_population.eval.stored_eval import evaluate_stored, print_table, write_results

    if out and out.suffix != ".json":
        raise UserError(f"--out {out} must end in .json")
    typed = [f"eval.{key}={value}" for key, value in settings.items() if value is not None]
    results = evaluate_stored(address, typed, every, base)
    print_table(results)
    print_lines(write_results(results, out))


@app.command()
@click.argument(
    "targets", nargs=-1, metavar="[TARGET]...", help="run, RUN/MEMBER, PEFT folder, base"
)
@flag("--list", "show_list", help="the benchmarks and their data")
@out_option(metavar="FILE", help="the table: .csv, .md or .tex")
@click.option("--benchmarks", default="all", metavar="A,B", help="code, math, all, names")
@click.option(
    "--data", default="", show_default=False, metavar="DIR", help="folder of the benchmarks' files"
)
@click.option(
    "--members",
    type=click.Choice(["all", "teachers", "students"]),
    default="all",
    help="which members of a run",
)
@int_option("--samples", default=1, help="of each problem: 1 is greedy, several at 0.8 give pass@k")
@int_option("--limit", help="only the first N problems of each benchmark")
@base_option
@click.option("--rollout", default="torch", metavar="torch|vllm", help="sampler")
@dtype_option(default="float32", help="dtype of the weights")
@click.option("--device", default="cpu", metavar="cpu|cuda", help="device of the model")
def benchmark(targets: Sequence[str], show_list: bool, out: Path | None, **options: Any) -> None:
    """Measure members, PEFT folders and bases on the paper's benchmarks.

    A run is its base and its members. Nothing is downloaded: --list prints what is there and where
    to get the rest. After Ctrl-C the same command continues.

    \b
      azr-population benchmark --list --data DIR
      azr-population benchmark runs/mine --data DIR
      azr-population benchmark runs/mine/student_0 --data DIR      the base and one member
      azr-population benchmark runs/a runs/b --benchmarks math --members students --limit 100
      azr-population benchmark runs/mine --benchmarks mbpp_plus --samples 16
    """
    try:
        from azr_population.eval.benchmark.run import (
            BenchmarkSettings,
            list_benchmarks,
            run_benchmarks,
        )
    except ImportError as error:
        raise UserError(
            f"benchmarks need {error.name}: pip install 'azr-population[eval]'"
        ) from error
    if show_list:
        list_benchmarks(BenchmarkSettings(**options))
    else:
        run_benchmarks(targets, BenchmarkSettings(**options), out)


@app.command()
@click.argument(
    "runs",
    nargs=-1,
    metavar="[NAME=]RUN...",
    help="run directories, folders of seeds or of arms, or AZR logs",
)
@out_option(default="comparison.html", metavar="FILE.html", help="the page")
@flag("--drop-failed", help="leave out runs that ended early or diverged; default: worst score")
@flag(
    "--plan", help="say what so many seeds would show, by the spread of RUNs or of ours, and stop"
)
@json_option
def compare(runs: Sequence[str], out: Path, drop_failed: bool, plan: bool, as_json: bool) -> None:
    """Say which runs are better, by how much, at what cost.

    Prints a sentence for each pair of arms, with 95% intervals over seeds, and a table, and writes
    one page, which adds the differences of the settings, the budget of each arm, and the curves.
    Arms are compared on the first of these that both have: AZR's validation, benchmarks, held-out
    tasks.

    \b
      azr-population compare runs/single runs/4t4s
      azr-population compare runs/recipes/defaults             every arm in it
      azr-population compare --plan                            before anything is played
      azr-population compare one=runs/a one=runs/b other=runs/c --out ab.html
      azr-population compare stock=azr_console.log ours=runs/4t4s

    A RUN is a run's folder, a folder of runs named seed_*, a folder of such arms, or the console
    output of stock AZR, one run per file.
    """
    from azr_population.analysis.comparison import compare_arms
    from azr_population.analysis.comparison_page import (
        print_comparison,
        print_plan,
        write_comparison,
    )

    if plan:
        from azr_population.analysis.seed_plan import plan_seeds
        from azr_population.experiments.recipes import recipes_folder

        ours = [str(recipes_folder() / "runs" / "defaults")]
        seeds = plan_seeds(runs) if runs else plan_seeds(ours, pairs=(1, 3))
        if as_json:
            print(json.dumps(seeds, indent=2))
        else:
            print_plan(seeds)
        return
    compared = compare_arms(runs, drop_failed)
    page = str(write_comparison(compared, out))
    if as_json:
        print(json.dumps({**compared.to_json(), "page": page}, indent=2, allow_nan=False))
    else:
        print_comparison(compared)
        print_lines(f"page: {page}")


@app.command()
@click.argument(
    "addresses", nargs=-1, required=True, metavar="ADDRESS...", help="run, RUN/MEMBER, PEFT folder"
)
@int_option("--every", help="snapshots at multiples of N steps; default: all, or 8 of them")
@int_option("--tasks", default=96, help="proposals of each teacher, with two attempts at each")
@out_option(metavar="FILE.json", help="HTML beside it; default: crossplay.json in the run")
def crossplay(**options: Any) -> None:
    """Let stored teachers play stored students, of one or several runs.

    The teachers that runs have stored (run.snapshot_every) propose tasks once, and all stored
    students attempt all of them. Prints for each run whether late students beat early ones against
    the earliest teachers, and late teachers early ones against the earliest students. The page has
    the matrix.

    \b
      azr-population crossplay runs/mine --every 25 --tasks 96
      azr-population crossplay runs/a runs/b --out both.json
      azr-population crossplay runs/a/teacher_0 runs/b/student_1
    """
    from azr_population.eval.crossplay import crossplay

    crossplay(**options)


@app.command()
@click.argument("name", required=False, metavar="[NAME]", help="see --list")
@flag("--list", "show_list", help="all recipes, and how long they take")
@flag("--from-results", help="run nothing; draw the runs of --out, else the committed ones")
@flag("--dry-run", help="print runs, time and folders, and stop")
@flag("--yes", help="do not ask before playing more than 5 minutes")
@click.option("--seeds", metavar="N|A-B", help="how many or which; default: the protocol's")
@int_option("--steps", help="default: the protocol's")
@click.option("--arms", metavar="A,B", help="arms of recipes/arms.yaml, not the recipe's")
@out_option(metavar="DIR", help="runs, and results in results/NAME; default: runs/recipes")
@flag("--save-results", help="write the recipe's results and the runs' metrics, for a commit")
@int_option("--jobs", default=1, help="runs at a time")
def recipe(show_list: bool, name: str | None, **options: Any) -> int:
    """Run a recipe for one of the paper's tables or figures, and draw it.

    \b
      azr-population recipe --list
      azr-population recipe fig3_dynamics --from-results
    """
    from azr_population.experiments.command import print_list, run_recipe

    if options["from_results"] and not name:
        raise UserError("--from-results draws one recipe; name it, or see recipe --list")
    if show_list or not name:
        print_list()
        return 0
    return run_recipe(name, **options)
