"""AZR's loaders and veRL's advantages, by member."""

from __future__ import annotations

import numpy as np
import pytest
import torch

pytest.importorskip("verl", reason="verl is not installed (extra: verl)")

from omegaconf import OmegaConf
from verl import DataProto
from verl.trainer.ppo.ray_trainer import compute_advantage

from azr_population.azr.batches import (
    batch_size,
    member_advantages,
    one_after_the_other,
    shared_out,
)

ALGORITHM = OmegaConf.create({"adv_estimator": "reinforce_plus_plus", "gamma": 1.0, "lam": 1.0})


def batch(rewards: list[float], slots: list[int]) -> DataProto:
    rows = len(rewards)
    mask = torch.ones(rows, 3)
    mask[0, 2] = 0
    scores = torch.zeros(rows, 3)
    for row, reward in enumerate(rewards):
        scores[row, int(mask[row].sum()) - 1] = reward
    tensors = {"token_level_rewards": scores, "response_mask": mask}
    made = DataProto.from_dict(tensors=tensors)
    made.non_tensor_batch["member"] = np.array(slots, dtype=object)
    return compute_advantage(made, "reinforce_plus_plus", config=ALGORITHM)


def test_advantages_are_those_of_the_members_own_rows() -> None:
    rewards, slots = [1.0, -0.5, 0.5, -1.0, 0.0], [3, 1, 3, 1, 3]
    whole = batch(rewards, slots)
    member_advantages(whole, ALGORITHM)
    for slot in (1, 3):
        own = [row for row, other in enumerate(slots) if other == slot]
        alone = whole.select_idxs(torch.tensor(own))
        alone = compute_advantage(alone, "reinforce_plus_plus", config=ALGORITHM)
        assert torch.equal(whole.batch["advantages"][own], alone.batch["advantages"])
    assert whole.batch["advantages"][1, 0] == -whole.batch["advantages"][3, 0]


def test_one_member_keeps_what_azr_computed_and_equal_rewards_teach_nothing() -> None:
    one = batch([1.0, -0.5, 0.5], [0, 0, 0])
    before = one.batch["advantages"].clone()
    member_advantages(one, ALGORITHM)
    assert torch.equal(one.batch["advantages"], before)
    two = batch([1.0, -0.5, -0.5, 0.5], [0, 1, 1, 0])
    member_advantages(two, ALGORITHM)
    assert two.batch["advantages"][1:3].abs().max() == 0 and two.batch["advantages"][0].any()


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
    (shared,) = shared_out([rows(0, 6)], [0, 1])
    assert shared["member"].tolist() == [0, 0, 0, 1, 1, 1]
    with pytest.raises(RuntimeError, match="7 rows"):
        list(shared_out([rows(0, 7)], [0, 1]))


def test_the_batch_size_is_put_back() -> None:
    config = OmegaConf.create({"data": {"train_batch_size": 4}})
    OmegaConf.set_struct(config, True)
    with batch_size(config, 32):
        assert config.data.train_batch_size == 32
    assert config.data.train_batch_size == 4
