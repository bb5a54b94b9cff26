"""Log-probabilities and entropies of given responses, rows of several members in one batch."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from azr_population.engines.batching import slot_batches
from azr_population.engines.engine import Ids
from azr_population.engines.token_log_probs import token_log_probs
from azr_population.weights.bank import Bank


@torch.no_grad()
def log_probs(
    model: nn.Module,
    bank: Bank,
    prompts: Sequence[Ids],
    responses: Sequence[Ids],
    slots: Sequence[int],
    max_tokens: int,
    dtype: torch.dtype | None = None,
    passes: Callable[[int], int] = lambda own: own,
) -> tuple[list[Tensor], list[Tensor]]:
    """See `Learner`. At most `max_tokens` with padding go through the model at once, but at least
    one row. `dtype` is that of the adapters' products (`Bank.adapters_active`); `passes` says how
    often the model has to run where there are so many batches here."""
    device = next(model.parameters()).device
    chosen: list[Tensor] = [torch.empty(0)] * len(prompts)
    entropies: list[Tensor] = [torch.empty(0)] * len(prompts)
    answered = [i for i in range(len(prompts)) if responses[i]]
    batches = list(
        slot_batches(
            [len(prompts[i]) + len(responses[i]) for i in answered],
            [slots[i] for i in answered],
            max_tokens,
        )
    )
    # Asked before the first: where a base is shared out, ranks talk to each other in every pass.
    more = passes(len(batches)) - len(batches)
    for places in batches:
        rows = [answered[place] for place in places]
        width = max(len(prompts[i]) + len(responses[i]) for i in rows)
        input_ids = torch.zeros(len(rows), width, dtype=torch.long)
        mask = torch.zeros(len(rows), width, dtype=torch.long)
        for place, i in enumerate(rows):
            ids = [*prompts[i], *responses[i]]
            input_ids[place, : len(ids)] = torch.tensor(ids)
            mask[place, : len(ids)] = 1
        first = min(len(prompts[i]) for i in rows) - 1
        columns = torch.arange(first, width - 1)
        starts = torch.tensor([[len(prompts[i]) - 1] for i in rows])
        ends = starts + torch.tensor([[len(responses[i])] for i in rows])
        wanted = (columns >= starts) & (columns < ends)
        with bank.adapters_active(torch.tensor([slots[i] for i in rows], device=device), dtype):
            both = token_log_probs(
                model,
                *(tensor.to(device) for tensor in (input_ids, mask, columns, wanted)),
            )
        lengths = [len(responses[i]) for i in rows]
        for into, told in zip((chosen, entropies), both, strict=True):
            for i, values in zip(rows, told.cpu().split(lengths), strict=True):
                into[i] = values
    for _ in range(more):
        model(input_ids=torch.zeros(1, 1, dtype=torch.long, device=device), use_cache=False)
    return chosen, entropies
