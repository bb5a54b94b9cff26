"""`azr-population evaluate`: the paper's ten benchmarks for any member."""

import argparse
import importlib.util
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from azr_population.arguments import positive
from azr_population.errors import UserError
from azr_population.files import refuse_irregular, write_atomically
from azr_population.measuring.evaluation.benchmark import BENCHMARKS, Benchmark, chosen

FIGURES = "figures.json"
DESCRIPTION = """\
Benchmarks, greedy or by samples, for the base and the members of runs, for PEFT folders and for
models of an OpenAI-compatible server. Nothing is downloaded: --list says what is there and what to
get from where. What is finished is kept; the same command goes on.

  azr-population evaluate --list --data DIR
  azr-population evaluate runs/mine --data DIR
  azr-population evaluate runs/mine base --data DIR            only the base of that run
  azr-population evaluate runs/a runs/b --benchmarks math --members best --limit 100
  azr-population evaluate runs/mine --benchmarks mbpp_plus --samples 16 --temperature 0.8
  azr-population evaluate --rollout openai=http://localhost:8000/v1 base teacher_0 --data DIR
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument(
        "entries",
        nargs="*",
        default=[],
        metavar="RUN_OR_FOLDER",
        help="runs, PEFT folders, bases; `base`: the base alone of what is named; models",
    )
    parser.add_argument("--list", action="store_true", help="the benchmarks and their data")
    parser.add_argument(
        "--benchmarks", default="all", metavar="A,B", help="code, math, all, or names"
    )
    parser.add_argument(
        "--members",
        default="all",
        choices=("all", "best", "teachers", "students"),
        help="of runs: who is asked",
    )
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder of the benchmarks' files")
    parser.add_argument("--samples", type=positive, default=1, metavar="N", help="per problem")
    parser.add_argument("--greedy", action="store_true", help="the default with one sample")
    parser.add_argument(
        "--temperature", type=float, metavar="T", help="default 0.8 with several samples"
    )
    parser.add_argument("--top-p", type=float, default=None, metavar="P", help="default 0.95")
    parser.add_argument(
        "--max-tokens",
        type=positive,
        metavar="N",
        help="tokens of a completion; default: the benchmark's",
    )
    parser.add_argument("--prompts", default="", metavar="A,B", help="wordings by name; see --list")
    parser.add_argument("--limit", type=positive, metavar="N", help="first problems of each")
    parser.add_argument(
        "--rollout", default="torch", metavar="torch|vllm|openai=URL", help="who samples"
    )
    parser.add_argument(
        "--timeout", type=positive, metavar="SECONDS", help="of a server for an answer; an hour"
    )
    parser.add_argument(
        "--base", type=Path, metavar="DIR", help="the base in place of what a folder names"
    )
    parser.add_argument(
        "--dtype",
        default="float32",
        choices=("float32", "bfloat16", "float16"),
        help="of the weights",
    )
    parser.add_argument("--device", default="cpu", metavar="cpu|cuda", help="where the model runs")
    parser.add_argument("--rows", type=positive, default=64, help="completions drawn at once")
    parser.add_argument("--processes", type=int, default=0, help="for judging; default: all cores")
    parser.add_argument("--seed", type=int, default=1, help="of the samples")
    parser.add_argument("--regrade", action="store_true", help="judge again what was drawn")
    parser.add_argument("--out", type=Path, metavar="FILE", help="the table as .md or .csv")
    parser.add_argument(
        "--records",
        type=Path,
        metavar="DIR",
        help="for completions; default: the run's evaluation/",
    )
    parser.add_argument("--with", type=Path, metavar="FILE.py", help="a module with benchmarks")


def run(arguments: argparse.Namespace) -> int:
    """Returns the exit code: 0."""
    extra = getattr(arguments, "with")
    if extra:
        _import(extra)
    benchmarks = chosen(arguments.benchmarks)
    if arguments.list:
        more = [known.function for known in BENCHMARKS] if arguments.benchmarks == "all" else []
        shown = {benchmark.name: benchmark for benchmark in (*benchmarks, *more)}
        return _list(list(shown.values()), arguments.data)
    return _evaluate(arguments, benchmarks)


def _evaluate(arguments: argparse.Namespace, benchmarks: Sequence[Benchmark]) -> int:
    # Imported late: they bring torch, and every command has this module's arguments.
    from azr_population.measuring.evaluation.data import read
    from azr_population.measuring.evaluation.evaluate import Plan, evaluate
    from azr_population.measuring.evaluation.grading.grade import Graders
    from azr_population.measuring.evaluation.grading.self_check import prove
    from azr_population.measuring.evaluation.progress import View
    from azr_population.measuring.evaluation.prompts import wordings
    from azr_population.measuring.evaluation.table import as_json, markdown

    temperature, top_p = _temperature(arguments)
    _check_out(arguments.out)
    name, entries, samplers = _rollout(arguments)
    for entry in entries:
        if (entry.records / FIGURES).exists():
            refuse_irregular(entry.records / FIGURES)  # Before hours of sampling, and not after.
    plan = Plan(
        data=tuple(read(one, arguments.data) for one in benchmarks),
        wordings=wordings(arguments.prompts, benchmarks),
        samples=arguments.samples,
        temperature=temperature,
        top_p=top_p,
        max_new_tokens=arguments.max_tokens or 0,
        limit=arguments.limit or 0,
        seed=arguments.seed,
        rows=arguments.rows,
        regrade=arguments.regrade,
    )
    view = View()
    results: list[Any] = []
    with Graders(arguments.processes) as graders:
        for data in plan.data:
            rule = plan.wordings[data.benchmark.name].rule
            prove(data.benchmark.title, rule, data.problems, graders)
        for entry in entries:
            earlier = [result.store for result in results]
            result = evaluate(entry, plan, samplers, name, graders, view, earlier)
            write_atomically(entry.records / FIGURES, as_json(result))
            results.append(result)
    print(markdown(results), end="")
    if arguments.out:
        _write(arguments.out, results)
        view.say(f"table: {arguments.out}")
    return 0


def _temperature(arguments: argparse.Namespace) -> tuple[float, float]:
    """(temperature, top_p), checked."""
    given = arguments.temperature
    if arguments.greedy and given:
        raise UserError(f"--greedy and --temperature={given} say different things; give one")
    greedy = arguments.greedy or given == 0 or (given is None and arguments.samples == 1)
    if greedy and arguments.samples > 1:
        raise UserError(
            f"--samples={arguments.samples}: greedy samples are all the same; leave out --greedy, "
            "or give --temperature"
        )
    if given is not None and given < 0:
        raise UserError(f"--temperature={given}: 0 (greedy) or more")
    if arguments.top_p is not None and not 0 < arguments.top_p <= 1:
        raise UserError(f"--top-p={arguments.top_p}: above 0, up to 1")
    if greedy:
        return 0.0, 1.0
    return given or 0.8, arguments.top_p or 0.95


def _rollout(arguments: argparse.Namespace) -> tuple[str, list[Any], Callable[..., Iterator[Any]]]:
    """The name under which completions are kept, the entries, and what opens samplers for them."""
    from azr_population.engines.rollouts import ROLLOUTS, RolloutSettings
    from azr_population.measuring.evaluation.contestants import Contestants, named
    from azr_population.measuring.evaluation.sampling.rollout_sampler import rollout_samplers
    from azr_population.measuring.evaluation.sampling.server_sampler import SECONDS, ServerSampler

    kind, _, url = arguments.rollout.partition("=")
    if kind == "openai" and url:
        server = ServerSampler(url, arguments.timeout or SECONDS)
        label = url.split("://")[-1].strip("/").replace("/", "_")
        records = arguments.records or Path("evaluations") / label
        made = Contestants(label, records, None, server.contestants(arguments.entries))
        return "openai", [made], lambda entry, who: iter([(server, list(who))])
    known = [kind.name for kind in ROLLOUTS]
    if kind not in known and "." not in kind:
        raise UserError(f"--rollout={arguments.rollout}: {', '.join(known)}, or openai=URL")
    if not arguments.entries:
        raise UserError("name a run, a PEFT folder or a base; or --list")
    entries = named(arguments.entries, arguments.members, arguments.base, arguments.records)
    if arguments.records and len(entries) > 1:
        raise UserError("--records is for one entry; each run keeps its own by default")
    opened = partial(
        rollout_samplers,
        dtype=arguments.dtype,
        device=arguments.device,
        rollout=RolloutSettings(kind),
    )
    return f"{kind} {arguments.dtype}", entries, opened


def _list(benchmarks: Sequence[Benchmark], folder: Path | None) -> int:
    from rich.console import Console
    from rich.table import Table

    from azr_population.measuring.evaluation.data import describe
    from azr_population.measuring.evaluation.prompts import WORDINGS

    table = Table(box=None, pad_edge=False)
    for heading in ("benchmark", "area", "data", "problems", "hash", "prompt", "licence"):
        table.add_column(heading, overflow="fold")
    missing = []
    for one in benchmarks:
        found = describe(one, folder)
        table.add_row(
            one.name, one.area, found.state, found.problems, found.digest, one.prompt, one.licence
        )
        if not found.paths:
            missing.append(f"{one.name}: {' or '.join(one.files)}, from {one.source}")
    console = Console()
    if not console.is_terminal:
        console.width = 140
    console.print(table)
    for line in missing:
        console.print(f"missing: {line}", highlight=False, markup=False)
    for wording in WORDINGS:
        line = f"prompt {wording.name}: {wording.reference}"
        console.print(line, highlight=False, markup=False)
    return 0


def _check_out(path: Path | None) -> None:
    if path and path.suffix not in _WRITERS:
        raise UserError(f"--out={path}: it ends in {', '.join(_WRITERS)}")


def _write(path: Path, results: Sequence[Any]) -> None:
    from azr_population.measuring.evaluation import table

    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, getattr(table, _WRITERS[path.suffix])(results))


_WRITERS = {".md": "markdown", ".csv": "as_csv"}


def _import(path: Path) -> None:
    """Runs a Python file of the user's, whose benchmarks register themselves."""
    known = {entry.name for entry in BENCHMARKS}
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise UserError(f"--with={path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if known == {entry.name for entry in BENCHMARKS}:
        raise UserError(f"--with={path} registers no benchmark; see docs/evaluation.md")
