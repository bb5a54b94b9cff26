import pytest
import torch
from transformers import masking_utils
from transformers.masking_utils import causal_mask_function, sdpa_mask

from azr_population.engines.attention import causal_mask

PADDING = torch.tensor([[0, 0, 1, 1, 1, 1], [0, 1, 1, 1, 1, 1]], dtype=torch.bool)
SLIDING = masking_utils.sliding_window_causal_mask_function(2)


def arguments(queries, padding, function):
    """What the installed transformers hands to a mask's maker."""
    made = {"batch_size": 2, "kv_length": 6, "kv_offset": 0, "mask_function": function}
    places = torch.arange(6 - queries, 6)
    new = {"q_length": queries, "q_offset": 6 - queries}
    old = {"cache_position": places}
    takes = sdpa_mask.__code__.co_varnames[: sdpa_mask.__code__.co_argcount]
    return made | (new if "q_length" in takes else old) | {"attention_mask": padding}


@pytest.mark.parametrize("queries", [1, 3, 6])
@pytest.mark.parametrize("function", [causal_mask_function, SLIDING], ids=["causal", "sliding"])
@pytest.mark.parametrize("padding", [PADDING, PADDING | True, None], ids=["left", "none", "empty"])
def test_masks_are_transformers_own(queries, function, padding):
    given = arguments(queries, padding, function)
    ours, theirs = causal_mask(**given), sdpa_mask(**given)
    assert (ours is None) == (theirs is None)
    if theirs is not None:
        assert torch.equal(ours, theirs.expand_as(ours))
