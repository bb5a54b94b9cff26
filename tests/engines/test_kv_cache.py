"""The cache with room, held against transformers' own."""

import torch
from transformers import DynamicCache

from azr_population.engines.kv_cache import new_cache

KV_HEADS, DIM = 2, 4


def tokens(rows, count, seed):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(rows, KV_HEADS, count, DIM, generator=generator) for _ in range(2)]


def test_tokens_are_written_where_there_is_room_for_them():
    ours, theirs, places = new_cache(3, room=9), DynamicCache(), []
    for step, count in enumerate((4, 1, 1, 1)):
        for layer in (0, 1):
            assert ours.get_seq_length(layer) == (0, 4, 5, 6)[step]
            assert ours.get_mask_sizes(count, layer) == (ours.get_seq_length(layer) + count, 0)
            new = tokens(3, count, 10 * step + layer)
            held = ours.update(*new, layer)
            for mine, expected in zip(held, theirs.update(*new, layer), strict=True):
                assert torch.equal(mine, expected)
            # In place: nothing that was there has moved.
            assert step == 0 or held[0].data_ptr() == places[layer]
        places = [keys.data_ptr() for keys, _ in ours]
    assert ours.get_seq_length() == 7
    left = torch.tensor([0, 2])
    before = [[kept.clone() for kept in layer] for layer in ours]
    ours.keep(left, room=8)
    for layer, expected in zip(ours, before, strict=True):
        for mine, whole in zip(layer, expected, strict=True):
            assert (
                torch.equal(mine, whole[left]) and len(mine.untyped_storage()) == 2 * 2 * 8 * 4 * 4
            )


def test_prompts_are_read_into_their_rows_with_zeros_before_them():
    cache = new_cache(3, room=7, repeats=2)
    first, second = tokens(2, 3, 1), tokens(1, 5, 2)
    parts = cache.part(slice(0, 2), 2), cache.part(slice(2, 3), 0)
    for part, new in zip(parts, (first, second), strict=True):
        assert part.get_seq_length() == 0
        assert all(map(torch.equal, part.update(*new, 0), new))
    cache.end_prefill(5)
    (held,) = cache
    for mine, short, long in zip(held, first, second, strict=True):
        assert mine.shape == (6, KV_HEADS, 5, DIM)
        assert not mine[:4, :, :2].any()
        assert torch.equal(mine[:4, :, 2:], short.repeat_interleave(2, dim=0))
        assert torch.equal(mine[4:], long.repeat_interleave(2, dim=0))
    assert cache.update(*tokens(6, 1, 3), 0)[0].shape[2] == 6
