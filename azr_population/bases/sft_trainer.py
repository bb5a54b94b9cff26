"""Training of all of a base's weights on packed documents: pre-training and SFT share this loop.

float32 weights under bfloat16 autocast, AdamW, a learning rate with a short warm-up that falls to
zero when the minutes or tokens are used up. One process on a CPU.
"""

import copy
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from azr_population.engines.base_model import write_sample


@dataclass(frozen=True)
class Document:
    """One document. All arrays (length,): token ids, positions, branches (int64), weights.

    All tokens attend to branch 0; those of branches 1, 2, ... also to their branch. `weights[t]` is
    the weight of predicting token t: 0 for the first token of a later branch, which does not follow
    the token before it in the row.
    """

    ids: np.ndarray
    positions: np.ndarray
    branches: np.ndarray
    weights: np.ndarray


@dataclass(frozen=True)
class Batch:
    """Rows of packed documents; (rows, length) each. Padding has weight 0 and document -1."""

    ids: Tensor
    positions: Tensor
    documents: Tensor
    branches: Tensor
    weights: Tensor

    @property
    def tokens(self) -> int:
        """Tokens that are not padding."""
        return int((self.documents >= 0).sum())

    @property
    def may_attend(self) -> Tensor:
        """(rows, length, length) bool: position i reads j when j is not later, of the same
        document, and in branch 0 or in i's own branch."""
        same = self.documents[:, :, None] == self.documents[:, None, :]
        theirs = self.branches[:, None, :]
        return (same & ((theirs == 0) | (theirs == self.branches[:, :, None]))).tril()


def pack(documents: Iterable[Document], rows: int, length: int) -> Iterator[Batch]:
    """Batches of `rows` x `length`, filled first-fit; documents longer than a row are dropped."""
    packed: list[list[Document]] = [[] for _ in range(rows)]
    room = [length] * rows
    misses = 0
    for document in documents:
        size = len(document.ids)
        if size > length:
            continue
        place = next((row for row in range(rows) if room[row] >= size), None)
        if place is None:
            misses += 1
            if misses < 4:  # a few shorter ones may still fit; these documents are left out
                continue
            yield _batch(packed, length)
            packed, room, misses, place = [[] for _ in range(rows)], [length] * rows, 0, 0
        packed[place].append(document)
        room[place] -= size


def _batch(packed: list[list[Document]], length: int) -> Batch:
    shape = (len(packed), length)
    ids, positions, branches = (torch.zeros(shape, dtype=torch.long) for _ in range(3))
    documents, weights = torch.full(shape, -1), torch.zeros(shape)
    for row, in_row in enumerate(packed):
        start = 0
        for number, document in enumerate(in_row):
            part = slice(start, start + len(document.ids))
            ids[row, part] = torch.from_numpy(document.ids)
            positions[row, part] = torch.from_numpy(document.positions)
            branches[row, part] = torch.from_numpy(document.branches)
            weights[row, part] = torch.from_numpy(document.weights)
            documents[row, part] = number
            start = part.stop
    return Batch(ids, positions, documents, branches, weights)


def model_loss(model: Any, batch: Batch) -> Tensor:
    """The weighted mean cross-entropy of the tokens with a weight, in nats."""
    allowed = batch.may_attend
    bias = torch.zeros(allowed.shape, dtype=torch.bfloat16)
    bias.masked_fill_(~allowed, torch.finfo(torch.bfloat16).min)
    trained = batch.weights[:, 1:] > 0
    with torch.autocast("cpu", torch.bfloat16):
        hidden = model.base_model(
            input_ids=batch.ids,
            position_ids=batch.positions,
            attention_mask=bias[:, None],
            use_cache=False,
        )[0]
        # Only logits with a weight: the vocabulary is larger than the rest of the model.
        logits = model.get_output_embeddings()(hidden[:, :-1][trained])
    each = F.cross_entropy(logits.float(), batch.ids[:, 1:][trained], reduction="none")
    shares = batch.weights[:, 1:][trained]
    return (each * shares).sum() / shares.sum()


@dataclass(frozen=True, kw_only=True)
class TrainingSchedule:
    """How long training takes, and its learning rate."""

    learning_rate: float
    warmup_steps: int
    minutes: float
    """Of training in total, over all restarts."""
    tokens: int = 0
    """Training ends earlier after so many; 0: no limit. The same tokens give the same weights."""
    max_grad_norm: float = 1.0


@dataclass
class Progress:
    """How much has been trained."""

    steps: int = 0
    tokens: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    curve: list[dict[str, float]] = field(default_factory=list)

    def share(self, minutes: float, tokens: int) -> float:
        """The finished share of the training, 0 to 1."""
        return max(self.seconds / (60.0 * minutes), self.tokens / tokens if tokens else 0.0)


def train(
    model: Any,
    batches: Iterator[Batch],
    optimizer: torch.optim.Optimizer,
    schedule: TrainingSchedule,
    progress: Progress,
    save: Callable[[], None],
    log: Callable[[str], None],
    stopping: Callable[[], bool] = lambda: False,
    log_seconds: float = 20.0,
    save_seconds: float = 300.0,
) -> None:
    """Trains until the schedule ends or `stopping()` is true after a step; `save()` at intervals
    and at the end. Updates `progress`."""
    wall, cpu = time.monotonic() - progress.seconds, time.process_time() - progress.cpu_seconds
    logged = saved = progress.seconds
    window: list[float] = []
    model.train()
    while (share := progress.share(schedule.minutes, schedule.tokens)) < 1.0 and not stopping():
        batch = next(batches)
        rate = min((progress.steps + 1) / schedule.warmup_steps, 1.0 - share)
        for group in optimizer.param_groups:
            group["lr"] = schedule.learning_rate * rate
        loss = model_loss(model, batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), schedule.max_grad_norm)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        window.append(loss.item())
        progress.steps += 1
        progress.tokens += batch.tokens
        progress.seconds = time.monotonic() - wall
        progress.cpu_seconds = time.process_time() - cpu
        if progress.seconds - logged > log_seconds:
            logged = progress.seconds
            _record(progress, schedule, window, log)
            window = []
        if progress.seconds - saved > save_seconds:
            saved = progress.seconds
            save()
    save()


def _record(
    progress: Progress, schedule: TrainingSchedule, window: list[float], log: Callable[[str], None]
) -> None:
    loss, tokens = sum(window) / len(window), progress.tokens
    progress.curve.append({"step": progress.steps, "tokens": tokens, "loss": round(loss, 4)})
    share = progress.share(schedule.minutes, schedule.tokens)
    minutes_left = progress.seconds * (1.0 - share) / share / 60.0
    log(
        f"step {progress.steps} tokens {tokens / 1e3:.0f}k loss {loss:.3f} "
        f"{tokens / progress.seconds:.0f} tokens/s {share:.0%}, {minutes_left:.0f} minutes left"
    )


def save_base(model: Any, tokenizer: Any, out: Path, sample: str) -> None:
    """Writes bfloat16 weights, the tokenizer, and a sample of text to check them by; files are
    replaced whole."""
    scratch = out / "writing"
    half = copy.deepcopy(model).to(torch.bfloat16).eval()
    half.save_pretrained(scratch)
    tokenizer.save_pretrained(scratch)
    write_sample(scratch, half, tokenizer, sample)
    for path in scratch.iterdir():
        path.chmod(0o644)
        path.replace(out / path.name)
    shutil.rmtree(scratch)
