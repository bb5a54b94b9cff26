"""Training of all of a base's weights on packed documents: pre-training and SFT share this loop.

float32 weights, matrix products in bfloat16 where the CPU is fast at them, AdamW, a learning rate
with a short warm-up that falls to zero when the minutes or tokens are used up. One process trains
on a CPU, another one makes the documents.
"""

import copy
import multiprocessing
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor

from azr_population.engines.base_model import fast_cpu_dtype, write_sample
from azr_population.pages.console.heartbeat import stop_requests

T = TypeVar("T")


class Document(NamedTuple):
    """Tokens in a row, lists of one length.

    All tokens attend to branch 0; those of branches 1, 2, ... also to their branch. `weights[t]` is
    the weight of predicting token t: 0 for the first token of a later branch, which does not follow
    the token before it in the row.
    """

    ids: list[int]
    positions: list[int]
    branches: list[int]
    weights: list[float]


def branched(pairs: Iterable[tuple[list[int], list[int]]], weight: float) -> Document:
    """Prompts with their completions, in token ids: the beginning that all have in common, then the
    rest of each in its branch. Tokens of completions have the `weight`, those of prompts 0.

    The last common token is in every branch, because the next one is predicted from it.
    """
    rows = [([*prompt, *completion], len(prompt)) for prompt, completion in pairs]
    columns = zip(*(ids for ids, _ in rows), strict=False)
    shared = max(0, sum(1 for _ in takewhile(lambda column: len(set(column)) == 1, columns)) - 1)
    document = Document([], [], [], [])
    for branch, (ids, prompt_length) in enumerate(rows, 1):
        weights = [weight if place >= prompt_length else 0.0 for place in range(len(ids))]
        start = 0 if branch == 1 else shared
        if start:
            weights[start] = 0.0
        document.ids.extend(ids[start:])
        document.positions.extend(range(start, len(ids)))
        document.branches.extend(0 if n < shared else branch for n in range(start, len(ids)))
        document.weights.extend(weights[start:])
    return document


class Batch(NamedTuple):
    """Rows of packed documents; (rows, length) each. Padding has weight 0 and document -1."""

    ids: Tensor
    positions: Tensor
    branches: Tensor
    weights: Tensor
    documents: Tensor

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
    def tensor(rows: Iterable[list[Any]], padding: float) -> Tensor:
        return torch.tensor([row + [padding] * (length - len(row)) for row in rows])

    ids, positions, branches, weights = (
        tensor(([value for document in row for value in document[n]] for row in packed), padding)
        for n, padding in enumerate((0, 0, 0, 0.0))
    )
    numbers = ([n for n, document in enumerate(row) for _ in document.ids] for row in packed)
    return Batch(ids, positions, branches, weights, tensor(numbers, -1))


def model_loss(model: Any, batch: Batch) -> Tensor:
    """The weighted mean cross-entropy of the tokens with a weight, in nats."""
    allowed = batch.may_attend
    dtype = fast_cpu_dtype()
    bias = torch.zeros(allowed.shape, dtype=dtype)
    bias.masked_fill_(~allowed, torch.finfo(dtype).min)
    shares = batch.weights[:, 1:]
    trained = shares > 0
    with torch.autocast("cpu", torch.bfloat16, enabled=dtype == torch.bfloat16):
        hidden = model.base_model(
            input_ids=batch.ids,
            position_ids=batch.positions,
            attention_mask=bias[:, None],
            use_cache=False,
        )[0]
        # Only logits with a weight: the vocabulary is larger than the rest of the model.
        logits = model.get_output_embeddings()(hidden[:, :-1][trained])
    each = F.cross_entropy(logits.float(), batch.ids[:, 1:][trained], reduction="none")
    return (each * shares[trained]).sum() / shares.sum()


@dataclass(frozen=True, kw_only=True)
class TrainingSchedule:
    """How long training takes, its learning rate, and the size of a batch."""

    minutes: float
    learning_rate: float
    warmup_steps: int
    rows: int
    length: int
    """Tokens of a row."""
    tokens: int = 0
    """Training ends earlier after so many; 0: no limit. The same tokens give the same weights."""


@dataclass
class Progress:
    """How much has been trained."""

    steps: int = 0
    tokens: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    share: float = 0.0
    """Of the training, 0 to 1."""
    stopped_by: int = 0
    """The signal that ended it before."""
    curve: list[dict[str, float]] = field(default_factory=list)


LOG_SECONDS = 20.0


def train(
    model: Any,
    documents: Iterable[Document],
    optimizer: torch.optim.Optimizer,
    schedule: TrainingSchedule,
) -> Progress:
    """Trains until the schedule ends, or a signal asks to stop (a second one interrupts)."""
    stopped: list[int] = []

    def say_stopping() -> None:
        if len(stopped) > 1:
            raise KeyboardInterrupt
        print("stopping after this step; once more to stop at once")

    progress, window, logged = Progress(), list[float](), 0.0
    wall, cpu = time.monotonic(), time.process_time()
    batches = pack(documents, schedule.rows, schedule.length)
    model.train()
    with stop_requests(stopped, say_stopping):
        while progress.share < 1.0 and not stopped:
            batch = next(batches)
            rate = min((progress.steps + 1) / schedule.warmup_steps, 1.0 - progress.share)
            for group in optimizer.param_groups:
                group["lr"] = schedule.learning_rate * rate
            loss = model_loss(model, batch)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            window.append(loss.item())
            progress.steps += 1
            progress.tokens += int((batch.documents >= 0).sum())
            progress.seconds = time.monotonic() - wall
            progress.cpu_seconds = time.process_time() - cpu
            spent = progress.tokens / schedule.tokens if schedule.tokens else 0.0
            progress.share = max(progress.seconds / (60.0 * schedule.minutes), spent)
            if progress.seconds - logged > LOG_SECONDS:
                mean = round(sum(window) / len(window), 4)
                point = {"step": progress.steps, "tokens": progress.tokens, "loss": mean}
                progress.curve.append(point)
                left = progress.seconds * (1.0 / progress.share - 1.0) / 60.0
                print(
                    f"step {progress.steps} tokens {progress.tokens / 1e3:.0f}k loss {mean:.3f} "
                    f"{progress.tokens / progress.seconds:.0f} tokens/s {progress.share:.0%}, "
                    f"{left:.0f} minutes left"
                )
                window, logged = [], progress.seconds
    progress.stopped_by = stopped[0] if stopped else 0
    return progress


def made_ahead(function: Callable[[int], Iterable[T]], jobs: Iterable[int]) -> Iterator[T]:
    """What `function(job)` gives of each job in order, the next job's made ahead in a child
    process. `function` must be picklable, and `jobs` may be endless."""
    # Ctrl-C is for the parent, which finishes its step.
    ignore = signal.SIGINT, signal.SIG_IGN
    spawn = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(1, spawn, signal.signal, ignore)
    try:
        submitted = (pool.submit(function, job) for job in jobs)
        current = next(submitted)
        for ahead in submitted:
            yield from current.result()
            current = ahead
        yield from current.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def save_base(model: Any, tokenizer: Any, out: Path, sample: str) -> None:
    """Writes bfloat16 weights, the tokenizer, and a sample of text to check them by."""
    half = copy.deepcopy(model).to(torch.bfloat16).eval()
    half.save_pretrained(out)
    tokenizer.save_pretrained(out)
    write_sample(out, half, tokenizer, sample)
