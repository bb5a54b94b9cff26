"""AZR's loaders, by member."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from omegaconf import open_dict


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


def one_after_the_other(
    loaders: Sequence[tuple[int, Iterable[Mapping[str, Any]]]],
) -> Iterator[dict[str, Any]]:
    """Batches that hold a batch of every (slot, loader), with the slot as `member` of its rows."""
    for parts in zip(*(loader for _, loader in loaders), strict=True):
        whole: dict[str, Any] = {}
        for key, first in parts[0].items():
            values = [part[key] for part in parts]
            whole[key] = (
                torch.cat(values) if isinstance(first, torch.Tensor) else np.concatenate(values)
            )
        counts = [len(part["input_ids"]) for part in parts]
        yield with_members(whole, np.repeat([slot for slot, _ in loaders], counts).tolist())


def split_evenly(
    loader: Iterable[Mapping[str, Any]], slots: Sequence[int]
) -> Iterator[dict[str, Any]]:
    """A loader's batches, their rows shared out evenly over the slots."""
    for batch in loader:
        each = len(batch["input_ids"]) // len(slots)
        yield with_members(dict(batch), np.repeat(list(slots), each).tolist())


def with_members(batch: dict[str, Any], slots: Sequence[int]) -> dict[str, Any]:
    """The batch with the slot of each row's member."""
    if len(slots) != len(batch["input_ids"]):
        raise RuntimeError(f"{len(batch['input_ids'])} rows for {len(slots)} members' rows")
    batch["member"] = np.array(slots, dtype=object)
    return batch
