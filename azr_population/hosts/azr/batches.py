"""AZR's loaders by member, and veRL's padded tensors of prompts and completions.

veRL's layout: `prompts` [rows, P] padded on the left, `responses` [rows, R] padded on the right,
`attention_mask`, `position_ids` and `input_ids` [rows, P + R].
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

COMPLETION = "completion"
"""Beside veRL's tensors: each row's `Completion`, with the sampler's log-probabilities."""


def by_member(
    loaders: Sequence[tuple[Sequence[int], Iterable[Mapping[str, Any]]]],
) -> Iterator[dict[str, Any]]:
    """Batches that hold a batch of every (slots, loader), whose rows are shared out evenly over
    the slots, as `member`; as many as every loader has."""
    for parts in zip(*(loader for _, loader in loaders), strict=False):
        joined: dict[str, Any] = {}
        for key, first in parts[0].items():
            values = [part[key] for part in parts]
            joined[key] = torch.cat(values) if isinstance(first, Tensor) else np.concatenate(values)
        of_parts = zip(loaders, parts, strict=True)
        members = [np.repeat(s, len(part["input_ids"]) // len(s)) for (s, _), part in of_parts]
        joined["member"] = np.concatenate(members).astype(object)
        if len(joined["member"]) != len(joined["input_ids"]):
            raise RuntimeError("the rows cannot be split evenly over the members")
        yield joined


def prompt_rows(batch: Mapping[str, Tensor]) -> list[list[int]]:
    """The token ids of left-padded prompts, without padding: `input_ids` and `attention_mask`
    [rows, P]."""
    rows = zip(batch["input_ids"], batch["attention_mask"], strict=True)
    return [ids[mask.bool()].tolist() for ids, mask in rows]


def with_responses(
    batch: Mapping[str, Tensor], responses: Sequence[Sequence[int]], width: int, pad_id: int
) -> dict[str, Tensor]:
    """veRL's tensors of generated rows.

    Args:
        batch: `input_ids`, `attention_mask` and `position_ids` [rows, P] of the prompts.
        responses: token ids of each row; those beyond `width` are cut.
        width: R, the response length of the batch.
        pad_id: the padding token.
    """
    prompts, mask, positions = (
        batch[name] for name in ("input_ids", "attention_mask", "position_ids")
    )
    rows = [torch.tensor(ids, dtype=prompts.dtype) for ids in responses]
    padded = padded_right(rows, width, pad_id)
    answered = padded_right([torch.ones_like(row) for row in rows], width).to(mask.dtype)
    later = positions[:, -1:] + torch.arange(1, width + 1, dtype=positions.dtype)
    return {
        "prompts": prompts,
        "responses": padded,
        "input_ids": torch.cat([prompts, padded], dim=1),
        "attention_mask": torch.cat([mask, answered], dim=1),
        "position_ids": torch.cat([positions, later], dim=1),
    }


def padded_right(rows: Sequence[Tensor], width: int, fill: int = 0) -> Tensor:
    """Rows of different lengths as [rows, width], padded with `fill`, or cut."""
    return torch.stack([pad(row, (0, width - len(row)), value=fill) for row in rows])
