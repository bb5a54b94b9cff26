"""What AZR's trainer and reward manager take for their one worker group.

They call `generate_sequences`, `compute_log_prob` and `update_actor` on whole batches and know of
no members. The facade knows which member each row belongs to, sends rows to the group that holds
the member, and puts the results back in order.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from verl import DataProto

from azr_population.engines.batching import deal
from azr_population.engines.engine import Sampling
from azr_population.engines.workers.lost_workers import watched
from azr_population.engines.workers.placement import PlacedGroup
from azr_population.errors import UserError
from azr_population.hosts.azr.worker import FILLER
from azr_population.runs.checkpoint import load_latest
from azr_population.runs.streams import Streams
from azr_population.weights.adapter import Adapter
from azr_population.weights.breeding import Making

FOLDER = "population"
"""Of the groups' checkpoints, in AZR's own `global_step_<n>/actor`."""

Updates = dict[int, dict[str, float]]
"""What the learner says of each member's update, by slot."""


class PopulationGroup:
    """All members behind the interface of veRL's actor-rollout worker group.

    `world_size` is 1 for AZR, because splitting, padding and balancing happen in here.
    AZR's last call in a step is `update_actor`; behind it `after_update` plays the rest of the step
    and its result becomes AZR's metrics. `default` is the slot that answers where nobody said who.
    """

    world_size = 1

    def __init__(
        self,
        groups: Sequence[PlacedGroup],
        max_new_tokens: int,
        validation_temperature: float,
        streams: Streams,
        after_update: Callable[[Updates], dict[str, float]],
        learning_rates: Callable[[], Mapping[int, float]],
        state: Callable[[], dict[str, Any]],
        load_state: Callable[[dict[str, Any]], None],
        together: int = 1,
    ) -> None:
        self.groups = list(groups)
        self.default = 0
        self.generated: list[int] = []
        """Tokens in each row of the last generation."""
        self._max_new_tokens = max_new_tokens
        self._validation_temperature = validation_temperature
        self._streams = streams
        self._after_update = after_update
        self._learning_rates = learning_rates
        self._state = state
        self._load_state = load_state
        self._together = together
        self._rows: list[int] | None = None
        self._step = 0
        self._calls = 0
        self._saved = 0

    def begin_step(self, step: int) -> None:
        """From here on the random streams of generation are those of `step`."""
        self._step, self._calls = step, 0

    @contextmanager
    def routed(self, slots: Sequence[int]) -> Iterator[PopulationGroup]:
        """Inside, row i of a generation is written by the member in slot `slots[i]`."""
        before, self._rows = self._rows, [int(slot) for slot in slots]
        try:
            yield self
        finally:
            self._rows = before

    def generate_sequences(self, prompts: DataProto) -> DataProto:
        """veRL's method: `input_ids`, `attention_mask`, `position_ids` in, responses added."""
        slots = self._rows if self._rows is not None else [self.default] * len(prompts)
        if len(slots) != len(prompts):
            raise RuntimeError(f"{len(prompts)} prompts for {len(slots)} routed rows")
        self._calls += 1
        meta = {
            "sampling": self._sampling(prompts.meta_info),
            "seed": self._streams.integer(f"generate {self._calls}", self._step) >> 1,
        }
        keys = ["input_ids", "attention_mask", "position_ids"]
        output = self._spread("generate_sequences", prompts.select(keys, []), slots, meta)
        width = output.batch["responses"].shape[1]
        self.generated = output.batch["attention_mask"][:, -width:].sum(dim=1).tolist()
        return output

    def compute_log_prob(self, batch: DataProto) -> DataProto:
        """veRL's method: `old_log_probs` and `entropys` [rows, R].

        With importance weights the learner works out its own log-probabilities as it learns, and
        nobody uses these: they are the sampler's then, and the entropies, which nobody has, NaN.
        """
        if "rollout_log_probs" in set(batch.batch.keys()):
            sampled = batch.batch["rollout_log_probs"]
            tensors = {
                "old_log_probs": sampled.clone(),
                "entropys": torch.full_like(sampled, torch.nan),
            }
            return DataProto.from_dict(tensors=tensors, meta_info={"temperature": 1.0})
        keys = ["input_ids", "attention_mask", "responses"]
        slots = [int(slot) for slot in batch.non_tensor_batch["member"]]
        output = self._spread("compute_log_prob", batch.select(keys, []), slots, {})
        output.meta_info["temperature"] = 1.0
        return output

    def update_actor(self, batch: DataProto) -> DataProto:
        """veRL's method: `update`, then the rest of the step; AZR's metrics in `meta_info`."""
        return DataProto(meta_info={"metrics": self._after_update(self.update(batch))})

    def update(self, batch: DataProto) -> Updates:
        """One update per member."""
        keys = ["input_ids", "attention_mask", "responses", "old_log_probs", "advantages"]
        # Where the sampler is not the learner.
        if "rollout_log_probs" in set(batch.batch.keys()):
            keys.append("rollout_log_probs")
        slots = [int(slot) for slot in batch.non_tensor_batch["member"]]
        rates = self._learning_rates()
        futures = []
        for group in self.groups:
            rows = [row for row, slot in enumerate(slots) if slot in group]
            meta = {"learning_rates": {s - group.first: rates[s] for s in rates if s in group}}
            # A group without rows takes part in nothing; its members stay as they are.
            if rows:
                part, _ = self._prepared(group, batch.select(keys, []), slots, rows, meta)
                futures.append((group, group.workers.update_actor(part)))
        updates: Updates = {}
        for group, future in futures:
            worker_updates = self._result(group, future).meta_info["updates"]
            updates |= {group.first + slot: figures for slot, figures in worker_updates.items()}
        return updates

    def save_checkpoint(
        self,
        local_path: str,
        remote_path: str | None = None,
        global_step: int = 0,
        max_ckpt_to_keep: int | None = None,
    ) -> None:
        """veRL's method. `local_path` is AZR's `global_step_<n>/actor`."""
        plain = self._state()
        for group in self.groups:
            folder = Path(local_path).absolute() / FOLDER / group.name
            self._call(group, "save_checkpoint", str(folder), global_step, plain)
        self._saved = global_step
        if max_ckpt_to_keep:
            _remove_old(Path(local_path), max_ckpt_to_keep)

    def load_checkpoint(self, local_path: str, del_local_after_load: bool = False) -> None:
        """veRL's method. The checkpoint is kept, also with trainer.del_local_ckpt_after_load."""
        plain = None
        for group in self.groups:
            folder = Path(local_path).absolute() / FOLDER / group.name
            if not folder.is_dir():
                raise UserError(
                    f"{local_path} holds no population with placement of {group.name}: it was "
                    "written by stock AZR, or with another population.placement"
                )
            # Hashed here, once for all ranks.
            checkpoint = load_latest(folder, mapped=True)
            self._call(group, "load_checkpoint", str(folder), checkpoint.step)
            plain, self._saved = checkpoint.plain, checkpoint.step
        assert plain is not None
        self._load_state(plain)

    def read_member(self, slot: int) -> Adapter:
        """A copy of the member's factors, on the CPU."""
        group = self._holder(slot)
        return self._call(group, "read_member", slot - group.first)[0]

    def write_member(self, slot: int, adapter: Adapter) -> None:
        """Replaces the member's factors and starts its optimizer afresh."""
        group = self._holder(slot)
        self._call(group, "write_member", slot - group.first, adapter)

    def evolve(
        self, slot: int, parents: Sequence[int], recipe: Mapping[str, Any], seed: int
    ) -> Making:
        """A child of `parents` (of one role) in the place of `slot`, by `breed` with the keywords
        in `recipe`."""
        group = self._holder(slot)
        local = [parent - group.first for parent in parents]
        return self._call(group, "evolve", slot - group.first, local, dict(recipe), seed)[0]

    def digests(self) -> dict[str, list[str]]:
        """For each group the digest of its members on every rank; all of a group are equal."""
        return {group.name: self._call(group, "digest") for group in self.groups}

    def _sampling(self, meta: Mapping[str, Any]) -> Sampling:
        if not meta.get("do_sample", True):
            return Sampling(self._max_new_tokens, temperature=0.0)
        # AZR estimates solve rates under `validate`, where stock veRL samples at val_kwargs'
        # temperature, by default 0: n_samples equal answers. We sample unless it says otherwise.
        if meta.get("validate") and self._validation_temperature > 0:
            return Sampling(self._max_new_tokens, self._validation_temperature)
        return Sampling(self._max_new_tokens)

    def _spread(
        self, method: str, batch: DataProto, slots: Sequence[int], meta: dict[str, Any]
    ) -> DataProto:
        """Calls the method on every group that holds rows; results in the rows' own order."""
        futures = []
        for group in self.groups:
            rows = [row for row, slot in enumerate(slots) if slot in group]
            if rows:
                together = self._together if method == "generate_sequences" else 1
                part, order = self._prepared(group, batch, slots, rows, meta, together)
                futures.append((group, order, getattr(group.workers, method)(part)))
        parts, places = [], []
        for group, order, future in futures:
            output = self._result(group, future)
            kept = [place for place, row in enumerate(order) if row is not None]
            parts.append(output.select_idxs(torch.tensor(kept)))
            places += [order[place] for place in kept]
        whole = DataProto.concat(parts)
        whole.reorder(torch.from_numpy(np.argsort(np.array(places))))
        return whole

    def _prepared(
        self,
        group: PlacedGroup,
        batch: DataProto,
        slots: Sequence[int],
        rows: Sequence[int],
        meta: dict[str, Any],
        together: int = 1,
    ) -> tuple[DataProto, list[int | None]]:
        """The group's rows in the order in which they are split over its ranks, filled up.

        Dealt out by `deal`, the same to `together` ranks in a row. The second result names the row
        whose result is in each place, or None.
        """
        lengths = batch.batch["attention_mask"].sum(dim=1).tolist()
        prompts = [ids.numpy().tobytes() for ids in batch.batch["input_ids"]]
        dealt = deal(
            [lengths[row] for row in rows],
            [slots[row] for row in rows],
            int(group.workers.world_size) // together,
            [prompts[row] for row in rows],
        )
        longest = max(map(len, dealt))
        order: list[int | None] = []
        told: list[int | None] = []
        for hand in dealt:
            filled = [*(rows[place] for place in hand), *[None] * (longest - len(hand))]
            order += filled * together
            told += filled + [None] * (longest * (together - 1))
        part = batch.select_idxs(torch.tensor([rows[0] if row is None else row for row in order]))
        part.non_tensor_batch["slot"] = np.array(
            [FILLER if row is None else slots[row] - group.first for row in order], dtype=object
        )
        # Fillers draw nothing.
        part.non_tensor_batch["row"] = np.array([row or 0 for row in order], dtype=object)
        part.meta_info = dict(meta)
        return part, told

    def _holder(self, slot: int) -> PlacedGroup:
        return next(group for group in self.groups if slot in group)

    def _call(self, group: PlacedGroup, method: str, *arguments: Any) -> list[Any]:
        return self._watched(group, lambda: getattr(group.workers, method)(*arguments))

    def _result(self, group: PlacedGroup, future: Any) -> DataProto:
        return self._watched(group, lambda: future.get() if hasattr(future, "get") else future)

    def _watched(self, group: PlacedGroup, call: Callable[[], Any]) -> Any:
        if self._saved:
            way_on = (
                "the same command with trainer.resume_mode=auto goes on from the checkpoint of "
                f"step {self._saved}"
            )
        else:
            way_on = (
                "there is no checkpoint yet (trainer.save_freq), so the same command starts again"
            )
        return watched(group.name, group.workers, call, way_on)


def _remove_old(local_path: Path, keep: int) -> None:
    """Removes the population's part of all but the newest `keep` of AZR's checkpoints."""
    root = local_path.absolute().parent.parent
    checkpoints = sorted(
        (int(path.name.rpartition("_")[2]), path)
        for path in root.glob("global_step_*")
        if path.name.rpartition("_")[2].isdigit() and (path / "actor" / FOLDER).is_dir()
    )
    for _, path in checkpoints[:-keep]:
        shutil.rmtree(path / "actor" / FOLDER)
