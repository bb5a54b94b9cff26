"""Scaled dot-product attention that leaves keys and values where the cache keeps them.

transformers' own `sdpa` makes them contiguous first, which copies the whole cache for every token.
"""

from __future__ import annotations

from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

_NAME = "azr_population_sdpa"


def use_strided_attention(model: Any) -> None:
    """Makes the model attend through `strided_attention`, where it uses `sdpa` now."""
    from transformers import AttentionInterface

    if getattr(model.config, "_attn_implementation", None) != "sdpa":
        return
    AttentionInterface.register(_NAME, strided_attention)
    try:
        from transformers.masking_utils import AttentionMaskInterface, sdpa_mask
    except ImportError:
        # Before 4.53 the models built their masks themselves, of a kind that suits us too.
        pass
    else:
        AttentionMaskInterface.register(_NAME, sdpa_mask)
    model.config._attn_implementation = _NAME


def strided_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    is_causal: bool | None = None,
    **ignored: Any,
) -> tuple[Tensor, None]:
    """Attention over query [rows, heads, tokens, dim], key and value [rows, kv_heads, past, dim].

    Returns [rows, tokens, heads, dim] and None, as transformers' attention functions do.
    """
    causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
    if attention_mask is not None:
        attention_mask = attention_mask[..., : key.shape[-2]]
    output = F.scaled_dot_product_attention(
        query,
        key,
        value,
        attn_mask=attention_mask,
        dropout_p=dropout,
        scale=scaling,
        is_causal=causal and attention_mask is None and query.shape[2] > 1,
        enable_gqa=key.shape[1] != query.shape[1],
    )
    return output.transpose(1, 2).contiguous(), None
