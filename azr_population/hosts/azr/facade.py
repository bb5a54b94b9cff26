"""The facade: all members behind the interface of the one worker group that AZR expects.

AZR's trainer and reward manager call `generate_sequences`, `compute_log_prob` and `update_actor` on
whole batches and know nothing of members. The facade knows each row's member, turns veRL's tensors
into rows of token ids, and has a `RayEngine` compute them.
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

from azr_population.domains.code.task_types import TaskType
from azr_population.engines.engine import (
    Completion,
    GeneratedCounts,
    PromptBatch,
    Sampling,
    TrainingSample,
    Updates,
)
from azr_population.engines.workers.ray_engine import RayEngine
from azr_population.errors import UserError
from azr_population.hosts.azr.batches import (
    COMPLETION,
    padded_right,
    prompt_rows,
    with_responses,
)
from azr_population.method.population import Population
from azr_population.runs.checkpoint import EARLIER_INSIDE_AZR, load_latest, restoring
from azr_population.runs.records import by_number

FOLDER = "population"
"""The population's part of AZR's checkpoints, in its own `global_step_<n>/actor`."""

PHASES = ("gen", "pred", "estimate")
"""First parts of the names of a step's batches (`gen_code_o`)."""
TYPES = tuple(TaskType)
ROWS = 2**24
"""Row numbers that each of them has, so that a row draws the same in whatever call it is."""


class PopulationWorkerGroup:
    """All members behind the interface of veRL's actor-rollout worker group.

    `world_size` is 1 for AZR, because the engine splits and balances rows. `pad_id` fills up
    responses. AZR's last call in a step is `update_actor`; behind it `after_update` plays the rest
    of the step and its result becomes AZR's metrics. `default` is the slot that writes rows that
    are not routed, `ahead` has the batches that have been generated and not yet handed out,
    `generated` counts what has been handed out in this step.
    """

    world_size = 1

    def __init__(
        self,
        engine: RayEngine,
        population: Population,
        pad_id: int,
        max_new_tokens: int,
        validation_temperature: float,
        after_update: Callable[[Updates], dict[str, float]],
    ) -> None:
        self.engine = engine
        self.default = 0
        self._population = population
        self._pad_id = pad_id
        self._max_new_tokens = max_new_tokens
        self._validation_temperature = validation_temperature
        self._after_update = after_update
        self._routed: str | None = None
        self._saved_at(0)
        self.begin_step(0)

    def begin_step(self, step: int) -> None:
        """From here on the random streams of generation are those of `step`."""
        self._step, self._calls = step, 0
        self.ahead: dict[str, tuple[PromptBatch, list[Completion]]] = {}
        self.generated = GeneratedCounts()

    @contextmanager
    def routed(self, name: str) -> Iterator[PopulationWorkerGroup]:
        """Inside, `generate_sequences` hands out the batch `name`, which `prefetch` has
        generated."""
        before, self._routed = self._routed, name
        try:
            yield self
        finally:
            self._routed = before

    def prefetch(
        self,
        batches: Mapping[str, PromptBatch],
        on_finished: Callable[[str, int, Completion], None],
        validate: bool = False,
    ) -> dict[str, list[Completion]]:
        """Generates batches of the step in one call, for `generate_sequences` to hand out.

        `on_finished` gets (name, row, completion) as rows end. With `validate` rows are sampled as
        AZR's estimates of solve rates are.
        """
        rows = [(name, row) for name, batch in batches.items() for row in range(len(batch.prompts))]
        merged = PromptBatch(
            [prompt for batch in batches.values() for prompt in batch.prompts],
            [slot for batch in batches.values() for slot in batch.slots],
            [n for name, batch in batches.items() for n in _numbers(name, batch.numbers)],
        )
        written: dict[tuple[str, int], Completion] = {}
        for position, completion in self._generate(merged, self._sampling({"validate": validate})):
            written[rows[position]] = completion
            on_finished(*rows[position], completion)
        for name, batch in batches.items():
            self.ahead[name] = batch, [written[name, row] for row in range(len(batch.prompts))]
        return {name: self.ahead[name][1] for name in batches}

    def generate_sequences(self, prompts: DataProto) -> DataProto:
        """veRL's method: `input_ids`, `attention_mask`, `position_ids` in, responses added."""
        given = prompt_rows(prompts.batch)
        if self._routed is None:  # AZR's validation
            batch = PromptBatch(given, [self.default] * len(given), range(len(given)))
            by_row = dict(self._generate(batch, self._sampling(prompts.meta_info), named=False))
            return self.output(prompts, [by_row[row] for row in range(len(given))])
        batch, written = self.ahead.pop(self._routed)
        if batch.prompts != given:
            raise RuntimeError(f"AZR brings other prompts of {self._routed} than were generated")
        self.generated.add(written)
        return self.output(prompts, written)

    def output(self, prompts: DataProto, written: Sequence[Completion]) -> DataProto:
        """The batch of prompts with what has been generated for them."""
        responses = [completion.token_ids for completion in written]
        tensors = with_responses(prompts.batch, responses, self._max_new_tokens, self._pad_id)
        others = {**prompts.non_tensor_batch, COMPLETION: np.array(written, dtype=object)}
        return DataProto.from_dict(tensors=tensors, non_tensors=others)

    def compute_log_prob(self, batch: DataProto) -> DataProto:
        """veRL's method: `old_log_probs` and `entropys` [rows, R].

        The log-probabilities are the sampler's, as in a local run; an update corrects them by
        importance weights and has its own entropies. Here they are unknown, so NaN.
        """
        written = batch.non_tensor_batch[COMPLETION]
        logprobs = [torch.tensor(completion.logprobs) for completion in written]
        sampled = padded_right(logprobs, self._max_new_tokens)
        tensors = {"old_log_probs": sampled, "entropys": torch.full_like(sampled, torch.nan)}
        return DataProto.from_dict(tensors=tensors, meta_info={"temperature": 1.0})

    def update_actor(self, batch: DataProto) -> DataProto:
        """veRL's method: one update per member, then the rest of the step; AZR's metrics in
        `meta_info`."""
        hyperparameters = self._population.hyperparameters()
        samples: dict[int, list[TrainingSample]] = {slot: [] for slot in sorted(hyperparameters)}
        advantages = batch.batch["advantages"][:, 0].tolist()  # one value a row, as gamma is 1
        written = batch.non_tensor_batch[COMPLETION]
        for completion, advantage in zip(written, advantages, strict=True):
            if completion.token_ids:
                samples[completion.slot].append(TrainingSample(completion, advantage))
        learn = any(samples.values())
        updates = self.engine.update(samples, hyperparameters) if learn else {}
        return DataProto(meta_info={"metrics": self._after_update(updates)})

    def save_checkpoint(
        self,
        local_path: str,
        remote_path: str | None = None,
        global_step: int = 0,
        max_ckpt_to_keep: int | None = None,
    ) -> None:
        """veRL's method. `local_path` is AZR's `global_step_<n>/actor`."""
        folder = _members_folder(local_path)
        self.engine.call("save_checkpoint", str(folder), global_step, self._population.state())
        self._saved_at(global_step)
        if max_ckpt_to_keep:
            _remove_old(Path(local_path), max_ckpt_to_keep)

    def load_checkpoint(self, local_path: str, del_local_after_load: bool = False) -> None:
        """veRL's method. The checkpoint is kept, also with trainer.del_local_ckpt_after_load."""
        folder = _members_folder(local_path)
        if not folder.is_dir():
            raise UserError(f"{local_path} holds no population: it was written by stock AZR")
        # Hashed here, once for all ranks.
        checkpoint = load_latest(folder, mapped=True, way_out=EARLIER_INSIDE_AZR)
        self.engine.call("load_checkpoint", str(folder), checkpoint.step)
        where = f"{folder}/step_{checkpoint.step}"
        with restoring(where, checkpoint.plain, way_out=EARLIER_INSIDE_AZR):
            self._population.load_state(checkpoint.plain)
        self._saved_at(checkpoint.step)

    def _generate(
        self, batch: PromptBatch, sampling: Sampling, named: bool = True
    ) -> Iterator[tuple[int, Completion]]:
        """One call: (row, completion) as rows end. Rows of named batches have numbers of their own;
        AZR's other calls a seed."""
        self._calls += 1
        stream = "generate" if named else f"generate {self._calls}"
        seed = self._population.streams.integer(stream, self._step) >> 1
        for finished in self.engine.stream(batch, sampling, seed):
            for row, (completion,) in finished:
                yield row, completion

    def _sampling(self, meta: Mapping[str, Any]) -> Sampling:
        if not meta.get("do_sample", True):
            return Sampling(self._max_new_tokens, temperature=0.0)
        # AZR estimates solve rates under `validate`, where stock veRL samples at val_kwargs'
        # temperature, by default 0: n_samples equal answers. We sample unless it says otherwise.
        if meta.get("validate") and self._validation_temperature > 0:
            return Sampling(self._max_new_tokens, self._validation_temperature)
        return Sampling(self._max_new_tokens)

    def _saved_at(self, step: int) -> None:
        """Sets what the user can do if a worker dies."""
        self.engine.recovery_hint = (
            "the same command with trainer.resume_mode=auto goes on from the checkpoint of step "
            f"{step}"
            if step
            else "there is no checkpoint yet (trainer.save_freq), so the same command starts again"
        )


def _numbers(name: str, numbers: Sequence[int]) -> list[int]:
    """The numbers by which rows of a batch draw, in the range of its name."""
    phase, _, kind = name.partition("_")
    batch_number = PHASES.index(phase) + len(PHASES) * TYPES.index(kind)
    return [batch_number * ROWS + number for number in numbers]


def _members_folder(local_path: str) -> Path:
    return Path(local_path).absolute() / FOLDER / "members"


def _remove_old(local_path: Path, keep: int) -> None:
    """Removes the population's part of all but the newest `keep` of AZR's checkpoints up to this
    one, and that which AZR names as its latest: it names this one when all of it is written. Later
    ones are of a run that went back, and may be damaged."""
    this = local_path.absolute()
    latest = this.parents[1] / "latest_checkpointed_iteration.txt"
    named = f"global_step_{latest.read_text().strip()}" if latest.is_file() else ""
    held = {
        number: path
        for path in this.parents[1].glob(f"global_step_*/actor/{FOLDER}")
        if (number := by_number(path.parts[-3])) <= by_number(this.parent.name)
    }
    for number in sorted(held)[:-keep]:
        if held[number].parts[-3] != named:
            shutil.rmtree(held[number])
