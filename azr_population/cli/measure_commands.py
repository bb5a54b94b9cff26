"""`eval`, `benchmark`: measure members after their run."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import rich_click as click

from azr_population.cli.app import (
    FILE,
    app,
    base_option,
    flag,
    number,
    out_option,
    run_argument,
    seed_option,
)
from azr_population.errors import UserError


@app.command()
@run_argument
@number("--every", type=click.IntRange(0), default=0, help="also every Nth snapshot; 0: none")
@number("--tasks", "tasks_per_type", help="tasks of each type; default: the run's")
@number("--samples", help="samples of each task at temperature 1; default: the run's")
@seed_option(default=None, metavar="S", help="seed of the tasks; default: the run's")
@out_option(metavar="FILE.json", help="a CSV beside it; default: eval_S.json in the run")
def eval(path: str, every: int, out: Path | None, **settings: int | None) -> None:
    """Measure a run's stored members on held-out tasks.

    Measures the members that solve, as the run stored them at its last step, and with --every
    those of its snapshots (run.snapshot_every), and the bare base. The score is greedy decoding;
    the JSON adds temperature 1: the correct answer's probability where a task has one, else
    samples.

    \b
      azr-population eval runs/mine
      azr-population eval runs/mine --every 25 --tasks 150 --samples 10 --seed 1121

    Intervals are 95% over tasks: they hold for these members and other tasks of the kind, not for
    another run.
    """
    from azr_population.measuring.stored_eval import evaluate_stored, print_table, write_results

    typed = [f"eval.{key}={value}" for key, value in settings.items() if value is not None]
    results = evaluate_stored(path, typed, every)
    print_table(results)
    print(write_results(results, out))


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
@number("--samples", default=1, help="of each problem; several give pass@k")
@click.option("--temperature", type=float, metavar="T", help="default: 0, or 0.8 with samples")
@number("--max-tokens", help="longest completion")
@number("--limit", help="only the first N problems of each benchmark")
@seed_option(help="seed of the samples")
@base_option
@click.option("--rollout", default="torch", metavar="torch|vllm", help="sampler")
@click.option(
    "--dtype",
    type=click.Choice(["float32", "bfloat16", "float16"]),
    default="float32",
    help="dtype of the weights",
)
@click.option("--device", default="cpu", metavar="cpu|cuda", help="device of the model")
@number("--batch-size", default=64, help="completions sampled at a time")
@click.option(
    "--logs", type=FILE, metavar="DIR", help="of the logs; default: evaluation/ in the run"
)
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
        from azr_population.evals.benchmark_run import (
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
