"""The launches and bytes of a decoding step, which are what it costs on a GPU."""

import counts
from transformers import Qwen2Config

CONFIG = Qwen2Config(
    vocab_size=4096, hidden_size=1024, intermediate_size=4096, num_hidden_layers=3,
    num_attention_heads=8, num_key_value_heads=2,
)  # fmt: skip


def test_eight_members_cost_little_more_than_one_and_lengths_nothing():
    one, eight, several = (
        counts.step(CONFIG, members, rows=128, prompt=128, several=lengths, rank=8)
        for members, lengths in ((1, False), (8, False), (8, True))
    )
    assert eight["launches"] <= 1.3 * one["launches"]
    assert eight["GB"] <= 1.15 * one["GB"]
    assert several["GB"] <= 1.1 * eight["GB"]
    assert several["launches"] <= 1.1 * eight["launches"]
    # Nothing is copied that is not new: no operator moves as much as the cache.
    assert one["floor GB"] < one["GB"]
    assert not {"cat", "clone", "copy_"} & eight["most GB"].keys()
