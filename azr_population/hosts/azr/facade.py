"""What AZR's trainer and reward manager take for their one worker group.

They call `generate_sequences`, `compute_log_prob` and `update_actor` on whole batches and know of
no members. The facade knows which member each row belongs to, takes veRL's tensors apart into rows
of token ids, has the engine of the group that holds the member compute them, and puts the results
together in order.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import torch
from verl import DataProto

from azr_population.engines.engine import (
    Completion,
    GeneratedCounts,
    Hyperparameters,
    Sampling,
    TrainingSample,
    Updates,
)
from azr_population.engines.workers.placement import PlacedGroup
from azr_population.engines.workers.ray_engine import RayEngine
from azr_population.engines.workers.worker import WorkerSettings
from azr_population.errors import UserError
from azr_population.hosts.azr.batches import (
    padded_right,
    prompt_rows,
    response_rows,
    with_responses,
)
from azr_population.runs.checkpoint import load_latest
from azr_population.runs.streams import Streams
from azr_population.weights.adapter import Adapter
from azr_population.weights.breeding import Breeding

FOLDER = "population"
"""Of the groups' checkpoints, in AZR's own `global_step_<n>/actor`."""

Result = TypeVar("Result")


class PopulationGroup:
    """All members behind the interface of veRL's actor-rollout worker group.

    `world_size` is 1 for AZR, because splitting and balancing happen in here. `pad_id` fills up
    responses. AZR's last call in a step is `update_actor`; behind it `after_update` plays the rest
    of the step and its result becomes AZR's metrics. `default` is the slot that answers where
    nobody said who.
    """

    world_size = 1

    def __init__(
        self,
        groups: Sequence[PlacedGroup],
        settings: WorkerSettings,
        pad_id: int,
        max_new_tokens: int,
        validation_temperature: float,
        streams: Streams,
        after_update: Callable[[Updates], dict[str, float]],
        hyperparameters: Callable[[], Mapping[int, Hyperparameters]],
        state: Callable[[], dict[str, Any]],
        load_state: Callable[[dict[str, Any]], None],
    ) -> None:
        self.groups = list(groups)
        limit, together = settings.learner.most_tokens, settings.rollout.together
        self._engines = [RayEngine(group, limit, "", together) for group in groups]
        self._corrects = bool(settings.learner.importance_sampling_cap)
        self._pad_id = pad_id
        self.default = 0
        self._max_new_tokens = max_new_tokens
        self._validation_temperature = validation_temperature
        self._streams = streams
        self._after_update = after_update
        self._hyperparameters = hyperparameters
        self._state = state
        self._load_state = load_state
        self._rows: list[int] | None = None
        self._then: Callable[[DataProto], None] | None = None
        self._generated = GeneratedCounts()
        self._step = 0
        self._calls = 0
        self._saved_at(0)

    def begin_step(self, step: int) -> None:
        """From here on the random streams of generation are those of `step`."""
        self._step, self._calls = step, 0
        self._generated = GeneratedCounts()

    @contextmanager
    def routed(
        self, slots: Sequence[int], then: Callable[[DataProto], None] | None = None
    ) -> Iterator[PopulationGroup]:
        """Inside, row i of a generation is written by the member in slot `slots[i]`, and `then`
        gets what was generated first."""
        before = self._rows, self._then
        self._rows, self._then = [int(slot) for slot in slots], then
        try:
            yield self
        finally:
            self._rows, self._then = before

    def take_generated(self) -> GeneratedCounts:
        """What the routed calls of this step have generated so far, by slot."""
        return self._generated

    def generate_sequences(self, prompts: DataProto) -> DataProto:
        """veRL's method: `input_ids`, `attention_mask`, `position_ids` in, responses added."""
        slots = self._rows if self._rows is not None else [self.default] * len(prompts)
        if len(slots) != len(prompts):
            raise RuntimeError(f"{len(prompts)} prompts for {len(slots)} routed rows")
        self._calls += 1
        sampling = self._sampling(prompts.meta_info)
        seed = self._streams.integer(f"generate {self._calls}", self._step) >> 1
        given = prompt_rows(prompts.batch["input_ids"], prompts.batch["attention_mask"])

        def generate(engine: RayEngine, rows: list[int], local: list[int]) -> list[Completion]:
            groups = engine.generate([given[row] for row in rows], local, sampling, seed, rows)
            return [completion for (completion,) in groups]

        written, width = self._by_row(slots, generate), self._max_new_tokens
        for slot, done in zip(slots, written, strict=True):
            if self._rows is not None:  # not AZR's validation
                self._generated.add(slot, done)
        responses = [one.token_ids for one in written]
        tensors = with_responses(prompts.batch, responses, width, self._pad_id)
        if self._corrects:
            logprobs = [torch.tensor(one.logprobs[:width]) for one in written]
            tensors["rollout_log_probs"] = padded_right(logprobs, width)
        output = DataProto.from_dict(tensors=tensors)
        if self._then:
            self._then(output)
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
        prompts, responses = _rows(batch)

        def score(engine: RayEngine, rows: list[int], local: list[int]) -> list[Any]:
            asked = [prompts[row] for row in rows], [responses[row] for row in rows]
            return list(zip(*engine.log_probs(*asked, local), strict=True))

        both = zip(*self._by_row(_members(batch), score), strict=True)
        width = batch.batch["responses"].shape[1]
        chosen, entropies = (padded_right(values, width) for values in both)
        return DataProto.from_dict(
            tensors={"old_log_probs": chosen, "entropys": entropies}, meta_info={"temperature": 1.0}
        )

    def update_actor(self, batch: DataProto) -> DataProto:
        """veRL's method: `update`, then the rest of the step; AZR's metrics in `meta_info`."""
        return DataProto(meta_info={"metrics": self._after_update(self.update(batch))})

    def update(self, batch: DataProto) -> Updates:
        """One update per member."""
        prompts, responses = _rows(batch)
        # Where the sampler is not the learner, the learner works out its own log-probabilities.
        corrects = "rollout_log_probs" in set(batch.batch.keys())
        sampled = batch.batch["rollout_log_probs" if corrects else "old_log_probs"]
        advantages = batch.batch["advantages"][:, 0].tolist()  # one value a row, as gamma is 1
        settings = self._hyperparameters()
        samples: dict[int, list[TrainingSample]] = {slot: [] for slot in sorted(settings)}
        for row, slot in enumerate(_members(batch)):
            if ids := tuple(responses[row]):
                logprobs = tuple(sampled[row, : len(ids)].tolist())
                completion = Completion(slot, tuple(prompts[row]), ids, logprobs, True)
                samples[slot].append(TrainingSample(completion, advantages[row]))

        def learn(engine: RayEngine) -> Updates:
            first = engine.group.first
            local = {slot - first: rows for slot, rows in samples.items() if slot in engine.group}
            updates = engine.update(local, {slot: settings[first + slot] for slot in local})
            return {first + slot: figures for slot, figures in updates.items()}

        # A group without rows takes part in nothing; its members stay as they are.
        busy = [
            engine
            for engine in self._engines
            if any(rows for slot, rows in samples.items() if slot in engine.group)
        ]
        return {k: v for updates in _at_once(learn, busy) for k, v in updates.items()}

    def save_checkpoint(
        self,
        local_path: str,
        remote_path: str | None = None,
        global_step: int = 0,
        max_ckpt_to_keep: int | None = None,
    ) -> None:
        """veRL's method. `local_path` is AZR's `global_step_<n>/actor`."""
        plain = self._state()
        for engine in self._engines:
            folder = Path(local_path).absolute() / FOLDER / engine.group.name
            engine.call("save_checkpoint", str(folder), global_step, plain)
        self._saved_at(global_step)
        if max_ckpt_to_keep:
            _remove_old(Path(local_path), max_ckpt_to_keep)

    def load_checkpoint(self, local_path: str, del_local_after_load: bool = False) -> None:
        """veRL's method. The checkpoint is kept, also with trainer.del_local_ckpt_after_load."""
        plain = None
        for engine in self._engines:
            name = engine.group.name
            folder = Path(local_path).absolute() / FOLDER / name
            if not folder.is_dir():
                raise UserError(
                    f"{local_path} holds no population with placement of {name}: it was "
                    "written by stock AZR, or with another population.placement"
                )
            # Hashed here, once for all ranks.
            checkpoint = load_latest(folder, mapped=True)
            engine.call("load_checkpoint", str(folder), checkpoint.step)
            plain = checkpoint.plain
            self._saved_at(checkpoint.step)
        assert plain is not None
        self._load_state(plain)

    def read_member(self, slot: int) -> Adapter:
        """A copy of the member's factors, on the CPU."""
        engine, local = self._holder(slot)
        return engine.read(local)

    def write_member(self, slot: int, adapter: Adapter) -> None:
        """Replaces the member's factors on every rank and starts its optimizer afresh."""
        engine, local = self._holder(slot)
        engine.write(local, adapter)

    def evolve(
        self, slot: int, parents: Sequence[int], recipe: Mapping[str, Any], seed: int
    ) -> Breeding:
        """A child of `parents` (of one role) in the place of `slot`, by `breed` with the keywords
        in `recipe`."""
        engine, local = self._holder(slot)
        places = [parent - engine.group.first for parent in parents]
        return engine.call("evolve", local, places, dict(recipe), seed)[0]

    def _sampling(self, meta: Mapping[str, Any]) -> Sampling:
        if not meta.get("do_sample", True):
            return Sampling(self._max_new_tokens, temperature=0.0)
        # AZR estimates solve rates under `validate`, where stock veRL samples at val_kwargs'
        # temperature, by default 0: n_samples equal answers. We sample unless it says otherwise.
        if meta.get("validate") and self._validation_temperature > 0:
            return Sampling(self._max_new_tokens, self._validation_temperature)
        return Sampling(self._max_new_tokens)

    def _by_row(
        self,
        slots: Sequence[int],
        compute: Callable[[RayEngine, list[int], list[int]], list[Result]],
    ) -> list[Result]:
        """`compute(engine, rows, their members' slots in it)` on every group that holds rows, at
        once; the results in the rows' own order."""
        held = [
            (engine, [row for row, slot in enumerate(slots) if slot in engine.group])
            for engine in self._engines
        ]

        def call(part: tuple[RayEngine, list[int]]) -> list[tuple[int, Result]]:
            engine, rows = part
            local = [slots[row] - engine.group.first for row in rows]
            return list(zip(rows, compute(engine, rows, local), strict=True))

        parts = _at_once(call, [part for part in held if part[1]])
        placed = dict(pair for part in parts for pair in part)
        return [placed[row] for row in range(len(slots))]

    def _holder(self, slot: int) -> tuple[RayEngine, int]:
        """The engine of the member, and its slot there."""
        engine = next(engine for engine in self._engines if slot in engine.group)
        return engine, slot - engine.group.first

    def _saved_at(self, step: int) -> None:
        """Whoever loses a worker is told how to go on from here."""
        way_on = (
            "the same command with trainer.resume_mode=auto goes on from the checkpoint of step "
            f"{step}"
            if step
            else "there is no checkpoint yet (trainer.save_freq), so the same command starts again"
        )
        for engine in self._engines:
            engine.way_on = way_on


def _at_once(call: Callable[[Any], Result], parts: Sequence[Any]) -> list[Result]:
    """The results of a call for each part, all of them waited for together."""
    with ThreadPoolExecutor(max(1, len(parts))) as pool:
        return list(pool.map(call, parts))


def _rows(batch: DataProto) -> tuple[list[list[int]], list[list[int]]]:
    """The token ids of prompts and of responses, without padding."""
    width, mask = batch.batch["responses"].shape[1], batch.batch["attention_mask"]
    prompts = prompt_rows(batch.batch["input_ids"][:, :-width], mask[:, :-width])
    return prompts, response_rows(batch.batch["responses"], mask)


def _members(batch: DataProto) -> list[int]:
    return [int(slot) for slot in batch.non_tensor_batch["member"]]


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
