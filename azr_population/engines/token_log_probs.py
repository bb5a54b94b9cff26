"""Log-probabilities of given tokens, without the logits of all of them in memory at once.

At a vocabulary of 152 thousand the logits of 8,096 tokens and what is made of them take 18 bytes a
number, 22 GB. From `MAX_LOGITS` logits on, the output head therefore answers with log-probabilities
in place of logits: piece by piece, and each piece's gradient by the hidden states is worked out
beside it (the base is frozen, so there is no other). No pass is made twice.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from azr_population.engines.micro_batches import MicroBatch

MAX_LOGITS = 1 << 27
"""Logits at once. What is made of them takes 14 bytes each at the peak in bfloat16: 1.9 GB."""

_AFTER_THE_HEAD = ("final_logit_softcapping", "logit_scale", "logits_scaling")
"""Fields of configurations of models that change logits after their head: Gemma, Cohere,
Granite."""


def token_log_probs(model: nn.Module, batch: MicroBatch) -> tuple[Tensor, Tensor]:
    """The log-probability of each completion's token of the batch, given what stands before it, by
    a causal LM whose weights are frozen, and the entropy there (without gradients), in nats: two
    float32 tensors [tokens], row by row."""
    # Logits only from the first completion token on.
    first, width = int(batch.completion.any(dim=0).nonzero()[0]), batch.input_ids.shape[1]
    columns = torch.arange(first - 1, width - 1, device=batch.input_ids.device)
    scored = batch.completion[:, columns + 1]
    targets = batch.input_ids[:, columns + 1][scored]
    head = _head(model)
    arguments = {
        "input_ids": batch.input_ids,
        "attention_mask": batch.mask,
        "use_cache": False,
        "logits_to_keep": columns,
    }
    if batch.positions is not None:
        arguments["position_ids"] = batch.positions
    if head is None or scored.numel() * head.out_features <= MAX_LOGITS:
        logits = model(**arguments).logits[scored].float()
        every = torch.log_softmax(logits, dim=-1)
        chosen = every.gather(-1, targets.unsqueeze(1)).squeeze(1)
        with torch.no_grad():
            return chosen, -(every.exp() * every).sum(dim=-1)
    with _answering(head, scored, targets):
        both = model(**arguments).logits
    return both[0], both[1].detach()


def _head(model: nn.Module) -> nn.Linear | None:
    """The output head, where log-probabilities can be made of it alone."""
    head = getattr(model, "get_output_embeddings", lambda: None)()
    config: Any = getattr(model, "config", None)
    of_text = config.get_text_config() if hasattr(config, "get_text_config") else config
    changed = any(
        getattr(each, name, None) not in (None, 1, 1.0)
        for each in (config, of_text)
        for name in _AFTER_THE_HEAD
    )
    if changed or not isinstance(head, nn.Linear):
        return None
    # A subclass has weights of another kind (quantised); a hook is a member's update.
    plain = type(head).forward is nn.Linear.forward and not head._forward_hooks
    return head if plain else None


@contextmanager
def _answering(head: nn.Linear, scored: Tensor, targets: Tensor) -> Iterator[None]:
    """Inside, the head returns [2, tokens]: log-probabilities of `targets`, and entropies."""
    pieces = max(1, MAX_LOGITS // head.out_features)

    def forward(hidden: Tensor) -> Tensor:
        both = _Scored.apply(hidden[scored], head.weight, head.bias, targets, pieces)
        return torch.stack(both)

    head.forward = forward  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        del head.forward


class _Scored(torch.autograd.Function):
    """(log-probabilities of targets [n], entropies [n]) of softmax(hidden weight' + bias)."""

    @staticmethod
    def forward(
        context: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        n: int,
    ) -> tuple[Tensor, Tensor]:
        learns = context.needs_input_grad[0]
        parts: tuple[list[Tensor], ...] = ([], [], [])
        for piece, tokens in zip(hidden.split(n), targets.split(n), strict=True):
            every = F.linear(piece, weight, bias).float()
            every -= every.logsumexp(dim=-1, keepdim=True)
            probabilities = every.exp()
            parts[0].append(every.gather(-1, tokens.unsqueeze(1)).squeeze(1))
            parts[1].append(-torch.einsum("tv,tv->t", probabilities, every))
            del every
            if learns:
                probabilities.neg_()
                ones = torch.ones_like(probabilities[:, :1])
                slopes = probabilities.scatter_add_(-1, tokens.unsqueeze(1), ones)
                parts[2].append(slopes.to(weight.dtype) @ weight)
                del slopes
            # Or it would be there beside the next piece's logits.
            del probabilities
        if learns:
            context.save_for_backward(torch.cat(parts[2]))
        entropies = torch.cat(parts[1])
        context.mark_non_differentiable(entropies)
        return torch.cat(parts[0]), entropies

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (slopes,) = context.saved_tensors
        by_hidden = (gradients[0].unsqueeze(1) * slopes).to(slopes.dtype)
        return by_hidden, None, None, None, None
