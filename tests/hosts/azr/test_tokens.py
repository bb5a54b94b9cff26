"""veRL's tensors and rows of token ids."""

from __future__ import annotations

import torch

from azr_population.hosts.azr.batches import (
    prompt_rows,
    response_rows,
    with_responses,
)

PROMPTS = {
    "input_ids": torch.tensor([[0, 0, 5, 6], [7, 8, 9, 10]]),
    "attention_mask": torch.tensor([[0, 0, 1, 1], [1, 1, 1, 1]]),
    "position_ids": torch.tensor([[0, 0, 0, 1], [0, 1, 2, 3]]),
}


def test_left_padding_is_trimmed() -> None:
    rows = prompt_rows(PROMPTS["input_ids"], PROMPTS["attention_mask"])
    assert rows == [[5, 6], [7, 8, 9, 10]]


def test_responses_are_padded_cut_and_found_again() -> None:
    made = with_responses(PROMPTS, [[11], [12, 13, 14, 15]], width=3, pad=0)
    assert made["responses"].tolist() == [[11, 0, 0], [12, 13, 14]]
    assert made["input_ids"][0].tolist() == [0, 0, 5, 6, 11, 0, 0]
    assert made["attention_mask"].tolist() == [[0, 0, 1, 1, 1, 0, 0], [1] * 7]
    assert made["position_ids"].tolist() == [[0, 0, 0, 1, 2, 3, 4], [0, 1, 2, 3, 4, 5, 6]]
    found = response_rows(made["responses"], made["attention_mask"])
    assert found == [[11], [12, 13, 14]]
