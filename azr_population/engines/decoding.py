"""Batched sampling with a KV cache, any number of members in one batch.

Finished rows leave the batch, so a decoding step costs only the rows that are still running. Not
covered: beam search, stop strings, and serving requests as they arrive.
"""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import pad
from torch.nn.utils.rnn import pad_sequence

from azr_population.engines.engine import NO_ADAPTER, SMALL_BASE, Completion, Ids, Sampling
from azr_population.engines.kv_cache import new_cache
from azr_population.engines.micro_batches import spans
from azr_population.engines.shared_prefix import SharedPrefix, attends_to_all
from azr_population.engines.step_graph import StepGraph
from azr_population.errors import UserError
from azr_population.weights.bank import Bank

# Rows are taken out of the batch when at most this share of it is still being written: moving the
# cache costs about as much as one decoding step.
_COMPACT_AT = 0.75

# Tokens after which it is asked which rows are still being written, on GPUs and on CPUs: a GPU has
# nothing to do while it is asked.
_CHECK_EVERY = (8, 1)

# Tokens of the prompts that go through the model at once. What a layer makes of them is far larger
# than what it leaves in the cache: at a 7B base 12 GB for these.
PREFILL_TOKENS = 32_768

# Tokens that cost about what another pass of a small base costs, on GPUs and on CPUs: so much
# padding is worth avoiding (6% of a step of the nano base).
_PASS_TOKENS = (4096, 48)


@torch.inference_mode()
def decode(
    model: nn.Module,
    bank: Bank,
    prompts: Sequence[Ids],
    slots: Sequence[int],
    sampling: Sampling,
    stop_ids: frozenset[int],
    uniforms: Tensor,
    share: bool,
    step_graphs: bool = False,
) -> list[list[Completion]]:
    """Samples `sampling.n` continuations of each prompt by the member in its place. `uniforms`
    [rows * n, tokens] in [0, 1) decide what is drawn; with `share` completions of a prompt attend
    to one copy of its keys and values, for which see `shares_prompts`; with `step_graphs` other
    steps are `StepGraph`s where the base allows it.

    `slots` must ascend, because the bank routes contiguous runs of rows. Factors may be applied in
    the base's dtype (`Bank.adapters_active`), so with a base in bfloat16 a token's log-probability
    is the sampler's; the learner's own, which `log_probs` and an update compute, are from float32
    factors.

    Raises UserError: a member's or the base's logits are not finite.
    """
    n, share = sampling.n, share and sampling.n > 1
    device, dtype = next((weight.device, weight.dtype) for weight in model.parameters())
    on_cpu = device.type == "cpu"
    limits = sampling.limits(len(prompts))
    ends = torch.tensor(limits, device=device).repeat_interleave(n)
    members = [slot for slot in slots for _ in range(n)]
    longest, uniforms = max(limits), uniforms.to(device)
    width, extra = max(map(len, prompts)), 0 if share else longest
    cache = new_cache(len(prompts), width + extra, 1 if share else n)
    logits = _read(model, bank, prompts, slots, dtype, cache)
    lengths = torch.tensor([len(prompt) for prompt in prompts], device=device)
    hidden = torch.arange(width, device=device) < width - lengths.unsqueeze(1)
    prefix = None
    if share:
        prefix, cache = SharedPrefix(cache, hidden, n), new_cache(len(ends), longest)
    graphs = step_graphs and not share and attends_to_all(model)
    mask = None
    if graphs or (not share and hidden.any()):
        mask = _mask(model, hidden.repeat_interleave(n, dim=0), longest, dtype)
    logits, positions = (t.repeat_interleave(n, dim=0) for t in (logits, lengths - 1))

    # Of all rows, as tensors: reading them row by row costs a step's time at a small base.
    written = torch.zeros(longest, len(ends), dtype=torch.long, device=device)
    logprobs = torch.zeros(longest, len(ends), device=device)
    counts = torch.zeros(len(ends), dtype=torch.long, device=device)
    finished = torch.zeros(len(ends), dtype=torch.bool, device=device)
    # The rows in the batch; finished ones stay until compaction, and write past their end.
    alive = torch.arange(len(ends), device=device)
    running = torch.ones(len(ends), dtype=torch.bool, device=device)
    stops = torch.tensor(sorted(stop_ids), dtype=torch.long, device=device)
    route = bank.route(members, dtype, one_token=True)
    # Rows that have ended cost less there than recording a graph again.
    small = graphs and sum(weight.numel() for weight in model.parameters()) < SMALL_BASE
    graph: StepGraph | None = None
    room = width + extra
    for step in range(longest):
        tokens, chances = sample_tokens(logits, sampling, uniforms[alive, step])
        stopped = torch.isin(tokens, stops)
        written[step, alive], logprobs[step, alive] = tokens, chances
        counts[alive] += running
        finished[alive] |= running & stopped
        running = running & ~stopped & (step + 1 < ends)
        if step + 1 == longest:
            break
        recorded = graph is not None and width + step < graph.end
        if (step + 1) % _CHECK_EVERY[on_cpu] == 0 or (graph and not recorded):
            count = int(running.sum())
            if count == 0:
                break
            if count <= _COMPACT_AT * len(running) and not (small and recorded):
                left = running.nonzero().squeeze(1)
                tokens, alive, running = tokens[left], alive[left], running[left]
                ends, positions = ends[left], positions[left]
                room = (0 if share else width) + int(ends.max())
                cache.keep(left, room, width + step if graph else None)
                graph = None
                mask = None if mask is None else mask[left]
                if prefix:
                    prefix.keep(left)
                members = [members[row] for row in left.tolist()]
                route = bank.route(members, dtype, one_token=True)
        positions = positions + 1
        with bank.routed(route), prefix.attended() if prefix else nullcontext():
            column = width + step
            if graphs and mask is not None:
                if graph is None or column == graph.end:
                    graph = StepGraph(partial(_forward, model), cache, mask, column, room)
                logits = graph(tokens, positions, column)
            else:
                before = None if mask is None else mask[..., : column + 1]
                logits = _forward(model, tokens.unsqueeze(1), positions.unsqueeze(1), before, cache)
    # By step: what is NaN in one row is so in its neighbours' a step later, where all members'
    # factors are one matrix.
    if len(broken := (~torch.isfinite(logprobs)).nonzero()):
        if (slot := slots[int(broken[0, 1]) // n]) == NO_ADAPTER:
            raise UserError(
                "the base has NaN or infinite logits: take base.dtype=float32 or bfloat16, or "
                "another base"
            )
        raise UserError(
            f"the member in slot {slot} has NaN or infinite logits: its weights diverged; go back "
            "to a checkpoint before that, or take smaller steps"
        )
    columns = (t.tolist() for t in (written.t(), logprobs.t(), counts, finished))
    completions = [
        Completion(
            slots[row // n], tuple(prompts[row // n]), tuple(ids[:end]), tuple(scores[:end]), ended
        )
        for row, (ids, scores, end, ended) in enumerate(zip(*columns, strict=True))
    ]
    return [completions[i : i + n] for i in range(0, len(completions), n)]


def _mask(model: Any, hidden: Tensor, longest: int, dtype: torch.dtype) -> Tensor:
    """Which tokens of the cache a row sees: all but the padding of its prompt, which is `hidden`,
    bool [rows, width]; `longest` are written behind it."""
    # Rows begin at multiples of 16 numbers, or kernels copy the mask in every layer.
    longest += -(hidden.shape[1] + longest) % 16
    shown = pad(~hidden, (0, longest), value=True)
    if not attends_to_all(model):
        return shown.long()
    # As the kernels take it, or it would be worked out for each token again.
    whole = torch.zeros(shown.shape, dtype=dtype, device=shown.device)
    return whole.masked_fill_(~shown, -torch.inf)[:, None, None]


def _length_groups(lengths: Sequence[int], device: str) -> Iterator[slice]:
    """Neighbouring prompts to put through the model together: at most `PREFILL_TOKENS` with
    padding (at least one prompt), and less padding than what another pass costs."""

    def fits(start: int, end: int) -> bool:
        batch = lengths[start:end]
        padded = len(batch) * max(batch)
        return padded <= PREFILL_TOKENS and padded - sum(batch) <= _PASS_TOKENS[device == "cpu"]

    return spans(len(lengths), fits)


def _read(
    model: nn.Module,
    bank: Bank,
    prompts: Sequence[Ids],
    slots: Sequence[int],
    dtype: torch.dtype,
    cache: Any,
) -> Tensor:
    """Logits [prompts, vocabulary] after the prompts, which the cache then holds, padded on the
    left."""
    parts, width, device = [], max(map(len, prompts)), bank.device
    for batch in _length_groups([len(prompt) for prompt in prompts], device.type):
        ids = [torch.tensor(prompt) for prompt in prompts[batch]]
        input_ids, mask = (
            pad_sequence(rows, batch_first=True, padding_side="left").to(device)
            for rows in (ids, [torch.ones_like(row) for row in ids])
        )
        positions = (mask.cumsum(dim=1) - 1).clamp_(min=0)
        padded = len({len(row) for row in ids}) > 1
        part = cache.part(batch, width - input_ids.shape[1])
        with bank.routed(bank.route(slots[batch], dtype)):
            parts.append(_forward(model, input_ids, positions, mask if padded else None, part))
    cache.end_prefill(width)
    return torch.cat(parts)


def sample_tokens(logits: Tensor, sampling: Sampling, uniforms: Tensor) -> tuple[Tensor, Tensor]:
    """One token per row of `logits[rows, vocabulary]`, and its log-probability at temperature 1.

    `uniforms` [rows] in [0, 1) choose by the inverse of the cumulative distribution.
    """
    plain = torch.softmax(logits, dim=-1, dtype=torch.float32)
    if sampling.temperature == 0:
        tokens = plain.argmax(dim=-1)
    else:
        probabilities = plain
        if sampling.temperature != 1:
            probabilities = torch.softmax(logits.float() / sampling.temperature, dim=-1)
        if sampling.top_p < 1:
            ordered, order = probabilities.sort(dim=-1, descending=True)
            # A token stays while the mass before it is below top_p; the first does at 0 too.
            ordered[ordered.cumsum(dim=-1) - ordered >= max(sampling.top_p, 1e-6)] = 0
            probabilities = torch.zeros_like(probabilities).scatter(-1, order, ordered)
        tokens = draw(probabilities, uniforms)
    chosen = plain.gather(-1, tokens.unsqueeze(1)).squeeze(1)
    # High temperatures draw tokens whose probability at 1 is too small for float32.
    return tokens, chosen.clamp_min(torch.finfo(chosen.dtype).tiny).log()


def draw(probabilities: Tensor, uniforms: Tensor) -> Tensor:
    """The token of each row of `probabilities[rows, vocabulary]` at which its cumulative
    distribution passes the row's number in [0, 1): long [rows], never one of probability 0."""
    on_cpu = probabilities.device.type == "cpu"
    # A GPU adds up parts of a row at once, so that its sums are not quite in order.
    mass = probabilities.cumsum(dim=-1, dtype=None if on_cpu else torch.float64)
    total = mass[:, -1:]
    wanted = (uniforms.unsqueeze(1) * total).to(mass.dtype)
    # A number next to 1 can round up to all of the mass.
    wanted = torch.minimum(wanted, total.nextafter(total.new_zeros(())))
    # Where logits are no numbers there is no such token; `decode` says so.
    tokens = torch.searchsorted(mass, wanted, right=True).clamp_(max=mass.shape[1] - 1)
    impossible = probabilities.gather(-1, tokens) == 0
    if on_cpu and not impossible.any():
        return tokens.squeeze(1)
    likeliest = probabilities.argmax(dim=-1, keepdim=True)
    return torch.where(impossible, likeliest, tokens).squeeze(1)


def _forward(
    model: nn.Module, input_ids: Tensor, positions: Tensor, mask: Tensor | None, cache: Any
) -> Tensor:
    """Logits[rows, vocabulary] after the last token; the cache grows in place."""
    tokens = input_ids.shape[1]
    output = model(
        input_ids=input_ids,
        attention_mask=mask,
        position_ids=positions,
        past_key_values=cache,
        use_cache=True,
        # A list of columns is taken out as a copy; a slice of them would not be contiguous, and
        # torch then multiplies by a copy of the frozen head for every row. Made on the device: a
        # copy from the CPU would wait for it.
        logits_to_keep=torch.arange(tokens - 1, tokens, device=input_ids.device),
    )
    return output.logits[:, -1]
