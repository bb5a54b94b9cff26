"""Log-probabilities and entropies of given responses, rows of several members in one batch."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from azr_population.engines.batching import slot_batches
from azr_population.engines.engine import Ids
from azr_population.weights.bank import Bank


@torch.no_grad()
def log_probs(
    model: nn.Module,
    bank: Bank,
    prompts: Sequence[Ids],
    responses: Sequence[Ids],
    slots: Sequence[int],
    max_tokens: int,
) -> tuple[list[Tensor], list[Tensor]]:
    """See `Learner`. At most `max_tokens` with padding go through the model at once, but at least
    one row."""
    device = next(model.parameters()).device
    chosen: list[Tensor] = [torch.empty(0)] * len(prompts)
    entropies: list[Tensor] = [torch.empty(0)] * len(prompts)
    answered = [i for i in range(len(prompts)) if responses[i]]
    for places in slot_batches(
        [len(prompts[i]) + len(responses[i]) for i in answered],
        [slots[i] for i in answered],
        max_tokens,
    ):
        rows = [answered[place] for place in places]
        width = max(len(prompts[i]) + len(responses[i]) for i in rows)
        input_ids = torch.zeros(len(rows), width, dtype=torch.long)
        mask = torch.zeros(len(rows), width, dtype=torch.long)
        for place, i in enumerate(rows):
            ids = [*prompts[i], *responses[i]]
            input_ids[place, : len(ids)] = torch.tensor(ids)
            mask[place, : len(ids)] = 1
        first = min(len(prompts[i]) for i in rows) - 1
        columns = torch.arange(first, width - 1, device=device)
        with bank.routed_or_bare(torch.tensor([slots[i] for i in rows], device=device)):
            logits = model(
                input_ids=input_ids.to(device),
                attention_mask=mask.to(device),
                use_cache=False,
                logits_to_keep=columns,
            ).logits
        for place, i in enumerate(rows):
            start = len(prompts[i]) - 1 - first
            row = logits[place, start : start + len(responses[i])].float()
            every = torch.log_softmax(row, dim=-1)
            targets = torch.tensor(responses[i], device=device).unsqueeze(1)
            chosen[i] = every.gather(-1, targets).squeeze(1).cpu()
            entropies[i] = -(every.exp() * every).sum(dim=-1).cpu()
    return chosen, entropies
