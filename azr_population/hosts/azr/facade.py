"""The facade: all members behind the interface of the one worker group that AZR expects.

AZR's trainer and reward manager call `generate_sequences`, `compute_log_prob` and `update_actor` on
whole batches and know nothing of members. The facade knows each row's member, turns veRL's tensors
into rows of token ids, lets the engine of the member's group compute them, and returns the results
in order.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor
from verl import DataProto

from azr_population.domains.code.task_types import CODE_E, TaskType
from azr_population.engines.engine import (
    Completion,
    Finished,
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
    PromptBatch,
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

PHASES = ("gen", "pred", "estimate")
"""What the names of a step's batches begin with (`gen_code_o`)."""
TYPES = (*TaskType, CODE_E)
ROWS = 2**24
"""Row numbers that each of them has, so that a row draws the same in whatever call it is."""

SAMPLED = "sampled_log_probs"
"""Beside veRL's tensors: the sampler's log-probabilities [rows, R]."""

Result = TypeVar("Result")


class PopulationGroup:
    """All members behind the interface of veRL's actor-rollout worker group.

    `world_size` is 1 for AZR, because splitting and balancing happen in here. `pad_id` fills up
    responses. AZR's last call in a step is `update_actor`; behind it `after_update` plays the rest
    of the step and its result becomes AZR's metrics. `default` is the slot that writes
    rows that are not routed.
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
        self._pad_id = pad_id
        self.default = 0
        self._max_new_tokens = max_new_tokens
        self._validation_temperature = validation_temperature
        self._streams = streams
        self._after_update = after_update
        self._hyperparameters = hyperparameters
        self._state = state
        self._load_state = load_state
        self._route: tuple[str, list[int]] | None = None
        self._ahead: dict[str, tuple[PromptBatch, list[Completion]]] = {}
        self._generated = GeneratedCounts()
        self._step = 0
        self._calls = 0
        self._saved_at(0)

    def begin_step(self, step: int) -> None:
        """From here on the random streams of generation are those of `step`."""
        self._step, self._calls, self._ahead = step, 0, {}
        self._generated = GeneratedCounts()

    @contextmanager
    def routed(self, slots: Sequence[int], name: str) -> Iterator[PopulationGroup]:
        """Inside, `generate_sequences` hands out the batch `name`, which `prefetch` has generated;
        its row i is by the member in slot `slots[i]`."""
        before, self._route = self._route, (name, [int(slot) for slot in slots])
        try:
            yield self
        finally:
            self._route = before

    def has(self, name: str) -> bool:
        """Whether the batch has been generated and not yet handed out."""
        return name in self._ahead

    def prefetch(
        self,
        batches: Mapping[str, PromptBatch],
        on_finished: Callable[[str, list[int], list[Completion]], None],
        validate: bool = False,
    ) -> dict[str, list[Completion]]:
        """Generates batches of the step in one call, for `generate_sequences` to hand out.

        `on_finished` gets (name, rows, their completions) as rows end. With `validate` rows are
        sampled as AZR's estimates of solve rates are.
        """
        rows = [(name, row) for name, batch in batches.items() for row in range(len(batch.prompts))]

        def finished(done: Sequence[tuple[int, Completion]]) -> None:
            by_name: dict[str, list[tuple[int, Completion]]] = {}
            for place, completion in done:
                name, row = rows[place]
                by_name.setdefault(name, []).append((row, completion))
            for name, pairs in by_name.items():
                on_finished(
                    name, [row for row, _ in pairs], [completion for _, completion in pairs]
                )

        whole = PromptBatch(
            [prompt for batch in batches.values() for prompt in batch.prompts],
            [slot for batch in batches.values() for slot in batch.slots],
            [n for name, batch in batches.items() for n in _numbers(name, batch.numbers)],
        )
        written = iter(self._generate(whole, self._sampling({"validate": validate}), finished))
        for name, batch in batches.items():
            self._ahead[name] = batch, [next(written) for _ in batch.prompts]
        return {name: self._ahead[name][1] for name in batches}

    def take_generated(self) -> GeneratedCounts:
        """What the routed calls of this step have generated so far, by slot."""
        return self._generated

    def generate_sequences(self, prompts: DataProto) -> DataProto:
        """veRL's method: `input_ids`, `attention_mask`, `position_ids` in, responses added."""
        given = prompt_rows(prompts.batch["input_ids"], prompts.batch["attention_mask"])
        if self._route is None:  # AZR's validation
            batch = PromptBatch(given, [self.default] * len(given), range(len(given)))
            written = self._generate(batch, self._sampling(prompts.meta_info), named=False)
            return DataProto.from_dict(tensors=self.tensors(prompts, written))
        name, slots = self._route
        batch, written = self._ahead.pop(name)
        if (batch.prompts, batch.slots) != (given, slots):
            raise RuntimeError(f"AZR brings other prompts of {name} than were generated")
        for slot, completion in zip(slots, written, strict=True):
            self._generated.add(slot, completion)
        return DataProto.from_dict(tensors=self.tensors(prompts, written))

    def tensors(self, prompts: DataProto, written: Sequence[Completion]) -> dict[str, Tensor]:
        """veRL's tensors of rows that have been generated."""
        width = self._max_new_tokens
        responses = [completion.token_ids for completion in written]
        tensors = with_responses(prompts.batch, responses, width, self._pad_id)
        logprobs = [torch.tensor(completion.logprobs[:width]) for completion in written]
        return {**tensors, SAMPLED: padded_right(logprobs, width)}

    def _generate(
        self,
        batch: PromptBatch,
        sampling: Sampling,
        on_finished: Callable[[Sequence[tuple[int, Completion]]], None] | None = None,
        named: bool = True,
    ) -> list[Completion]:
        """One call. Rows of named batches have numbers of their own; AZR's other calls a seed."""
        self._calls += 1
        stream = "generate" if named else f"generate {self._calls}"
        seed = self._streams.integer(stream, self._step) >> 1

        def generate(engine: RayEngine, rows: list[int], local: list[int]) -> list[Completion]:
            def finished(done: Sequence[Finished]) -> None:
                if on_finished:
                    on_finished([(rows[place], group[0]) for place, group in done])

            groups = engine.generate(
                [batch.prompts[row] for row in rows],
                local,
                sampling,
                seed,
                [batch.numbers[row] for row in rows],
                finished,
            )
            return [completion for (completion,) in groups]

        return self._by_row(batch.slots, generate)

    def compute_log_prob(self, batch: DataProto) -> DataProto:
        """veRL's method: `old_log_probs` and `entropys` [rows, R].

        The log-probabilities are the sampler's, as in a local run; an update corrects them by
        importance weights and has its own entropies. Here they are unknown, so NaN.
        """
        sampled = batch.batch[SAMPLED]
        tensors = {
            "old_log_probs": sampled.clone(),
            "entropys": torch.full_like(sampled, torch.nan),
        }
        return DataProto.from_dict(tensors=tensors, meta_info={"temperature": 1.0})

    def update_actor(self, batch: DataProto) -> DataProto:
        """veRL's method: `update`, then the rest of the step; AZR's metrics in `meta_info`."""
        return DataProto(meta_info={"metrics": self._after_update(self.update(batch))})

    def update(self, batch: DataProto) -> Updates:
        """One update per member."""
        prompts, responses = _rows(batch)
        sampled = batch.batch["old_log_probs"]
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
        """Sets what the user can do if a worker dies."""
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


def _numbers(name: str, numbers: Sequence[int]) -> list[int]:
    """The numbers by which rows of a batch draw, in the range of its name."""
    phase, _, kind = name.partition("_")
    place = PHASES.index(phase) + len(PHASES) * TYPES.index(kind)
    return [place * ROWS + number for number in numbers]


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
