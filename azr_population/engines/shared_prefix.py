"""Completions of one prompt share its computation, where the base allows it.

While they are sampled, they attend to one copy of its keys and values (`SharedPrefix`); in an
update it stands once before them (`micro_batches.py`). Without the one a step of the nano base
takes 15% longer, without the other 12%. On a CPU only, where that is most of a new token's cost,
and for bases whose layers all attend to all of the past (`torch_rollout.shares_prompts`).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

_NAME = "azr_population_sdpa"

_current: ContextVar["SharedPrefix | None"] = ContextVar("shared_prefix", default=None)


def use_own_attention(model: Any) -> None:
    """Makes a model that attends by `sdpa` see a `SharedPrefix`, and attend with one token a row
    without a copy of keys and values for each head that asks. In this process torch does not
    attend by cuDNN from then on."""
    from transformers import AttentionInterface
    from transformers.integrations.sdpa_attention import sdpa_attention_forward
    from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

    def attention(
        module: nn.Module, query: Tensor, keys: Tensor, values: Tensor, *rest: Any, **options: Any
    ) -> tuple[Tensor, None]:
        prefix, scaling = _current.get(), options.get("scaling")
        if prefix is not None:
            layer: int = module.layer_idx  # type: ignore[assignment]
            return prefix.attention(layer, query, keys, values, scaling), None
        if query.shape[2] == 1:
            mask = rest[0] if rest else options.get("attention_mask")
            return _grouped(query, keys, values, mask, scaling), None
        output: tuple[Tensor, None] = sdpa_attention_forward(
            module, query, keys, values, *rest, **options
        )
        return output

    # cuDNN compiles a kernel for each number of tokens: 65 ms in every decoding step (H100).
    torch.backends.cuda.enable_cudnn_sdp(False)
    if getattr(model.config, "_attn_implementation", None) == "sdpa":
        AttentionInterface.register(_NAME, attention)
        AttentionMaskInterface.register(_NAME, sdpa_mask)
        model.config._attn_implementation = _NAME


def _grouped(
    query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, scaling: float | None
) -> Tensor:
    """Attention of `query` [rows, heads, 1, dim] to `keys` and `values` [rows, kv_heads, tokens,
    dim]: [rows, 1, heads, dim]. Query heads of a key-value head are as many tokens of it."""
    rows, heads, _, dim = query.shape
    asked = query.reshape(rows, keys.shape[1], -1, dim)
    mask = None if mask is None else mask[..., : keys.shape[2]]
    output = scaled_dot_product_attention(asked, keys, values, attn_mask=mask, scale=scaling)
    return output.reshape(rows, 1, heads, dim)


class SharedPrefix:
    """The prompts' keys and values by layer, for `repeats` rows of each, one after the other."""

    def __init__(self, cache: Any, padding: Tensor, repeats: int) -> None:
        """`cache` is the prompts'; `padding` bool [prompts, width] is where they have no token."""
        self._layers: list[tuple[Tensor, Tensor]] = list(cache)
        """[prompts, kv_heads, width, dim]"""
        self._repeats = repeats
        keys = self._layers[0][0]
        hidden = torch.zeros(padding.shape, dtype=keys.dtype, device=keys.device)
        hidden.masked_fill_(padding, -torch.inf)
        self._hidden = hidden.repeat_interleave(repeats, dim=0)[:, None, None]
        self._places: Tensor | None = None
        """Index of each row among prompts * repeats; None while all of them are there."""

    def keep(self, rows: Tensor) -> None:
        """Only these rows go on, in ascending order; a prompt without any is dropped."""
        places = rows if self._places is None else self._places[rows]
        prompts, of_row = torch.unique_consecutive(
            places.div(self._repeats, rounding_mode="floor"), return_inverse=True
        )
        self._places = of_row * self._repeats + places % self._repeats
        self._hidden = self._hidden[rows]
        if len(prompts) < len(self._layers[0][0]):
            self._layers = [(keys[prompts], values[prompts]) for keys, values in self._layers]

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
        and `values` [rows, kv_heads, tokens, dim]: [rows, 1, heads, dim]."""
        rows, heads, _, dim = query.shape
        prompt_keys, prompt_values = self._layers[layer]
        width = prompt_keys.shape[2]
        # Query heads of a key-value head as so many tokens of it.
        query = query.view(rows, keys.shape[1], -1, dim) * (scaling or dim**-0.5)
        before = self._product(query, prompt_keys.mT) + self._hidden
        scores = torch.cat([before, query @ keys.mT], dim=-1)
        shares = scores.softmax(dim=-1, dtype=torch.float32).to(values.dtype)
        output = self._product(shares[..., :width], prompt_values) + shares[..., width:] @ values
        return output.reshape(rows, 1, heads, dim)

    def _product(self, by_row: Tensor, by_prompt: Tensor) -> Tensor:
        """Each row's matrix by that of its prompt, which is read once for all its rows."""
        prompts, kv_heads, inner, outer = by_prompt.shape
        groups = by_row.shape[2]
        if self._places is not None:
            every = by_row.new_zeros(prompts * self._repeats, *by_row.shape[1:])
            by_row = every.index_copy_(0, self._places, by_row)
        together = by_row.reshape(prompts, self._repeats, kv_heads, groups, inner).transpose(1, 2)
        product = together.reshape(prompts, kv_heads, -1, inner) @ by_prompt
        product = product.view(prompts, kv_heads, self._repeats, groups, outer).transpose(1, 2)
        product = product.reshape(-1, kv_heads, groups, outer)
        return product if self._places is None else product[self._places]


def attends_to_all(model: Any) -> bool:
    """Whether a model attends by `SharedPrefix`, every layer to all that came before."""
    config = model.config.get_text_config()
    if kinds := getattr(config, "layer_types", None):
        whole = set(kinds) == {"full_attention"}
    else:
        whole = getattr(config, "sliding_window", None) is None
    return whole and getattr(model.config, "_attn_implementation", None) == _NAME
