"""veRL's padded tensors and our rows of token ids, in both directions.

veRL's layout: `prompts` [rows, P] padded on the left, `responses` [rows, R] padded on the right,
`attention_mask`, `position_ids` and `input_ids` [rows, P + R].
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor


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
    pad: int,
) -> dict[str, Tensor]:
    """veRL's tensors of generated rows.

    Args:
        batch: `input_ids`, `attention_mask` and `position_ids` [rows, P] of the prompts.
        completions: token ids of each row; those beyond `width` are cut.
        width: R, the response length of the batch.
        pad: the id that fills up.
    """
    prompts, mask = batch["input_ids"], batch["attention_mask"]
    responses = torch.full((len(completions), width), pad, dtype=prompts.dtype)
    answered = torch.zeros((len(completions), width), dtype=mask.dtype)
    for row, ids in enumerate(completions):
        kept = list(ids[:width])
        responses[row, : len(kept)] = torch.tensor(kept, dtype=prompts.dtype)
        answered[row, : len(kept)] = 1
    positions = batch["position_ids"]
    later = positions[:, -1:] + torch.arange(1, width + 1, dtype=positions.dtype)
    return {
        "prompts": prompts,
        "responses": responses,
        "input_ids": torch.cat([prompts, responses], dim=1),
        "attention_mask": torch.cat([mask, answered], dim=1),
        "position_ids": torch.cat([positions, later], dim=1),
    }


def padded_right(rows: Sequence[Tensor], width: int) -> Tensor:
    """Float rows of different lengths as [rows, width], filled up with 0."""
    whole = torch.zeros(len(rows), width)
    for index, row in enumerate(rows):
        whole[index, : len(row)] = row
    return whole
