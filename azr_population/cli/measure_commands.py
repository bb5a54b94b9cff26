"""`eval`, `benchmark`: measure members after their run."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import rich_click as click

from azr_population.cli.app import FILE, POSITIVE, app, run_argument
from azr_population.errors import UserError


@app.command()
@run_argument
@click.option(
    "--every",
    type=click.IntRange(0),
    default=0,
    metavar="N",
    help="also measure every Nth snapshot; 0: none",
)
@click.option("--tasks", type=int, metavar="N", help="tasks of each type; default: the run's")
@click.option(
    "--samples",
    type=int,
    metavar="N",
    help="samples of each task at temperature 1; default: the run's",
)
@click.option("--seed", type=int, metavar="S", help="seed of the tasks; default: the run's")
@click.option(
    "--out",
    type=FILE,
    metavar="FILE.json",
    help="a CSV beside it; default: eval_S.json in the run",
)
def eval(
    path: str,
    every: int,
    tasks: int | None,
    samples: int | None,
    seed: int | None,
    out: Path | None,
) -> None:
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

    given = {"tasks_per_type": tasks, "samples": samples, "seed": seed}
    typed = [f"eval.{key}={value}" for key, value in given.items() if value is not None]
    results = evaluate_stored(path, typed, every)
    print_table(results)
    print(write_results(results, out))


@app.command()
@click.argument("targets", nargs=-1, metavar="[TARGET]...", help="run, PEFT folder, base; model")
@click.option("--list", "show_list", is_flag=True, help="the benchmarks and their data")
@click.option("--out", type=FILE, metavar="FILE", help="the table: .csv, .md or .tex")
@click.option("--benchmarks", default="all", metavar="A,B", help="code, math, all, names")
@click.option(
    "--data", default="", show_default=False, metavar="DIR", help="folder of the benchmarks' files"
)
@click.option(
    "--prompts", default="", show_default=False, metavar="A,B", help="names of prompts, see --list"
)
@click.option(
    "--members",
    type=click.Choice(["all", "best", "teachers", "students"]),
    default="all",
    help="which members of a run",
)
@click.option("--samples", type=POSITIVE, default=1, metavar="N", help="samples of each problem")
@click.option("--temperature", type=float, metavar="T", help="default: 0.8 with several samples")
@click.option("--top-p", type=float, metavar="P", help="default: 0.95")
@click.option("--max-tokens", type=POSITIVE, metavar="N", help="longest completion")
@click.option(
    "--limit", type=POSITIVE, metavar="N", help="only the first N problems of each benchmark"
)
@click.option("--seed", type=int, default=1, help="seed of the samples")
@click.option("--base", type=FILE, metavar="DIR", help="base, if not the one that a folder names")
@click.option("--rollout", default="torch", metavar="torch|vllm", help="sampler")
@click.option(
    "--dtype",
    type=click.Choice(["float32", "bfloat16", "float16"]),
    default="float32",
    help="dtype of the weights",
)
@click.option("--device", default="cpu", metavar="cpu|cuda", help="device of the model")
@click.option(
    "--batch-size", type=POSITIVE, default=64, metavar="N", help="completions sampled at a time"
)
@click.option(
    "--server", default="", show_default=False, metavar="URL", help="server of the models"
)
@click.option(
    "--timeout",
    type=POSITIVE,
    default=3600,
    metavar="S",
    help="seconds to wait for the server's answer",
)
@click.option(
    "--retries", type=int, default=3, metavar="N", help="retries of a request to the server"
)
@click.option(
    "--logs", type=FILE, metavar="DIR", help="folder of the logs; default: evaluation/ in the run"
)
@click.option(
    "--display", type=click.Choice(["full", "rich", "plain", "none"]), help="Inspect's display"
)
def benchmark(targets: Sequence[str], show_list: bool, out: Path | None, **options: Any) -> None:
    """Measure members, PEFT folders or a server's models on the paper's benchmarks.

    Greedy, or by samples. Targets are runs (the base and the members), PEFT folders, bases, and the
    models of an OpenAI-compatible server. Nothing is downloaded: --list prints what is there and
    where to get the rest. After Ctrl-C the same command continues.

    \b
      azr-population benchmark --list --data DIR
      azr-population benchmark runs/mine --data DIR
      azr-population benchmark runs/mine/student_0 --data DIR      one member
      azr-population benchmark runs/a runs/b --benchmarks math --members best --limit 100
      azr-population benchmark runs/mine --benchmarks mbpp_plus --samples 16 --temperature 0.8
      azr-population benchmark --server http://localhost:8000/v1 base teacher_0 --data DIR
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
