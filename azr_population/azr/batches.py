"""AZR's loaders and advantages, by member."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from omegaconf import open_dict
from verl import DataProto
from verl.trainer.ppo.ray_trainer import compute_advantage


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


def shared_out(
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


def member_advantages(batch: DataProto, algorithm: Any) -> None:
    """Overwrites `advantages` and `returns` [rows, R] by veRL's, for each member's rows apart.

    AZR computes them for one problem type and role at a time (TRR++), so that afterwards every
    (member, role, problem type) has a baseline of its own. Rows of a member whose rewards do not
    differ get 0: there is nothing to learn, and veRL fails on a single token.
    """
    slots = [int(slot) for slot in batch.non_tensor_batch["member"]]
    if len(set(slots)) == 1 and _differ(batch):
        return
    advantages = torch.zeros_like(batch.batch["advantages"])
    returns = torch.zeros_like(batch.batch["returns"])
    for slot in sorted(set(slots)):
        rows = torch.tensor([row for row, other in enumerate(slots) if other == slot])
        own = batch.select_idxs(rows)
        if _differ(own):
            own = _compute(own, algorithm)
            advantages[rows] = own.batch["advantages"]
        returns[rows] = own.batch["returns"]
    batch.batch["advantages"], batch.batch["returns"] = advantages, returns


def _differ(batch: DataProto) -> bool:
    rewards = batch.batch["token_level_rewards"].sum(dim=1)
    return bool((rewards - rewards[0]).abs().max() > 1e-6)


def _compute(batch: DataProto, algorithm: Any) -> DataProto:
    known = inspect.signature(compute_advantage).parameters
    options: dict[str, Any] = {
        "adv_estimator": algorithm.adv_estimator,
        "gamma": algorithm.gamma,
        "lam": algorithm.lam,
        "num_repeat": 1,
        "config": algorithm,
    }
    call: Callable[..., DataProto] = compute_advantage
    return call(batch, **{key: value for key, value in options.items() if key in known})
