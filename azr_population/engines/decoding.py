"""Batched sampling with a KV cache, any number of members in one batch.

Rows that are done leave the batch, so a step costs what is still being written. Not covered: beam
search, stop strings, and serving requests as they arrive.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from azr_population.adapters.bank import Bank
from azr_population.engines.engine import Sampling

# Rows are taken out of the batch when at most this share of it is still being written: moving the
# cache costs about as much as one decoding step.
_COMPACT_AT = 0.75

# Tokens of the prompts that go through the model at once. What a layer makes of them is far larger
# than what it leaves in the cache: at a 7B base 12 GB for these.
_PREFILL_TOKENS = 32_768

# New tokens that the cache has room for at once; longer completions make it move now and then.
_ROOM = 256


@dataclass
class Decoded:
    """One row's new tokens, each with its log-probability at temperature 1."""

    token_ids: list[int]
    logprobs: list[float]
    finished: bool


@torch.inference_mode()
def decode(
    model: nn.Module,
    bank: Bank,
    prompts: Sequence[Sequence[int]],
    slots: Sequence[int],
    limits: Sequence[int],
    sampling: Sampling,
    stop_ids: frozenset[int],
    uniforms: Tensor,
) -> list[list[Decoded]]:
    """Samples `sampling.n` continuations of each prompt (token ids) by the member in its place, of
    at most `limits` tokens each. `uniforms` [rows * n, tokens] in [0, 1) decide what is drawn.

    `slots` must ascend, because the bank routes contiguous runs of rows.
    """
    # Imported late: transformers takes seconds, and `--help` must not.
    from azr_population.engines.kv_cache import GrowingCache

    device = next(model.parameters()).device
    input_ids, mask = _left_padded(prompts, device)
    routes = torch.tensor(slots, device=device)
    uniforms = uniforms.to(device)
    ends = torch.tensor(limits, device=device).repeat_interleave(sampling.n)
    cache = GrowingCache(input_ids.shape[1] + min(max(limits), _ROOM))
    columns = max(1, _PREFILL_TOKENS // len(prompts))
    with bank.routed_or_bare(routes):
        for start in range(0, input_ids.shape[1], columns):
            stop = min(start + columns, input_ids.shape[1])
            logits = _forward(model, input_ids[:, start:stop], mask[:, :stop], cache)
    if sampling.n > 1:
        cache.batch_repeat_interleave(sampling.n)
        logits = logits.repeat_interleave(sampling.n, dim=0)
        mask = mask.repeat_interleave(sampling.n, dim=0)
        routes = routes.repeat_interleave(sampling.n)

    rows = [Decoded([], [], False) for _ in range(len(prompts) * sampling.n)]
    alive = torch.arange(len(rows), device=device)
    """For each row of the batch, its place in `rows`; finished rows stay until compaction."""
    running = torch.ones(len(rows), dtype=torch.bool, device=device)
    stops = torch.tensor(sorted(stop_ids), device=device)
    for step in range(max(limits)):
        tokens, logprobs = sample_tokens(logits, sampling, uniforms[alive, step])
        stopped = torch.isin(tokens, stops)
        for place, token, logprob, on, stop in zip(
            alive.tolist(),
            tokens.tolist(),
            logprobs.tolist(),
            running.tolist(),
            stopped.tolist(),
            strict=True,
        ):
            if on:
                rows[place].token_ids.append(token)
                rows[place].logprobs.append(logprob)
                rows[place].finished = stop
        running &= ~stopped & (step + 1 < ends)
        count = int(running.sum())
        if count == 0:
            break
        if count <= _COMPACT_AT * len(running):
            kept = running.nonzero().squeeze(1)
            cache.batch_select_indices(kept)
            tokens, mask, routes, alive = tokens[kept], mask[kept], routes[kept], alive[kept]
            running, ends = running[kept], ends[kept]
        mask = torch.cat([mask, mask.new_ones(len(mask), 1)], dim=1)
        with bank.routed_or_bare(routes):
            logits = _forward(model, tokens.unsqueeze(1), mask, cache)
    return [rows[i * sampling.n : (i + 1) * sampling.n] for i in range(len(prompts))]


def sample_tokens(logits: Tensor, sampling: Sampling, uniforms: Tensor) -> tuple[Tensor, Tensor]:
    """One token per row of `logits[rows, vocabulary]`, and its log-probability at temperature 1.

    `uniforms` [rows] in [0, 1) choose by the inverse of the cumulative distribution.
    """
    log_probabilities = torch.log_softmax(logits.float(), dim=-1)
    if sampling.temperature == 0:
        tokens = log_probabilities.argmax(dim=-1)
    else:
        probabilities = torch.softmax(log_probabilities / sampling.temperature, dim=-1)
        if sampling.top_p < 1:
            ordered, order = probabilities.sort(dim=-1, descending=True)
            # A token stays while the mass before it is below top_p, so the first always stays.
            ordered[ordered.cumsum(dim=-1) - ordered >= sampling.top_p] = 0
            probabilities = torch.zeros_like(probabilities).scatter(-1, order, ordered)
        mass = probabilities.cumsum(dim=-1)
        # The first token whose mass reaches beyond the number; one without mass never is.
        wanted = (uniforms * mass[:, -1]).unsqueeze(1)
        tokens = torch.searchsorted(mass, wanted, right=True).squeeze(1)
        # A number next to 1 can round up to all of the mass.
        tokens = torch.where(tokens < mass.shape[1], tokens, probabilities.argmax(dim=-1))
    return tokens, log_probabilities.gather(-1, tokens.unsqueeze(1)).squeeze(1)


def _forward(model: nn.Module, input_ids: Tensor, mask: Tensor, cache: Any) -> Tensor:
    """Logits[rows, vocabulary] after the last token; the cache grows in place."""
    positions = (mask.cumsum(dim=1) - 1).clamp(min=0)[:, -input_ids.shape[1] :]
    output = model(
        input_ids=input_ids,
        attention_mask=mask,
        position_ids=positions,
        past_key_values=cache,
        use_cache=True,
        logits_to_keep=1,
    )
    return output.logits[:, -1]


def _left_padded(prompts: Sequence[Sequence[int]], device: torch.device) -> tuple[Tensor, Tensor]:
    width = max(len(prompt) for prompt in prompts)
    input_ids = torch.zeros(len(prompts), width, dtype=torch.long)
    mask = torch.zeros(len(prompts), width, dtype=torch.long)
    for row, prompt in enumerate(prompts):
        input_ids[row, width - len(prompt) :] = torch.tensor(prompt)
        mask[row, width - len(prompt) :] = 1
    return input_ids.to(device), mask.to(device)
