import pytest
import torch
from tiny_chat_base import make_model

from azr_population.bases.demonstrations import (
    SOLVE_WEIGHT,
    Demonstration,
    DemonstrationSet,
    _chunk,
    encode_group,
)
from azr_population.bases.sft_trainer import pack

GROUP = DemonstrationSet(
    "solve", (Demonstration("abc1", "x"), Demonstration("abc22", "yz")), ("abc",)
)


def test_what_prompts_share_comes_once_and_completions_alone_are_learned(tokenizer):
    document = encode_group(GROUP, tokenizer)
    words = tokenizer.convert_ids_to_tokens(document.ids)
    start, end = "<|im_start|>", "<|im_end|>"
    first = ["1", end, start, "x", end]
    second = ["2", "2", end, start, "y", "z", end]
    assert words == [start, "a", "b", "c", *first, *second]
    assert document.branches.tolist() == [0] * 4 + [1] * 5 + [2] * 7
    assert document.positions.tolist() == [*range(9), *range(4, 11)]
    weighed = [word for word, weight in zip(words, document.weights, strict=True) if weight]
    assert weighed == ["x", end, "y", "z", end]
    assert set(document.weights.tolist()) == {0.0, SOLVE_WEIGHT}


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_a_branch_in_a_row_reads_what_it_would_read_alone(tokenizer, attention):
    model = make_model(attn_implementation=attention)
    documents = [encode_group(group, tokenizer) for group in _chunk(1, "short", 0)[:30]]
    batch = next(pack(documents, rows=2, length=1024))
    allowed = batch.may_attend
    bias = torch.zeros(allowed.shape).masked_fill(~allowed, torch.finfo(torch.float32).min)
    with torch.no_grad():
        packed = model(
            input_ids=batch.ids,
            position_ids=batch.positions,
            attention_mask=bias[:, None],
            use_cache=False,
        ).logits
        compared = 0
        for row in range(2):
            for number in range(int(batch.documents[row].max()) + 1):
                inside = batch.documents[row] == number
                last = batch.branches[row][inside].max()
                visible = inside & torch.isin(batch.branches[row], torch.tensor([0, last]))
                alone = model(batch.ids[row][visible][None]).logits[0]
                assert (alone - packed[row][visible]).abs().max() < 1e-4
                compared += 1
    assert compared >= 3
