"""The facade's tensors and rows over workers in this process; test_facade.py has them under Ray."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import needs
import pytest
import torch

needs.verl()

import numpy as np  # noqa: E402
from verl import DataProto  # noqa: E402

from azr_population.config.schema import LearnerConfig  # noqa: E402
from azr_population.engines.assembly import make_engine  # noqa: E402
from azr_population.engines.engine import Hyperparameters  # noqa: E402
from azr_population.engines.workers.placement import PlacedGroup  # noqa: E402
from azr_population.engines.workers.worker import WorkerSettings  # noqa: E402
from azr_population.hosts.azr.facade import PopulationGroup  # noqa: E402
from azr_population.runs.streams import Streams  # noqa: E402
from azr_population.weights.adapter import LoraSpec  # noqa: E402

WIDTH, SLOTS = 6, [3, 0, 1, 2, 0, 3, 1, 1]


class Workers:
    """One rank of a group, in this process."""

    world_size = 1

    def __init__(self, settings: WorkerSettings) -> None:
        first = settings.first_member
        drawn = [Streams(1).torch(f"adapter {first + slot}") for slot in range(settings.slots)]
        self.engine, _ = make_engine(settings, drawn, parallel=True)

    def generate_rows(self, parts: list[dict[str, Any]]) -> list[Any]:
        return [self.engine.generate(**part) for part in parts]

    def log_prob_rows(self, parts: list[dict[str, Any]]) -> list[Any]:
        return [self.engine.log_probs(**part) for part in parts]

    def update_rows(self, parts: list[dict[str, Any]]) -> list[Any]:
        return [self.engine.update(**part) for part in parts]

    def shares_prompts(self) -> list[bool]:
        return [self.engine.learner.shares_prompts]

    def read_member(self, slot: int) -> list[Any]:
        return [self.engine.read(slot)]


def facade(base: Path, sizes: list[int], cap: float = 0.0) -> PopulationGroup:
    groups, first = [], 0
    for size in sizes:
        settings = WorkerSettings(
            str(base),
            tuple(f"member {first + slot}" for slot in range(size)),
            LoraSpec(4, 8.0),
            learner=LearnerConfig(importance_sampling_cap=cap, micro_batch_tokens=200),
            seed=1,
            first_member=first,
        )
        groups.append(PlacedGroup(f"group {first}", Workers(settings), first, size))
        first += size
    return PopulationGroup(
        groups,
        settings,
        pad_id=0,
        max_new_tokens=WIDTH,
        validation_temperature=0.0,
        streams=Streams(1),
        after_update=lambda updates: {str(slot): own["updates"] for slot, own in updates.items()},
        hyperparameters=lambda: dict.fromkeys(range(4), Hyperparameters(1e-3)),
        state=dict,
        load_state=lambda plain: None,
    )


def prompts(rows: int, width: int = 9) -> DataProto:
    ids = torch.randint(5, 200, (rows, width), generator=torch.Generator().manual_seed(rows))
    mask = torch.ones_like(ids)
    for row in range(rows):
        mask[row, : row % (width - 2)] = 0
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    tensors = {"input_ids": ids * mask, "attention_mask": mask, "position_ids": positions}
    return DataProto.from_dict(tensors=tensors)


def played(group: PopulationGroup) -> tuple[DataProto, dict[str, float], list[Any]]:
    """What was generated and scored, the metrics of an update on it, and the members behind it."""
    with group.routed(SLOTS):
        batch = group.generate_sequences(prompts(len(SLOTS)))
    batch.non_tensor_batch["member"] = np.array(SLOTS, dtype=object)
    batch = batch.union(group.compute_log_prob(batch))
    worth = torch.tensor([1.0 if row % 3 else -1.5 for row in range(len(SLOTS))])
    batch.batch["advantages"] = worth.unsqueeze(1).expand(-1, WIDTH).clone()
    metrics = group.update_actor(batch).meta_info["metrics"]
    return batch, metrics, [group.read_member(slot) for slot in range(4)]


def test_members_in_two_groups_do_what_they_do_in_one(tiny_base: Path) -> None:
    one, two = played(facade(tiny_base, [4])), played(facade(tiny_base, [2, 2]))
    assert one[1] == two[1] == {str(slot): 1.0 for slot in range(4)}
    for name in ("responses", "attention_mask", "input_ids", "position_ids"):
        assert torch.equal(one[0].batch[name], two[0].batch[name]), name
    assert torch.allclose(one[0].batch["old_log_probs"], two[0].batch["old_log_probs"], atol=1e-5)
    for mine, theirs in zip(one[2], two[2], strict=True):
        for name, pair in mine.factors.items():
            assert torch.allclose(pair.A, theirs.factors[name].A, atol=1e-6)
            assert torch.allclose(pair.B, theirs.factors[name].B, atol=1e-6)
            assert pair.B.abs().max() > 1e-4, "it has learned"


def test_rows_come_back_in_order_with_their_own_members_numbers(tiny_base: Path) -> None:
    group = facade(tiny_base, [2, 2], cap=2.0)
    given = prompts(len(SLOTS))
    with group.routed(SLOTS):
        output = group.generate_sequences(given)
    assert torch.equal(output.batch["prompts"], given.batch["input_ids"])
    mask = output.batch["attention_mask"][:, 9:]
    assert group.generated == mask.sum(1).tolist()
    sampled = output.batch["rollout_log_probs"]
    assert (sampled[mask == 0] == 0).all() and (sampled[mask == 1] < 0).all()
    output.non_tensor_batch["member"] = np.array(SLOTS, dtype=object)
    # Nobody scores what is not used: these are the sampler's own.
    assert torch.equal(group.compute_log_prob(output).batch["old_log_probs"], sampled)
    engine = group.groups[1].workers.engine
    row = SLOTS.index(2)
    ids = output.batch["responses"][row][mask[row].bool()].tolist()
    prompt = given.batch["input_ids"][row][given.batch["attention_mask"][row].bool()].tolist()
    (chosen,), _ = engine.log_probs([prompt], [ids], [0])
    assert sampled[row, : len(ids)].tolist() == pytest.approx(chosen.tolist(), abs=1e-4)
