"""Scaled dot-product attention that leaves keys and values where the cache keeps them.

transformers' own `sdpa` makes them contiguous first, which copies the whole cache for every token.
With grouped queries, torch's kernel also reads (in bfloat16: converts) a key-value head once for
each of its query heads. One new token's query heads of a group are therefore passed as so many
tokens of one head: five times faster in bfloat16 with three heads a group.

`SharedPrefix`: several completions attend to the prompt that they share, which is kept and read
once. At the nano base reading a copy of it for each completion is most of what a new token costs.
What a query makes of the prompt and of its own completion are put together by their log-sum-exps,
which is the softmax over both. CPU only, and bases whose layers all attend to all of the past.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

_NAME = "azr_population_sdpa"
_KERNEL = "_scaled_dot_product_flash_attention_for_cpu"
"""torch's public attention does not tell the log-sum-exp on a CPU."""

_current: ContextVar["SharedPrefix | None"] = ContextVar("shared_prefix", default=None)


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
    if (prefix := _current.get()) is not None:
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


def attends_to_all(config: Any) -> bool:
    """Whether every layer of a base of this configuration attends to all that came before."""
    config = config.get_text_config() if hasattr(config, "get_text_config") else config
    kinds = getattr(config, "layer_types", None)
    if kinds:
        return set(kinds) == {"full_attention"}
    return getattr(config, "sliding_window", None) is None


def has_kernel() -> bool:
    """Whether this torch has the attention that is needed here."""
    return hasattr(torch.ops.aten, _KERNEL)


class SharedPrefix:
    """The prompts' keys and values [prompts, kv_heads, width, dim] by layer, for `repeats` rows of
    each prompt, one after the other."""

    def __init__(
        self, layers: dict[int, tuple[Tensor, Tensor]], padding: Tensor, repeats: int
    ) -> None:
        """`padding` [prompts, width] is 0 where a prompt has no token."""
        self._layers = layers
        self._repeats = repeats
        keys, _ = layers[0]
        self._mask = torch.zeros(padding.shape, dtype=keys.dtype, device=keys.device)
        self._mask.masked_fill_(padding == 0, -torch.inf)
        self._places: Tensor | None = None
        """Of each row among prompts * repeats; None while all of them are there."""

    def keep(self, rows: Tensor) -> None:
        """Only these rows go on, in ascending order; a prompt without any is dropped."""
        places = rows if self._places is None else self._places[rows]
        prompts, of_row = torch.unique_consecutive(
            places.div(self._repeats, rounding_mode="floor"), return_inverse=True
        )
        self._places = of_row * self._repeats + places % self._repeats
        if len(prompts) < len(self._mask):
            self._mask = self._mask[prompts]
            self._layers = {
                layer: (keys[prompts], values[prompts])
                for layer, (keys, values) in self._layers.items()
            }

    @contextmanager
    def attended(self) -> Iterator[None]:
        """Inside, the model's rows attend to their prompts first."""
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)

    def attention(
        self, layer: int, query: Tensor, keys: Tensor, values: Tensor, scaling: float | None
    ) -> Tensor:
        """Attention of `query` [rows, heads, 1, dim] to the rows' prompts and to their own `keys`
        and `values` [rows, kv_heads, tokens, dim]; of the query's shape."""
        rows, heads, _, dim = query.shape
        kv_heads = keys.shape[1]
        answer, answer_weight = _attention(
            query.view(rows, kv_heads, heads // kv_heads, dim), keys, values, None, scaling
        )
        prompt, prompt_weight = self._of_prompts(layer, query[:, :, 0], scaling)
        answer, answer_weight = answer.reshape(rows, heads, dim), answer_weight.reshape(rows, heads)
        # Their shares of the softmax's sum.
        share = torch.sigmoid(prompt_weight - answer_weight).unsqueeze(2).to(answer.dtype)
        return torch.lerp(answer, prompt, share).unsqueeze(2)

    def _of_prompts(
        self, layer: int, query: Tensor, scaling: float | None
    ) -> tuple[Tensor, Tensor]:
        """(output [rows, heads, dim], log-sum-exps [rows, heads]) for query [rows, heads, dim]."""
        keys, values = self._layers[layer]
        prompts, kv_heads, _, dim = keys.shape
        if self._places is not None:
            query = query.new_zeros(prompts * self._repeats, *query.shape[1:]).index_copy_(
                0, self._places, query
            )
        # A prompt's queries as so many tokens of one head.
        together = query.reshape(prompts, self._repeats, kv_heads, -1, dim).transpose(1, 2)
        shape = together.shape
        output, weight = _attention(
            together.reshape(prompts, kv_heads, -1, dim), keys, values, self._mask, scaling
        )
        output = output.reshape(shape).transpose(1, 2).reshape(query.shape)
        weight = weight.reshape(shape[:-1]).transpose(1, 2).reshape(query.shape[:-1])
        if self._places is not None:
            output, weight = output[self._places], weight[self._places]
        return output, weight


def _attention(
    query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, scaling: float | None
) -> tuple[Tensor, Tensor]:
    """(output, float32 log-sum-exps [batch, heads, tokens]); `mask` [batch, keys] is added."""
    if mask is not None:
        mask = mask[:, None, None].expand(-1, 1, query.shape[2], -1)
    output, weight = getattr(torch.ops.aten, _KERNEL)(
        query, keys, values, attn_mask=mask, scale=scaling
    )
    return output, weight
