"""Batched sampling with a KV cache, any number of members in one batch.

Finished rows leave the batch, so a decoding step costs only the rows that are still running. Not
covered: beam search, stop strings, and serving requests as they arrive.
"""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from azr_population.engines.engine import Sampling
from azr_population.engines.shared_prefix import SharedPrefix, shares_prompts
from azr_population.errors import UserError
from azr_population.weights.bank import Bank

# Rows are taken out of the batch when at most this share of it is still being written: moving the
# cache costs about as much as one decoding step.
_COMPACT_AT = 0.75

# Tokens of the prompts that go through the model at once. What a layer makes of them is far larger
# than what it leaves in the cache: at a 7B base 12 GB for these.
_PREFILL_TOKENS = 32_768

# Tokens that cost about what another pass of a small base costs, on GPUs and on CPUs: so much
# padding is worth avoiding (6% of a step of the nano base).
_PASS_TOKENS = (4096, 48)


@dataclass
class Decoded:
    """One row's new tokens, each with its log-probability (see `Sampling`)."""

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
    share: bool = True,
) -> list[list[Decoded]]:
    """Samples `sampling.n` continuations of each prompt (token ids) by the member in its place, of
    at most `limits` tokens each. `uniforms` [rows * n, tokens] in [0, 1) decide what is drawn.

    `slots` must ascend, because the bank routes contiguous runs of rows. Factors may be applied in
    the base's dtype (`Bank.adapters_active`), so with a base in bfloat16 a token's log-probability
    is the sampler's; the learner's own, which `log_probs` and an update compute, are from float32
    factors.
    """
    # Imported late: transformers takes seconds, and `--help` must not.
    from transformers import DynamicCache

    share = share and sampling.n > 1 and shares_prompts(model)
    device, dtype = next((weight.device, weight.dtype) for weight in model.parameters())
    routes = torch.tensor(slots, device=device)
    uniforms = uniforms.to(device)
    ends = torch.tensor(limits, device=device).repeat_interleave(sampling.n)
    temperatures = None
    if isinstance(sampling.temperature, tuple):
        temperatures = torch.tensor(sampling.temperature, device=device)
        temperatures = temperatures.repeat_interleave(sampling.n)
    longest = max(limits)
    logits, mask, cache = _read(model, bank, prompts, routes, dtype)
    width = mask.shape[1]
    positions = mask.sum(dim=1, keepdim=True) - 1
    prefix = None
    if share:
        prefix, width = SharedPrefix(cache, mask, sampling.n), 0
        cache = DynamicCache()
        mask = mask[:, :0]
    mask = torch.cat([mask, mask.new_ones(len(mask), longest)], dim=1)
    if sampling.n > 1:
        if not share:
            cache.batch_repeat_interleave(sampling.n)
        logits = logits.repeat_interleave(sampling.n, dim=0)
        mask = mask.repeat_interleave(sampling.n, dim=0)
        positions = positions.repeat_interleave(sampling.n, dim=0)
        routes = routes.repeat_interleave(sampling.n)

    written = _Written(len(ends), longest, device)
    alive = torch.arange(len(ends), device=device)
    """For each row of the batch, its place in `written`; finished rows stay until compaction."""
    running = torch.ones(len(ends), dtype=torch.bool, device=device)
    stops = torch.tensor(sorted(stop_ids), device=device)
    for step in range(longest):
        own = None if temperatures is None else temperatures[alive]
        tokens, logprobs = sample_tokens(logits, sampling, uniforms[alive, step], own)
        stopped = torch.isin(tokens, stops)
        written.add(step, alive, tokens, logprobs, running, stopped)
        running = running & ~stopped & (step + 1 < ends)
        count = int(running.sum())
        if count == 0:
            break
        if count <= _COMPACT_AT * len(running):
            left = running.nonzero().squeeze(1)
            cache.batch_select_indices(left)
            if prefix is not None:
                prefix.keep(left)
            tokens, mask, routes, alive = tokens[left], mask[left], routes[left], alive[left]
            running, ends, positions = running[left], ends[left], positions[left]
        positions = positions + 1
        with bank.adapters_active(routes, dtype), prefix.attended() if prefix else nullcontext():
            logits = _forward(
                model, tokens.unsqueeze(1), positions, mask[:, : width + step + 1], cache
            )
    if (broken := written.broken()) is not None:
        raise UserError(
            f"the member in slot {slots[broken // sampling.n]} writes nothing: its logits are NaN "
            "or Inf, so its weights have blown up; go back to a checkpoint before that, or take "
            "smaller steps"
        )
    rows = written.rows()
    return [rows[i * sampling.n : (i + 1) * sampling.n] for i in range(len(prompts))]


def _of_like_lengths(lengths: Sequence[int], device: str) -> Iterator[slice]:
    """Neighbouring prompts to put through the model together: at most `_PREFILL_TOKENS` with
    padding (at least one prompt), and less padding than what another pass costs."""
    start = longest = real = 0
    for row, length in enumerate(lengths):
        most = max(longest, length)
        padded = (row + 1 - start) * most
        full = padded > _PREFILL_TOKENS or padded - real - length > _PASS_TOKENS[device == "cpu"]
        if row > start and full:
            yield slice(start, row)
            start, real, most = row, 0, length
        longest, real = most, real + length
    yield slice(start, len(lengths))


def _read(
    model: nn.Module,
    bank: Bank,
    prompts: Sequence[Sequence[int]],
    routes: Tensor,
    dtype: torch.dtype,
) -> tuple[Tensor, Tensor, Any]:
    """Logits[rows, vocabulary] after the prompts; which tokens they have [rows, width], padded on
    the left; and a cache that holds them."""
    from transformers import DynamicCache

    caches, parts, masks = [], [], []
    for batch in _of_like_lengths([len(prompt) for prompt in prompts], routes.device.type):
        input_ids, mask = _left_padded(prompts[batch], routes.device)
        positions = (mask.cumsum(dim=1) - 1).clamp_(min=0)
        caches.append(DynamicCache())
        masks.append(mask)
        with bank.adapters_active(routes[batch], dtype):
            parts.append(_forward(model, input_ids, positions, mask, caches[-1]))
    if len(caches) == 1:
        return parts[0], masks[0], caches[0]
    longest = max(map(len, prompts))
    cache: Any = DynamicCache()
    for index, layers in enumerate(zip(*caches, strict=True)):
        ended = [[_ended_at(longest, tensor) for tensor in layer[:2]] for layer in layers]
        cache.update(*map(torch.cat, zip(*ended, strict=True)), index)
    mask = torch.cat([_ended_at(longest, mask[..., None])[..., 0] for mask in masks])
    return torch.cat(parts), mask, cache


def _ended_at(length: int, tensor: Tensor) -> Tensor:
    """[..., tokens, width] with zeros before it, so that there are `length` tokens."""
    return pad(tensor, (0, 0, length - tensor.shape[-2], 0))


class _Written:
    """What all rows have written so far, as tensors: reading them row by row costs a step's time
    at a small base."""

    def __init__(self, rows: int, longest: int, device: torch.device) -> None:
        self._tokens = torch.zeros(longest, rows, dtype=torch.long, device=device)
        self._logprobs = torch.zeros(longest, rows, device=device)
        self._lengths = torch.zeros(rows, dtype=torch.long, device=device)
        self._finished = torch.zeros(rows, dtype=torch.bool, device=device)

    def add(
        self,
        step: int,
        places: Tensor,
        tokens: Tensor,
        logprobs: Tensor,
        running: Tensor,
        stopped: Tensor,
    ) -> None:
        """A step's tokens at these places; those of rows that do not run are past their end."""
        self._tokens[step, places] = tokens
        self._logprobs[step, places] = logprobs
        self._lengths[places] += running
        self._finished[places] |= running & stopped

    def broken(self) -> int | None:
        """The first row with a log-probability that is not finite."""
        rows = (~torch.isfinite(self._logprobs)).any(dim=0).nonzero()
        return int(rows[0]) if len(rows) else None

    def rows(self) -> list[Decoded]:
        """Each row up to its end."""
        columns = zip(
            self._tokens.t().tolist(),
            self._logprobs.t().tolist(),
            self._lengths.tolist(),
            self._finished.tolist(),
            strict=True,
        )
        return [
            Decoded(tokens[:length], logprobs[:length], finished)
            for tokens, logprobs, length, finished in columns
        ]


def sample_tokens(
    logits: Tensor, sampling: Sampling, uniforms: Tensor, temperatures: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """One token per row of `logits[rows, vocabulary]`, and its log-probability: at temperature 1,
    or at the rows' own `temperatures`.

    `uniforms` [rows] in [0, 1) choose by the inverse of the cumulative distribution.
    """
    if temperatures is not None:
        logits = logits.float() / temperatures.unsqueeze(1)
    plain = torch.softmax(logits, dim=-1, dtype=torch.float32)
    if sampling.temperature == 0:
        tokens = plain.argmax(dim=-1)
    else:
        probabilities = plain
        if not isinstance(sampling.temperature, tuple) and sampling.temperature != 1:
            probabilities = torch.softmax(logits.float() / sampling.temperature, dim=-1)
        if sampling.top_p < 1:
            ordered, order = probabilities.sort(dim=-1, descending=True)
            # A token stays while the mass before it is below top_p, so the first always stays.
            ordered[ordered.cumsum(dim=-1) - ordered >= sampling.top_p] = 0
            probabilities = torch.zeros_like(probabilities).scatter(-1, order, ordered)
        mass = probabilities.cumsum(dim=-1)
        total = mass[:, -1:]
        # A number next to 1 can round up to all of the mass.
        wanted = torch.minimum(uniforms.unsqueeze(1) * total, total.nextafter(total.new_zeros(())))
        # The first token whose mass reaches beyond the number; one without mass never is.
        tokens = torch.searchsorted(mass, wanted, right=True).squeeze(1)
        # Where logits are no numbers there is no such token; `decode` says so.
        tokens = tokens.clamp(max=logits.shape[-1] - 1)
    chosen = plain.gather(-1, tokens.unsqueeze(1)).squeeze(1)
    # High temperatures draw tokens whose probability at 1 is too small for float32.
    return tokens, chosen.clamp_min(torch.finfo(chosen.dtype).tiny).log()


def _forward(
    model: nn.Module, input_ids: Tensor, positions: Tensor, mask: Tensor, cache: Any
) -> Tensor:
    """Logits[rows, vocabulary] after the last token; the cache grows in place."""
    output = model(
        input_ids=input_ids,
        attention_mask=mask,
        position_ids=positions,
        past_key_values=cache,
        use_cache=True,
        # A list of columns is taken out as a copy; a slice of them would not be contiguous, and
        # torch then multiplies by a copy of the frozen head for every row.
        logits_to_keep=input_ids.new_tensor([input_ids.shape[1] - 1]),
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
