"""Warm-up of a base: supervised training of all weights on demonstrations, in minutes on a CPU.

bfloat16 weights with float32 masters, AdamW, a learning rate that rises shortly and falls to zero
when the minutes or the tokens are used up. Stopped, it goes on from its last state. Not covered:
GPUs, a search over hyper-parameters, bit-equal results after a stop.
"""

import json
import shutil
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from pickle import UnpicklingError
from random import Random
from typing import Any

import torch
import torch.nn.functional as F

from azr_population.bases import programs
from azr_population.bases.demonstrations import DemonstrationSet, from_grammar, from_tasks
from azr_population.bases.nano.forward import may_attend
from azr_population.bases.nano.packing import Batch, Document, pack
from azr_population.bases.rows import encode_group
from azr_population.domains.code.base_format import WARMUP_LOG
from azr_population.domains.known import find_domain
from azr_population.domains.task import Task
from azr_population.engines.base_sample import write_sample
from azr_population.errors import UserError

STATE = "warmup_state.pt"
"""In the folder of a warm-up that is not finished: masters and moments, 12 bytes a weight."""

SAMPLE = "def f(a):\n    b = {'x': 12}\n    return [v + b['x'] for v in a]"
"""What the base has to read and score as it did when it was written; `engines/base_sample.py`."""

_CHECKPOINT_SECONDS = 300.0
_LOG_SECONDS = 20.0
_GIVE_UP = 300
"""Demonstrations that are too long, one after the other from the start."""


@dataclass(frozen=True)
class Settings:
    """What a warm-up depends on but the base."""

    format: str = "short"
    domain: str = "code"
    minutes: float = 30.0
    """Of training, over all sittings."""
    tokens: int = 0
    """Ends it earlier; 0: the minutes decide. The same tokens give the same base."""
    seed: int = 1
    threads: int = 2
    rows: int = 2
    length: int = 384
    learning_rate: float = 3e-4
    rising_steps: int = 20
    max_grad_norm: float = 1.0
    task_share: float = 0.15
    """Share of the groups that come from seed files, where there are any."""


@dataclass
class Progress:
    """How far a warm-up is; stored with its state."""

    steps: int = 0
    tokens: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    chunk: int = 0
    """The chunk of grammar programs that comes next."""
    demonstrations: int = 0
    too_long: int = 0
    """Demonstrations left out: longer than a row."""
    curve: list[dict[str, float]] = field(default_factory=list)

    def share(self, settings: Settings) -> float:
        """Of the warm-up, 0 to 1."""
        by_time = self.seconds / (60.0 * settings.minutes)
        return max(by_time, self.tokens / settings.tokens if settings.tokens else 0.0)


def unfinished(folder: Path) -> bool:
    """Whether the folder holds a warm-up that was stopped."""
    return (folder / STATE).exists()


def bytes_needed(model: Any) -> int:
    """Room on the disk: two states while one replaces the other, and the bfloat16 weights twice."""
    return sum(p.numel() for p in model.parameters()) * (2 * 12 + 2 * 2)


def warm_up(
    model: Any,
    tokenizer: Any,
    out: Path,
    settings: Settings,
    tasks: Sequence[Task] = (),
    known: Collection[str] = (),
    stopping: Callable[[], bool] = lambda: False,
    log: Callable[[str], None] = print,
) -> Progress:
    """Trains `model` (float32); writes it to `out` (bfloat16) at every checkpoint and at the end.

    Args:
        tasks: executed tasks of seed files, beside the grammar's programs.
        known: digests of the programs that the model was warmed up on before.
        stopping: asked after every step; then the state is kept for the next call.

    Raises UserError: the state in `out` is of other settings or damaged, or no demonstration fits
    into a row.
    """
    torch.set_num_threads(settings.threads)
    torch.manual_seed(settings.seed)
    trainer = _Trainer(model, settings)
    progress, seen = _restore(trainer, out, settings, known)
    if progress.steps:
        log(f"going on at {progress.share(settings):.0%}, step {progress.steps}")
    stream = _documents(tokenizer, settings, tasks, progress, seen)
    batches = pack(stream, settings.rows, settings.length)
    clock = _Clock(progress)
    window: list[float] = []
    saved = logged = progress.seconds
    while progress.share(settings) < 1.0 and not stopping():
        batch = next(batches)
        loss = trainer.step(batch, progress.steps + 1, progress.share(settings))
        window.append(loss)
        progress.steps += 1
        progress.tokens += batch.tokens
        clock.update(progress)
        if progress.seconds - logged > _LOG_SECONDS:
            logged = progress.seconds
            _record(progress, settings, window, log)
            window = []
        if progress.seconds - saved > _CHECKPOINT_SECONDS:
            saved = progress.seconds
            _save(trainer, tokenizer, out, settings, progress, seen)
    _save(trainer, tokenizer, out, settings, progress, seen)
    if progress.too_long:
        log(
            f"{progress.too_long} of {progress.too_long + progress.demonstrations} demonstrations "
            f"were longer than a row of {settings.length} tokens and left out"
        )
    if progress.share(settings) >= 1.0:
        (out / STATE).unlink()
    return progress


class _Trainer:
    """bfloat16 weights that compute, float32 masters that learn."""

    def __init__(self, model: Any, settings: Settings) -> None:
        self.settings = settings
        self.masters = [p.detach().clone().requires_grad_() for p in model.parameters()]
        self.model = model.to(torch.bfloat16).train()
        self.optimizer = torch.optim.AdamW(
            self.masters, lr=0.0, betas=(0.9, 0.95), weight_decay=0.0, fused=True
        )

    def step(self, batch: Batch, number: int, progress: float) -> float:
        """One update; the batch's loss: mean cross-entropy of the weighted tokens, in nats."""
        rate = min(number / self.settings.rising_steps, 1.0) * (1.0 - progress)
        self.optimizer.param_groups[0]["lr"] = self.settings.learning_rate * rate
        loss = self._loss(batch)
        loss.backward()
        low = list(self.model.parameters())
        for master, weight in zip(self.masters, low, strict=True):
            master.grad, weight.grad = weight.grad.float(), None
        torch.nn.utils.clip_grad_norm_(self.masters, self.settings.max_grad_norm)
        self.optimizer.step()
        self.publish()
        return loss.item()

    @torch.no_grad()
    def publish(self) -> None:
        """Copies the masters into the weights that compute."""
        for master, weight in zip(self.masters, self.model.parameters(), strict=True):
            weight.copy_(master)
            master.grad = None

    def _loss(self, batch: Batch) -> torch.Tensor:
        ids, weights = torch.from_numpy(batch.ids), torch.from_numpy(batch.weights)
        allowed = may_attend(torch.from_numpy(batch.documents), torch.from_numpy(batch.branches))
        bias = torch.zeros(allowed.shape, dtype=torch.bfloat16)
        bias.masked_fill_(~allowed, torch.finfo(torch.bfloat16).min)
        hidden = self.model.base_model(
            input_ids=ids,
            position_ids=torch.from_numpy(batch.positions),
            attention_mask=bias[:, None],
            use_cache=False,
        )[0]
        # Logits of the tokens that count only: a vocabulary is larger than the rest of the model.
        wanted = weights[:, 1:] > 0
        logits = self.model.get_output_embeddings()(hidden[:, :-1][wanted])
        each = F.cross_entropy(logits.float(), ids[:, 1:][wanted], reduction="none")
        shares = weights[:, 1:][wanted]
        return (each * shares).sum() / shares.sum()


def _documents(
    tokenizer: Any,
    settings: Settings,
    tasks: Sequence[Task],
    progress: Progress,
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
                    f"{settings.format} fits into a row of {settings.length} tokens; use --format "
                    "short, or a base with a shorter chat template"
                )


class _Clock:
    """Adds wall-clock and processor seconds to a progress."""

    def __init__(self, progress: Progress) -> None:
        self._wall = time.monotonic() - progress.seconds
        self._cpu = time.process_time() - progress.cpu_seconds

    def update(self, progress: Progress) -> None:
        progress.seconds = time.monotonic() - self._wall
        progress.cpu_seconds = time.process_time() - self._cpu


def _record(
    progress: Progress, settings: Settings, window: list[float], log: Callable[[str], None]
) -> None:
    loss = sum(window) / len(window)
    progress.curve.append(
        {"step": progress.steps, "tokens": progress.tokens, "loss": round(loss, 4)}
    )
    share = progress.share(settings)
    left = progress.seconds * (1.0 - share) / share / 60.0
    log(
        f"step {progress.steps} tokens {progress.tokens / 1e3:.0f}k loss {loss:.3f} "
        f"{progress.tokens / progress.seconds:.0f} tokens/s {share:.0%}, {left:.0f} minutes left"
    )


def _save(
    trainer: _Trainer,
    tokenizer: Any,
    out: Path,
    settings: Settings,
    progress: Progress,
    seen: set[str],
) -> None:
    """The model as a Hugging Face folder, what it has seen, and the state to go on from."""
    save_base(trainer.model, tokenizer, out)
    programs.write_digests(out, seen)
    facts = {**asdict(progress), "settings": asdict(settings)}
    scratch = out / f"{STATE}.part"
    torch.save(
        {
            "facts": facts,
            "masters": [master.detach() for master in trainer.masters],
            "optimizer": trainer.optimizer.state_dict(),
        },
        scratch,
    )
    scratch.replace(out / STATE)
    (out / WARMUP_LOG).write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


def save_base(model: Any, tokenizer: Any, out: Path) -> None:
    """Writes weights, tokenizer and a sample to check them by; files are replaced whole."""
    scratch = out / "writing"
    model.save_pretrained(scratch)
    tokenizer.save_pretrained(scratch)
    write_sample(scratch, model, tokenizer, SAMPLE)
    for path in scratch.iterdir():
        path.chmod(0o644)
        path.replace(out / path.name)
    shutil.rmtree(scratch)


def _restore(
    trainer: _Trainer, out: Path, settings: Settings, known: Collection[str]
) -> tuple[Progress, set[str]]:
    """The progress and the programs of an earlier sitting, or of a start."""
    path = out / STATE
    if not path.exists():
        return Progress(), set(known)
    try:
        state = torch.load(path, weights_only=True)
        facts = dict(state["facts"])
        stored = facts.pop("settings")
        with torch.no_grad():
            for master, value in zip(trainer.masters, state["masters"], strict=True):
                master.copy_(value)
        trainer.optimizer.load_state_dict(state["optimizer"])
    except (OSError, RuntimeError, ValueError, KeyError, EOFError, UnpicklingError) as error:
        raise UserError(f"{path} is damaged; remove the folder and start again") from error
    free = ("minutes", "tokens", "threads")
    for key, value in asdict(settings).items():
        if key not in free and stored[key] != value:
            raise UserError(
                f"{out} holds a warm-up with {key}={stored[key]}, not {value}; go on with "
                f"{stored[key]}, or name another --out"
            )
    trainer.publish()
    return Progress(**facts), programs.read_digests(out)
