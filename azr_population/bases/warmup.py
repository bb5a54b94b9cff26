"""Warm-up of a base: supervised training of all weights on demonstrations, in minutes on a CPU.

The loop is in `sft_trainer.py`. A stopped warm-up continues from its last state, but not bit for
bit. GPUs are not supported.
"""

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from pickle import UnpicklingError
from random import Random
from typing import Any

import torch

from azr_population.bases import programs
from azr_population.bases.demonstrations import (
    DemonstrationSet,
    encode_group,
    from_grammar,
    from_tasks,
)
from azr_population.bases.sft_trainer import (
    Document,
    Progress,
    TrainingSchedule,
    pack,
    save_base,
    train,
)
from azr_population.domains.code.formats import WARMUP_LOG
from azr_population.domains.known import find_domain
from azr_population.domains.task import Task
from azr_population.errors import UserError

STATE = "warmup_state.pt"
"""In the folder of an unfinished warm-up: weights and optimizer moments, 12 bytes a weight."""

SAMPLE = "def f(a):\n    b = {'x': 12}\n    return [v + b['x'] for v in a]"
"""A base proves itself on this text when loaded; see `base_model.check_sample`."""

_LOG_SECONDS = 20.0
_GIVE_UP = 300
"""Demonstrations at the start that are all too long."""


@dataclass(frozen=True, kw_only=True)
class SftSettings(TrainingSchedule):
    """Everything that a warm-up depends on, except the base."""

    format: str = "short"
    domain: str = "code"
    minutes: float = 30.0
    seed: int = 1
    threads: int = 2
    rows: int = 2
    length: int = 384
    learning_rate: float = 3e-4
    warmup_steps: int = 20
    task_share: float = 0.15
    """Share of the groups that come from seed files, where there are any."""


@dataclass
class SftProgress(Progress):
    """Progress of a warm-up, stored with its state."""

    chunk: int = 0
    """The next chunk of grammar programs."""
    demonstrations: int = 0
    too_long: int = 0
    """Demonstrations left out: longer than a row."""


def unfinished(folder: Path) -> bool:
    """Whether the folder holds a warm-up that was stopped."""
    return (folder / STATE).exists()


def warm_up(
    model: Any,
    tokenizer: Any,
    out: Path,
    settings: SftSettings,
    tasks: Sequence[Task] = (),
    seen_programs: Collection[str] = (),
    stopping: Callable[[], bool] = lambda: False,
    log: Callable[[str], None] = print,
) -> SftProgress:
    """Trains `model` (float32); writes it to `out` (bfloat16) at every checkpoint and at the end.

    Args:
        tasks: executed tasks of seed files, beside the grammar's programs.
        seen_programs: digests of the programs of an earlier warm-up.
        stopping: asked after every step; if true, the state is saved for the next call.

    Raises UserError: the state in `out` is of other settings or damaged, or no demonstration fits
    into a row.
    """
    torch.set_num_threads(settings.threads)
    torch.manual_seed(settings.seed)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=0.0, betas=(0.9, 0.95), weight_decay=0.0, fused=True
    )
    progress, seen = _restore(model, optimizer, out, settings, seen_programs)
    if progress.steps:
        share = progress.share(settings.minutes, settings.tokens)
        log(f"continuing at {share:.0%}, step {progress.steps}")
    stream = _documents(tokenizer, settings, tasks, progress, seen)
    train(
        model,
        pack(stream, settings.rows, settings.length),
        optimizer,
        settings,
        progress,
        lambda: _save(model, optimizer, tokenizer, out, settings, progress, seen),
        log,
        stopping,
        _LOG_SECONDS,
    )
    if progress.too_long:
        log(
            f"{progress.too_long} of {progress.too_long + progress.demonstrations} demonstrations "
            f"were longer than a row of {settings.length} tokens and left out"
        )
    if progress.share(settings.minutes, settings.tokens) >= 1.0:
        (out / STATE).unlink()
    return progress


def _documents(
    tokenizer: Any,
    settings: SftSettings,
    tasks: Sequence[Task],
    progress: SftProgress,
    seen: set[str],
) -> Iterator[Document]:
    """Groups of the grammar and of the tasks, shuffled together, as token documents."""
    rng = Random(f"warm-up {settings.seed} {progress.chunk}")
    format = find_domain(settings.domain).format(settings.format)
    others = from_tasks(tasks, format, rng) if tasks else None
    odds = settings.task_share / (1.0 - settings.task_share)
    for number, groups in from_grammar(
        settings.seed, settings.format, progress.chunk, settings.domain
    ):
        progress.chunk = number + 1
        mixed: list[DemonstrationSet] = list(groups)
        if others is not None:
            mixed += [next(others) for _ in range(round(odds * len(groups)))]
            rng.shuffle(mixed)
        for group in mixed:
            document = encode_group(group, tokenizer)
            if len(document.ids) <= settings.length:
                seen.update(map(programs.digest, group.programs))
                progress.demonstrations += len(group.demonstrations)
                yield document
                continue
            progress.too_long += len(group.demonstrations)
            if progress.too_long > _GIVE_UP and not progress.demonstrations:
                raise UserError(
                    f"none of the first {progress.too_long} demonstrations in the format "
                    f"{settings.format} fits into a row of {settings.length} tokens; use "
                    "--prompt-format short, or a base with a shorter chat template"
                )


def _save(
    model: Any,
    optimizer: torch.optim.Optimizer,
    tokenizer: Any,
    out: Path,
    settings: SftSettings,
    progress: SftProgress,
    seen: set[str],
) -> None:
    """Writes the model as a Hugging Face folder, the digests, and the state to continue from."""
    save_base(model, tokenizer, out, SAMPLE)
    programs.write_digests(out, seen)
    facts = {**asdict(progress), "settings": asdict(settings)}
    scratch = out / f"{STATE}.part"
    state = {"facts": facts, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save(state, scratch)
    scratch.replace(out / STATE)
    (out / WARMUP_LOG).write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


def _restore(
    model: Any,
    optimizer: torch.optim.Optimizer,
    out: Path,
    settings: SftSettings,
    seen_programs: Collection[str],
) -> tuple[SftProgress, set[str]]:
    """Progress and programs of the stopped warm-up, or of a new one."""
    path = out / STATE
    if not path.exists():
        return SftProgress(), set(seen_programs)
    try:
        state = torch.load(path, weights_only=True)
        facts = dict(state["facts"])
        stored = facts.pop("settings")
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
    except (OSError, RuntimeError, ValueError, KeyError, EOFError, UnpicklingError) as error:
        raise UserError(f"{path} is damaged; remove the folder and start again") from error
    free = ("minutes", "tokens", "threads")
    for key, value in asdict(settings).items():
        if key not in free and stored[key] != value:
            raise UserError(
                f"{out} holds a warm-up with {key}={stored[key]}, not {value}; continue with "
                f"{stored[key]}, or name another --out"
            )
    return SftProgress(**facts), programs.read_digests(out)


def write_card(
    out: Path, source: str, settings: SftSettings, progress: SftProgress, seeds: Sequence[str]
) -> None:
    """Writes README.md beside the weights; seed files are named without their folders."""
    share = progress.share(settings.minutes, settings.tokens)
    state = "finished" if share >= 1.0 else f"stopped at {share:.0%}; the same command goes on"
    files = ", ".join(Path(name).name for name in seeds) or "none"
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
| demonstrations | {progress.demonstrations:,} in {progress.tokens:,} tokens |
| time | {progress.seconds / 60:.0f} minutes, {progress.cpu_seconds / 60:.0f} CPU minutes |

The model was trained on proposals and answers whose programs were executed first. It has learned
the form of an answer and small programs; `azr-population base validate <this folder>` measures how
well. `warmup.json` has the settings and the loss curve, `warmup_programs.txt` the digests of the
programs.
""",
        encoding="utf-8",
    )
