"""AZR's loaders, by member."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from omegaconf import OmegaConf

from azr_population.hosts.azr.batches import batch_size, one_after_the_other, split_evenly


def rows(start: int, count: int) -> dict:
    return {
        "input_ids": torch.arange(start, start + count).unsqueeze(1),
        "problem": np.array([str(n) for n in range(count)], dtype=object),
    }


def test_loaders_are_joined_and_shared_out_by_member() -> None:
    joined = list(
        one_after_the_other([(2, [rows(0, 2), rows(10, 2)]), (3, [rows(5, 2), rows(15, 2)])])
    )
    assert [one["input_ids"].flatten().tolist() for one in joined] == [
        [0, 1, 5, 6],
        [10, 11, 15, 16],
    ]
    assert joined[0]["member"].tolist() == [2, 2, 3, 3] and len(joined[0]["problem"]) == 4
    (shared,) = split_evenly([rows(0, 6)], [0, 1])
    assert shared["member"].tolist() == [0, 0, 0, 1, 1, 1]
    with pytest.raises(RuntimeError, match="7 rows"):
        list(split_evenly([rows(0, 7)], [0, 1]))


def test_the_batch_size_is_put_back() -> None:
    config = OmegaConf.create({"data": {"train_batch_size": 4}})
    OmegaConf.set_struct(config, True)
    with batch_size(config, 32):
        assert config.data.train_batch_size == 32
    assert config.data.train_batch_size == 4
