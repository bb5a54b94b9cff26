"""Completions of one prompt share its computation, where the base allows it.

While they are sampled, they attend to one copy of its keys and values (`SharedPrefix`); in an
update it stands once before them (`micro_batches.py`). Without the one a step of the nano base
takes 15% longer, without the other 12%. On a CPU only, where that is most of a new token's cost,
and for bases whose layers all attend to all of the past.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from azr_population.engines.engine import Completion, TrainingSample
from azr_population.engines.micro_batches import PromptGroup, collate
from azr_population.engines.sharding import is_shared_out

_NAME = "azr_population_sdpa"

_TOLERANCE = {torch.float32: 1e-3, torch.float16: 0.1, torch.bfloat16: 0.5}
"""Nats by which log-probabilities may differ for rounding; a token unseen changes far more."""

_current: ContextVar["SharedPrefix | None"] = ContextVar("shared_prefix", default=None)
_tried: WeakKeyDictionary[nn.Module, bool] = WeakKeyDictionary()


def use_shared_attention(model: Any) -> None:
    """Makes a model that attends by `sdpa` see a `SharedPrefix`; nothing else changes."""
    from transformers import AttentionInterface
    from transformers.integrations.sdpa_attention import sdpa_attention_forward
    from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

    def attention(
        module: nn.Module, query: Tensor, keys: Tensor, values: Tensor, *rest: Any, **options: Any
    ) -> tuple[Tensor, None]:
        prefix = _current.get()
        if prefix is None:
            output: tuple[Tensor, None] = sdpa_attention_forward(
                module, query, keys, values, *rest, **options
            )
            return output
        layer: int = module.layer_idx  # type: ignore[assignment]
        return prefix.attention(layer, query, keys, values, options.get("scaling")), None

    if getattr(model.config, "_attn_implementation", None) == "sdpa":
        AttentionInterface.register(_NAME, attention)
        AttentionMaskInterface.register(_NAME, sdpa_mask)
        model.config._attn_implementation = _NAME


class SharedPrefix:
    """The prompts' keys and values by layer, for `repeats` rows of each, one after the other."""

    def __init__(self, cache: Any, padding: Tensor, repeats: int) -> None:
        """`cache` is transformers' of the prompts; `padding` [prompts, width] is 0 where a prompt
        has no token."""
        # transformers 5 has more than keys and values [prompts, kv_heads, width, dim].
        self._layers: list[tuple[Tensor, Tensor]] = [(layer[0], layer[1]) for layer in cache]
        self._repeats = repeats
        keys = self._layers[0][0]
        hidden = torch.zeros(padding.shape, dtype=keys.dtype, device=keys.device)
        hidden.masked_fill_(padding == 0, -torch.inf)
        self._hidden = hidden.repeat_interleave(repeats, dim=0)[:, None, None]
        self._places: Tensor | None = None
        """Of each row among prompts * repeats; None while all of them are there."""

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


def shares_prompts(model: Any) -> bool:
    """Whether it does; a base is tried on a few tokens when it is first asked for."""
    if model not in _tried:
        _tried[model] = (
            getattr(model.config, "_attn_implementation", None) == _NAME
            # Its weights can be gathered for passes that all ranks make, and not in this mode.
            and not is_shared_out(model)
            and _attends_to_all(model.config.get_text_config())
            and _agrees(model)
        )
    return _tried[model]


def _attends_to_all(config: Any) -> bool:
    """Whether every layer attends to all that came before."""
    if kinds := getattr(config, "layer_types", None):
        return set(kinds) == {"full_attention"}
    return getattr(config, "sliding_window", None) is None


@torch.inference_mode()
def _agrees(model: Any) -> bool:
    """Whether completions that share a prompt get the log-probabilities that they get alone."""
    from transformers import DynamicCache

    weight = next(model.parameters())
    ids = torch.arange(5, 17) % model.config.get_text_config().vocab_size
    prompt, answers = ids[:6].to(weight.device), ids[6:].view(2, 3).to(weight.device)
    rows = torch.cat([prompt.expand(2, -1), answers], dim=1)
    alone = _log_probs(model, input_ids=rows)[:, 5:]

    samples = tuple(
        TrainingSample(Completion(0, tuple(prompt.tolist()), tuple(answer), (0.0,) * 3, True), 1.0)
        for answer in answers.tolist()
    )
    batch = collate([PromptGroup(samples)], weight.device, share=True)
    laid_out = _log_probs(
        model,
        input_ids=batch.input_ids,
        attention_mask=batch.mask,
        position_ids=batch.positions,
    )
    together = laid_out[0, 5:].view(2, 4, -1)

    prompts, cache = DynamicCache(), DynamicCache()
    first = _log_probs(model, input_ids=prompt[None], past_key_values=prompts, use_cache=True)
    prefix = SharedPrefix(prompts, torch.ones_like(prompt[None]), 2)
    sampled = [first[:, -1].expand(2, -1)]
    for column in range(3):
        with prefix.attended():
            logprobs = _log_probs(
                model,
                input_ids=answers[:, column, None],
                position_ids=torch.full_like(answers[:, :1], 6 + column),
                past_key_values=cache,
                use_cache=True,
            )
        sampled.append(logprobs[:, -1])
    off = max(
        float((other - alone).abs().max()) for other in (together, torch.stack(sampled, dim=1))
    )
    # NaN is no agreement.
    return off <= _TOLERANCE[weight.dtype]


def _log_probs(model: Any, **arguments: Any) -> Tensor:
    logits: Tensor = model(**arguments).logits
    return torch.log_softmax(logits.float(), dim=-1)
