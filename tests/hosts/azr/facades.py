"""What tests of the facade share: prompts, batches, and the rest of a step left out."""

from types import SimpleNamespace

import torch
from verl import DataProto

from azr_population.engines.engine import Hyperparameters, PromptBatch
from azr_population.hosts.azr.batches import prompt_rows
from azr_population.hosts.azr.facade import PopulationWorkerGroup
from azr_population.streams import Streams

MEMBERS = 4


def facade(engine, width):
    """Over this engine, with responses of `width` tokens; metrics are each member's updates."""
    population = SimpleNamespace(
        streams=Streams(1),
        hyperparameters=lambda: dict.fromkeys(range(MEMBERS), Hyperparameters(1e-3)),
        state=lambda: {"what": "state"},
        load_state=lambda plain: None,
    )
    return PopulationWorkerGroup(
        engine,
        population,
        pad_id=0,
        max_new_tokens=width,
        validation_temperature=0.0,
        after_update=lambda updates: {str(s): u.get("loss", 0.0) for s, u in updates.items()},
    )


def prompts(rows, width=9):
    """Left-padded random prompts of different lengths."""
    ids = torch.randint(5, 200, (rows, width), generator=torch.Generator().manual_seed(rows))
    mask = torch.ones_like(ids)
    for row in range(rows):
        mask[row, : row % (width - 2)] = 0
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    tensors = {"input_ids": ids * mask, "attention_mask": mask, "position_ids": positions}
    return DataProto.from_dict(tensors=tensors)


def generated(group, slots):
    """A prompt a slot, and what its member writes."""
    data = prompts(len(slots))
    given = PromptBatch(prompt_rows(data.batch), list(slots), range(len(slots)))
    group.prefetch({"gen_code_o": given}, lambda *_: None)
    with group.routed("gen_code_o"):
        return group.generate_sequences(data)


def batch(group, slots):
    """Generated and scored, with advantages that differ: ready for `update_actor`."""
    full_batch = generated(group, slots)
    full_batch = full_batch.union(group.compute_log_prob(full_batch))
    worth = torch.tensor([1.0 if row % 3 else -1.5 for row in range(len(slots))])
    width = full_batch.batch["responses"].shape[1]
    full_batch.batch["advantages"] = worth.unsqueeze(1).expand(-1, width).clone()
    return full_batch


def largest_difference(one, other):
    """Between the factors of the same members of two facades."""
    adapters = [(one.engine.read(slot), other.engine.read(slot)) for slot in range(MEMBERS)]
    return max(
        float((getattr(pair, factor) - getattr(theirs.factors[name], factor)).abs().max())
        for ours, theirs in adapters
        for name, pair in ours.factors.items()
        for factor in "AB"
    )
