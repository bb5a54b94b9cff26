"""AZR's loaders by member; veRL's tensors and rows of token ids."""

import numpy as np
import pytest
import torch

from azr_population.hosts.azr.batches import by_member, prompt_rows, with_responses


def rows(start, count):
    return {
        "input_ids": torch.arange(start, start + count).unsqueeze(1),
        "problem": np.array([str(n) for n in range(count)], dtype=object),
    }


def test_loaders_are_joined_and_shared_out_by_member():
    joined = list(by_member([([2], [rows(0, 2), rows(10, 2)]), ([3], [rows(5, 2), rows(15, 2)])]))
    assert [batch["input_ids"].flatten().tolist() for batch in joined] == [
        [0, 1, 5, 6],
        [10, 11, 15, 16],
    ]
    assert joined[0]["member"].tolist() == [2, 2, 3, 3] and len(joined[0]["problem"]) == 4
    (shared,) = by_member([([0, 1], [rows(0, 6)])])
    assert shared["member"].tolist() == [0, 0, 0, 1, 1, 1]
    with pytest.raises(RuntimeError):
        list(by_member([([0, 1], [rows(0, 7)])]))


PROMPTS = {
    "input_ids": torch.tensor([[0, 0, 5, 6], [7, 8, 9, 10]]),
    "attention_mask": torch.tensor([[0, 0, 1, 1], [1, 1, 1, 1]]),
    "position_ids": torch.tensor([[0, 0, 0, 1], [0, 1, 2, 3]]),
}


def test_left_padding_is_trimmed():
    assert prompt_rows(PROMPTS) == [[5, 6], [7, 8, 9, 10]]


def test_responses_are_padded_and_cut():
    batch = with_responses(PROMPTS, [[11], [12, 13, 14, 15]], width=3, pad_id=0)
    assert batch["responses"].tolist() == [[11, 0, 0], [12, 13, 14]]
    assert batch["input_ids"][0].tolist() == [0, 0, 5, 6, 11, 0, 0]
    assert batch["attention_mask"].tolist() == [[0, 0, 1, 1, 1, 0, 0], [1] * 7]
    assert batch["position_ids"].tolist() == [[0, 0, 0, 1, 2, 3, 4], [0, 1, 2, 3, 4, 5, 6]]
