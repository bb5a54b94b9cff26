"""Attention of several completions to the prompt that they share, which is kept and read once.

At the nano base reading a copy of the prompt for each completion is most of what a new token costs.
What a query makes of the prompt and what it makes of its own completion are put together by their
log-sum-exps, which is the softmax over both.

CPU only, and bases whose layers all attend to all of the past.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor

_KERNEL = "_scaled_dot_product_flash_attention_for_cpu"
"""torch's public attention does not tell the log-sum-exp on a CPU."""

_current: ContextVar["SharedPrefix | None"] = ContextVar("shared_prefix", default=None)


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
        self._asked: set[int] = set()

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
        """Inside, the model's rows attend to their prompts first. Raises RuntimeError where one of
        its layers did not: its attention does not go through ours."""
        self._asked.clear()
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)
        if self._asked != self._layers.keys():
            raise RuntimeError(
                f"{len(self._asked)} of {len(self._layers)} layers attended to the shared prompt"
            )

    def attention(
        self, layer: int, query: Tensor, keys: Tensor, values: Tensor, scaling: float | None
    ) -> Tensor:
        """Attention of `query` [rows, heads, 1, dim] to the rows' prompts and to their own `keys`
        and `values` [rows, kv_heads, tokens, dim]; of the query's shape."""
        self._asked.add(layer)
        rows, heads, _, dim = query.shape
        kv_heads = keys.shape[1]
        own, own_weight = _attention(
            query.view(rows, kv_heads, heads // kv_heads, dim), keys, values, None, scaling
        )
        prompt, prompt_weight = self._of_prompts(layer, query[:, :, 0], scaling)
        own, own_weight = own.reshape(rows, heads, dim), own_weight.reshape(rows, heads)
        # Their shares of the softmax's sum.
        share = torch.sigmoid(prompt_weight - own_weight).unsqueeze(2).to(own.dtype)
        return torch.lerp(own, prompt, share).unsqueeze(2)

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


def current() -> SharedPrefix | None:
    """What the rows that go through the model now share."""
    return _current.get()


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
