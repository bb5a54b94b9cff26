"""`azr-population benchmark`: the paper's ten benchmarks for any member."""

import argparse
from pathlib import Path

from azr_population.arguments import positive

DESCRIPTION = """\
Benchmarks, greedy or by samples, for the base and the members of runs, PEFT folders, bases, and
the models of an OpenAI-compatible server. Nothing is downloaded: --list prints what is there and
where to get the rest. After Ctrl-C the same command goes on.

  azr-population benchmark --list --data DIR
  azr-population benchmark runs/mine --data DIR
  azr-population benchmark runs/mine/student_0 --data DIR      one member
  azr-population benchmark runs/a runs/b --benchmarks math --members best --limit 100
  azr-population benchmark runs/mine --benchmarks mbpp_plus --samples 16 --temperature 0.8
  azr-population benchmark --server http://localhost:8000/v1 base teacher_0 --data DIR
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes: the fields of `evals.run.Settings`, and two more."""
    parser.add_argument(
        "targets", nargs="*", metavar="TARGET", help="run, PEFT folder, base; model"
    )
    parser.add_argument("--list", action="store_true", help="the benchmarks and their data")
    parser.add_argument("--out", type=Path, metavar="FILE", help="the table: .csv, .md or .tex")
    parser.add_argument("--benchmarks", default="all", metavar="A,B", help="code, math, all, names")
    parser.add_argument("--data", default="", metavar="DIR", help="folder of the benchmarks' files")
    parser.add_argument(
        "--prompts", default="", metavar="A,B", help="templates by name; see --list"
    )
    parser.add_argument(
        "--members", default="all", choices=("all", "best", "teachers", "students"), help="of runs"
    )
    parser.add_argument("--samples", type=positive, default=1, metavar="N", help="per problem")
    parser.add_argument("--temperature", type=float, metavar="T", help="0.8 with several samples")
    parser.add_argument("--top-p", type=float, metavar="P", help="default 0.95")
    parser.add_argument("--max-tokens", type=positive, metavar="N", help="of a completion")
    parser.add_argument("--limit", type=positive, metavar="N", help="first problems of each")
    parser.add_argument("--seed", type=int, default=1, help="of the samples")
    parser.add_argument("--base", type=Path, metavar="DIR", help="in place of what a folder names")
    parser.add_argument("--rollout", default="torch", metavar="torch|vllm", help="who samples")
    parser.add_argument(
        "--dtype", default="float32", choices=("float32", "bfloat16", "float16"), help="of weights"
    )
    parser.add_argument("--device", default="cpu", metavar="cpu|cuda", help="where the model runs")
    parser.add_argument("--batch-size", type=positive, default=64, metavar="N", help="of sampling")
    parser.add_argument("--server", default="", metavar="URL", help="targets are its models")
    parser.add_argument("--timeout", type=positive, default=3600, metavar="S", help="for an answer")
    parser.add_argument("--retries", type=int, default=3, metavar="N", help="of a request")
    parser.add_argument(
        "--logs", type=Path, metavar="DIR", help="in place of the run's evaluation/"
    )
    parser.add_argument("--display", choices=("full", "rich", "plain", "none"), help="of Inspect")


def run(arguments: argparse.Namespace) -> int:
    """Returns the exit code: 0."""
    try:
        from azr_population.evals.run import Settings, list_benchmarks, run_benchmarks
    except ImportError as error:
        from azr_population.errors import UserError

        raise UserError(
            f"benchmarks need {error.name}: pip install 'azr-population[eval]'"
        ) from error
    names = Settings.__dataclass_fields__
    settings = Settings(**{key: value for key, value in vars(arguments).items() if key in names})
    if arguments.list:
        list_benchmarks(settings)
    else:
        run_benchmarks(arguments.targets, settings, arguments.out)
    return 0
