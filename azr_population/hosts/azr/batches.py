"""AZR's loaders by member; veRL's padded tensors and our rows of token ids, in both directions.

veRL's layout: `prompts` [rows, P] padded on the left, `responses` [rows, R] padded on the right,
`attention_mask`, `position_ids` and `input_ids` [rows, P + R].
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from omegaconf import open_dict
from torch import Tensor
from torch.nn.functional import pad

from azr_population.engines.engine import Completion


@dataclass(frozen=True)
class PromptBatch:
    """The prompts of one of AZR's batches as token ids, the slot of each row's writer, and the
    rows' numbers, by which they draw."""

    prompts: Sequence[Sequence[int]]
    slots: Sequence[int]
    numbers: Sequence[int]


class PeekableLoader:
    """A loader of AZR's whose next batch can be looked at before AZR takes it."""

    def __init__(self, batches: Iterable[dict[str, Any]]) -> None:
        self._batches = iter(batches)
        self._peeked: list[dict[str, Any]] = []

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self

    def __next__(self) -> dict[str, Any]:
        return self._peeked.pop() if self._peeked else next(self._batches)

    def peek(self) -> dict[str, Any]:
        """What `next` returns next."""
        if not self._peeked:
            self._peeked.append(next(self._batches))
        return self._peeked[0]


@contextmanager
def batch_size(config: Any, rows: int) -> Iterator[None]:
    """Inside, AZR's loaders make batches of so many rows."""
    before = config.data.train_batch_size
    with open_dict(config):
        config.data.train_batch_size = rows
        try:
            yield
        finally:
            config.data.train_batch_size = before


def by_member(
    loaders: Sequence[tuple[Sequence[int], Iterable[Mapping[str, Any]]]],
) -> Iterator[dict[str, Any]]:
    """Batches that hold a batch of every (slots, loader), whose rows are shared out evenly over
    the slots, as `member`."""
    for parts in zip(*(loader for _, loader in loaders), strict=True):
        joined: dict[str, Any] = {}
        for key, first in parts[0].items():
            values = [part[key] for part in parts]
            joined[key] = torch.cat(values) if isinstance(first, Tensor) else np.concatenate(values)
        members = [
            slot
            for (slots, _), part in zip(loaders, parts, strict=True)
            for slot in slots
            for _ in range(len(part["input_ids"]) // len(slots))
        ]
        if len(members) != len(joined["input_ids"]):
            raise RuntimeError(f"{len(joined['input_ids'])} rows for {len(members)} members' rows")
        joined["member"] = np.array(members, dtype=object)
        yield joined


def prompt_rows(input_ids: Tensor, attention_mask: Tensor) -> list[list[int]]:
    """The token ids of left-padded prompts [rows, P], without padding."""
    return [ids[mask.bool()].tolist() for ids, mask in zip(input_ids, attention_mask, strict=True)]


def response_rows(responses: Tensor, attention_mask: Tensor) -> list[list[int]]:
    """The token ids of right-padded responses [rows, R]; the mask is [rows, P + R]."""
    return prompt_rows(responses, attention_mask[:, -responses.shape[1] :])


def with_responses(
    batch: Mapping[str, Tensor],
    completions: Sequence[Sequence[int]],
    width: int,
    pad_id: int,
) -> dict[str, Tensor]:
    """veRL's tensors of generated rows.

    Args:
        batch: `input_ids`, `attention_mask` and `position_ids` [rows, P] of the prompts.
        completions: token ids of each row; those beyond `width` are cut.
        width: R, the response length of the batch.
        pad_id: the padding token.
    """
    prompts, mask = batch["input_ids"], batch["attention_mask"]
    rows = [torch.tensor(ids[:width], dtype=prompts.dtype) for ids in completions]
    responses = padded_right(rows, width, pad_id)
    answered = padded_right([torch.ones_like(row) for row in rows], width).to(mask.dtype)
    positions = batch["position_ids"]
    later = positions[:, -1:] + torch.arange(1, width + 1, dtype=positions.dtype)
    return {
        "prompts": prompts,
        "responses": responses,
        "input_ids": torch.cat([prompts, responses], dim=1),
        "attention_mask": torch.cat([mask, answered], dim=1),
        "position_ids": torch.cat([positions, later], dim=1),
    }


def padded_right(rows: Sequence[Tensor], width: int, fill: int = 0) -> Tensor:
    """Rows of different lengths as [rows, width], padded with `fill`."""
    return torch.stack([pad(row, (0, width - len(row)), value=fill) for row in rows])


def completions(batch: Any, tokenizer: Any = None) -> list[Completion]:
    """The rows' responses, by their `member`s. There is text with a `tokenizer`, and there are
    log-probabilities once the actor has given them. A response as long as the batch is wide counts
    as cut off."""
    tensors, slots = batch.batch, batch.non_tensor_batch["member"]
    names = set(tensors.keys())
    written = response_rows(tensors["responses"], tensors["attention_mask"])
    prompts = _prompts(batch) if "prompts" in names else [()] * len(written)
    logs = tensors["old_log_probs"] if "old_log_probs" in names else None
    return [
        Completion(
            int(slot),
            prompt,
            tuple(ids),
            () if logs is None else tuple(logs[row, : len(ids)].tolist()),
            len(ids) < tensors["responses"].shape[1],
            tokenizer.decode(ids, skip_special_tokens=True) if tokenizer else "",
        )
        for row, (slot, prompt, ids) in enumerate(zip(slots, prompts, written, strict=True))
    ]


def _prompts(batch: Any) -> list[tuple[int, ...]]:
    """The rows' prompts; equal ones (AZR repeats them for every sample) are one tuple."""
    ids = batch.batch["prompts"]
    mask = batch.batch["attention_mask"][:, : ids.shape[1]]
    prompts: dict[tuple[int, ...], tuple[int, ...]] = {}
    rows = (tuple(row[attended.bool()].tolist()) for row, attended in zip(ids, mask, strict=True))
    return [prompts.setdefault(row, row) for row in rows]
