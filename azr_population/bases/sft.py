"""`azr-population base smollm2` and `base sft`: supervised training of a pretrained model (SFT, its
warm-up for self-play) on executed tasks, in minutes on a CPU. GPUs are not supported."""

import json
import tempfile
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain, count, islice
from pathlib import Path
from typing import Any

import torch

from azr_population.bases.demonstrations import CHUNK, draw_documents
from azr_population.bases.sft_trainer import (
    Progress,
    TrainingSchedule,
    made_ahead,
    save_base,
    train,
)
from azr_population.bases.smollm2 import fetch_gguf, read_gguf
from azr_population.domains.code.formats import WARMUP_LOG
from azr_population.domains.known import find_domain
from azr_population.engines.base_folder import base_folder
from azr_population.engines.base_model import load_base
from azr_population.errors import UserError

SAMPLE = "def f(a):\n    b = {'x': 12}\n    return [v + b['x'] for v in a]"
"""A base proves itself on this text when loaded; see `base_model.check_sample`."""

_CARD = """# {source}, warmed up for self-play

Supervised training on {tokens:,} tokens of proposals and answers whose programs were executed first
({state}; settings and loss curve: `{log}`). `azr-population base validate <this folder>` measures
the result, and a run uses it with

    azr-population train base=hf base.path=<this folder> base.prompt_format={format}
"""


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


def make_sft(path: str | None, out: Path, **options: Any) -> int:
    """Trains the Hugging Face folder `path`, or SmolLM2-135M from the package index where None is
    given, into the folder `out`; `options` are fields of `SftSettings`. Returns the exit code: 0,
    or 128 + the signal that stopped it. Raises UserError: a setting out of range, no such model, or
    `out` is not new."""
    settings = SftSettings(**options)
    folder = None if path is None else base_folder(path, key="FOLDER")
    if settings.minutes <= 0:
        raise UserError(f"--minutes {settings.minutes:g} must be above 0", key="--minutes")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UserError(f"--out {out} exists; give another folder", key="--out")
    out.mkdir(parents=True, exist_ok=True)
    if folder:
        source, (model, tokenizer) = folder.resolve().name, load_base(folder, "float32", "cpu")
    else:
        source = "SmolLM2-135M-Instruct"
        with tempfile.TemporaryDirectory(dir=out) as scratch:
            model, tokenizer = read_gguf(fetch_gguf(Path(scratch)))
    if not tokenizer.chat_template:
        raise UserError(f"{source} has no chat template; take an instruction-tuned model")
    progress = warm_up(model, tokenizer, out, settings)
    finished = progress.share >= 1.0
    state = "finished" if finished else f"stopped at {progress.share:.0%}"
    card = _CARD.format(
        source=source,
        tokens=progress.tokens,
        state=state,
        log=WARMUP_LOG,
        format=settings.format,
    )
    (out / "README.md").write_text(card, encoding="utf-8")
    print(f"{out}: warm-up {state}; measure it with: azr-population base validate {out}")
    return 0 if finished else 128 + progress.stopped_by


def warm_up(model: Any, tokenizer: Any, out: Path, settings: SftSettings) -> Progress:
    """Trains `model` (float32), and writes it (bfloat16) as a Hugging Face folder to `out`. Raises
    UserError: no demonstration fits into a row."""
    torch.set_num_threads(settings.threads)
    torch.manual_seed(settings.seed)
    domain = find_domain(settings.domain)
    format = domain.format(settings.format)
    draw = partial(draw_documents, tokenizer, domain, format, settings.seed)
    documents = made_ahead(draw, count())
    first = list(islice(documents, CHUNK))
    if all(len(document.ids) > settings.length for document in first):
        raise UserError(
            f"none of the first {CHUNK} demonstrations in the format {settings.format} fits into a "
            f"row of {settings.length} tokens; use --prompt-format short, or a base with a shorter "
            "chat template",
            key="--prompt-format",
        )
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=0.0, betas=(0.9, 0.95), weight_decay=0.0, fused=True
    )
    progress = train(model, chain(first, documents), optimizer, settings)
    save_base(model, tokenizer, out, SAMPLE)
    facts = {**asdict(progress), "settings": asdict(settings)}
    (out / WARMUP_LOG).write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    return progress
