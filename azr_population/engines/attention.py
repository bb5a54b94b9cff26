"""Scaled dot-product attention that leaves keys and values where the cache keeps them.

transformers' own `sdpa` makes them contiguous first, which copies the whole cache for every token.
With grouped queries, torch's kernel also reads (in bfloat16: converts) a key-value head once for
each of its query heads. One new token's query heads of a group are therefore passed as so many
tokens of one head: five times faster in bfloat16 with three heads a group.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from azr_population.engines import shared_prefix

_NAME = "azr_population_sdpa"


def use_strided_attention(model: Any) -> None:
    """Makes the model attend through `strided_attention`, where it uses `sdpa` now."""
    from transformers import AttentionInterface

    if getattr(model.config, "_attn_implementation", None) != "sdpa":
        return
    AttentionInterface.register(_NAME, strided_attention)
    try:
        from transformers.masking_utils import AttentionMaskInterface
    except ImportError:
        # Before 4.53 the models built their masks themselves, of a kind that suits us too.
        pass
    else:
        AttentionMaskInterface.register(_NAME, causal_mask)
    model.config._attn_implementation = _NAME


def is_strided(model: Any) -> bool:
    """Whether `use_strided_attention` has changed the model."""
    return getattr(model.config, "_attn_implementation", None) == _NAME


def causal_mask(
    *,
    kv_length: int,
    mask_function: Any = None,
    attention_mask: Tensor | None = None,
    **how: Any,
) -> Tensor | None:
    """The mask [rows, 1, queries, kv_length] that transformers' `sdpa_mask` makes of a padding mask
    [rows, kv_length], and with None where it leaves the mask out. transformers 4.53 calls the
    mask's function through nested vmaps, which a small base's forward feels."""
    from transformers.masking_utils import causal_mask_function, sdpa_mask

    ours = mask_function is causal_mask_function and not how.get("kv_offset")
    if not ours or attention_mask is None or bool(attention_mask.all()):
        return sdpa_mask(
            kv_length=kv_length,
            mask_function=mask_function or causal_mask_function,
            attention_mask=attention_mask,
            **how,
        )
    keys = torch.arange(kv_length, device=attention_mask.device)
    # transformers 4 gives the queries' places, transformers 5 how many and from where.
    queries = how.get("cache_position")
    if queries is None:
        queries = torch.arange(how["q_length"], device=keys.device) + how.get("q_offset", 0)
    padding = attention_mask[:, None, None, :kv_length].bool()
    return padding & (keys <= queries[:, None])


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
    if (prefix := shared_prefix.current()) is not None:
        layer: int = module.layer_idx  # type: ignore[assignment]
        output = prefix.attention(layer, query, key, value, scaling)
        return output.transpose(1, 2).contiguous(), None
    shape = query.shape
    grouped = key.shape[1] != shape[1]
    alike = attention_mask is None or attention_mask.shape[1] == 1
    if grouped and alike and shape[2] == 1:
        query = query.reshape(shape[0], key.shape[1], -1, shape[3])
    output = F.scaled_dot_product_attention(
        query,
        key,
        value,
        attn_mask=attention_mask,
        dropout_p=dropout,
        scale=scaling,
        is_causal=causal and attention_mask is None and shape[2] > 1,
        enable_gqa=key.shape[1] != query.shape[1],
    )
    return output.reshape(shape).transpose(1, 2).contiguous(), None
