"""The clipped policy-gradient loss on completion tokens: PPO's without a critic, as in AZR."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from azr_population.engines.engine import Sample

METRICS = ("loss", "entropy", "approx_kl", "clip_fraction")
"""What `policy_loss` reports beside the loss."""


@dataclass(frozen=True)
class MicroBatch:
    """Right-padded rows. Shapes [rows, width], but advantages [rows]."""

    input_ids: Tensor
    mask: Tensor
    completion: Tensor
    """True where `input_ids` is a token of the completion."""
    old_logprobs: Tensor
    advantages: Tensor


def micro_batches(
    samples: Sequence[Sample], max_tokens: int, device: torch.device
) -> Iterator[MicroBatch]:
    """Samples of like length together, at most `max_tokens` with padding (at least one row)."""
    ordered = sorted(samples, key=_length)
    start = 0
    while start < len(ordered):
        end = start + 1
        while end < len(ordered) and (end + 1 - start) * _length(ordered[end]) <= max_tokens:
            end += 1
        yield _collate(ordered[start:end], device)
        start = end


def policy_loss(
    model: nn.Module, batch: MicroBatch, clip_ratio: float
) -> tuple[Tensor, dict[str, float]]:
    """The summed loss over the batch's completion tokens, and summed metrics.

    The sum is divided by the member's token count by the caller, so that the loss is AZR's
    `token-mean` however the rows fall into micro-batches.
    """
    # Logits only from the first completion token on: at a vocabulary of 150k they are the memory.
    columns = torch.arange(
        int(batch.completion.any(dim=0).nonzero()[0]) - 1,
        batch.input_ids.shape[1] - 1,
        device=batch.input_ids.device,
    )
    logits = model(
        input_ids=batch.input_ids,
        attention_mask=batch.mask,
        use_cache=False,
        logits_to_keep=columns,
    ).logits
    chosen = batch.completion[:, columns + 1]
    log_probabilities = torch.log_softmax(logits[chosen].float(), dim=-1)
    targets = batch.input_ids[:, columns + 1][chosen]
    logprobs = log_probabilities.gather(-1, targets.unsqueeze(1)).squeeze(1)
    old = batch.old_logprobs[:, columns + 1][chosen]
    advantages = batch.advantages.unsqueeze(1).expand(-1, len(columns))[chosen]

    log_ratio = logprobs - old
    ratio = log_ratio.exp()
    clipped = ratio.clamp(1 - clip_ratio, 1 + clip_ratio)
    loss = -torch.minimum(ratio * advantages, clipped * advantages).sum()
    with torch.no_grad():
        entropy = -(log_probabilities.exp() * log_probabilities).sum()
        outside = ((ratio - 1).abs() > clip_ratio).sum()
        metrics = {
            "loss": float(loss),
            "entropy": float(entropy),
            "approx_kl": float((ratio - 1 - log_ratio).sum()),
            "clip_fraction": float(outside),
        }
    return loss, metrics


def _length(sample: Sample) -> int:
    return len(sample.completion.prompt_ids) + len(sample.completion.token_ids)


def _collate(samples: Sequence[Sample], device: torch.device) -> MicroBatch:
    width = max(_length(sample) for sample in samples)
    shape = (len(samples), width)
    input_ids = torch.zeros(shape, dtype=torch.long)
    mask = torch.zeros(shape, dtype=torch.long)
    completion = torch.zeros(shape, dtype=torch.bool)
    old_logprobs = torch.zeros(shape)
    for row, sample in enumerate(samples):
        done = sample.completion
        start, end = len(done.prompt_ids), _length(sample)
        input_ids[row, :end] = torch.tensor(done.prompt_ids + done.token_ids)
        mask[row, :end] = 1
        completion[row, start:end] = True
        old_logprobs[row, start:end] = torch.tensor(done.logprobs)
    advantages = torch.tensor([sample.advantage for sample in samples])
    return MicroBatch(
        *(t.to(device) for t in (input_ids, mask, completion, old_logprobs, advantages))
    )
