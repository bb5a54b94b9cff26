"""The worker inside AZR: a worker of the population that takes veRL's batches.

Rows come split over ranks and name their member in `non_tensor_batch["slot"]`, -1 being a row that
only fills up the split, and their number among all ranks' in `non_tensor_batch["row"]`: what a row
draws depends on the seed and its number, not on its rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from verl import DataProto
from verl.single_controller.base.decorator import Dispatch, register

from azr_population.engines.engine import Completion, Sampling, TrainingSample
from azr_population.engines.workers.placement import Room
from azr_population.engines.workers.worker import EngineWorker, WorkerSettings
from azr_population.errors import UserError
from azr_population.hosts.azr.tokens import padded_right, prompt_rows, response_rows, with_responses
from azr_population.runs.checkpoint import read_tensors, save_checkpoint

FILLER = -1
"""The slot of a row that is there only because rows must split evenly."""

OTHER_RUN = "resume with the same +population, or give another trainer.experiment_name"

ROOM = Room(
    # AZR's TaskRunner, which the trainer is in, has one CPU.
    driver=1,
    cpus="raise ray_init.num_cpus",
    gpus="lower trainer.n_gpus_per_node",
    nodes="set trainer.n_gpus_per_node and trainer.nnodes to what there is",
)


@dataclass(frozen=True, kw_only=True)
class BatchWorkerSettings(WorkerSettings):
    """Those of any worker, and the length that AZR's responses are padded to."""

    response_length: int


class PopulationWorker(EngineWorker):
    """The members of one worker group on one rank, behind the methods that AZR's trainer calls."""

    settings: BatchWorkerSettings

    @register(dispatch_mode=Dispatch.DP_COMPUTE_PROTO, blocking=False)
    def generate_sequences(self, data: DataProto) -> DataProto:
        """One response to each prompt, by its member.

        `data`: `input_ids`, `attention_mask`, `position_ids` [rows, P] and `slot`. `meta_info`:
        `sampling` (`Sampling`), `seed`. Returns veRL's tensors, see `tokens.with_responses`.
        """
        prompts = prompt_rows(data.batch["input_ids"], data.batch["attention_mask"])
        slots = _slots(data)
        wanted = [row for row in range(len(prompts)) if slots[row] != FILLER]
        completions = self.generate(
            [prompts[row] for row in wanted],
            [slots[row] for row in wanted],
            data.meta_info["sampling"],
            data.meta_info["seed"],
            [int(data.non_tensor_batch["row"][row]) for row in wanted],
        )
        responses: list[Sequence[int]] = [[] for _ in prompts]
        for row, (completion,) in zip(wanted, completions, strict=True):
            responses[row] = completion.token_ids
        width = self.settings.response_length
        tensors = with_responses(data.batch, responses, width, self.pad_id)
        if self.settings.learner.importance_sampling_cap:
            logprobs = [torch.empty(0) for _ in prompts]
            for row, (completion,) in zip(wanted, completions, strict=True):
                logprobs[row] = torch.tensor(completion.logprobs[:width])
            tensors["rollout_log_probs"] = padded_right(logprobs, width)
        return DataProto.from_dict(tensors=tensors)

    def generate(
        self,
        prompts: Sequence[list[int]],
        slots: Sequence[int],
        sampling: Sampling,
        seed: int,
        rows: Sequence[int],
    ) -> list[list[Completion]]:
        """See `Rollout`; a test's worker may answer by a script."""
        return self.engine.generate(prompts, slots, sampling, seed, rows)

    @register(dispatch_mode=Dispatch.DP_COMPUTE_PROTO, blocking=False)
    def compute_log_prob(self, data: DataProto) -> DataProto:
        """`old_log_probs` and `entropys` [rows, R] of the responses, 0 where there is no token."""
        prompts, responses = _rows(data)
        slots = _slots(data)
        answers = [
            ids if slot != FILLER else [] for ids, slot in zip(responses, slots, strict=True)
        ]
        chosen, entropies = self.engine.log_probs(prompts, answers, slots)
        width = data.batch["responses"].shape[1]
        return DataProto.from_dict(
            tensors={
                "old_log_probs": padded_right(chosen, width),
                "entropys": padded_right(entropies, width),
            }
        )

    @register(dispatch_mode=Dispatch.DP_COMPUTE_PROTO, blocking=False)
    def update_actor(self, data: DataProto) -> DataProto:
        """One policy-gradient step for each member that has rows on any rank.

        `data`: veRL's tensors, `old_log_probs` and `advantages` [rows, R] (one value per row, as
        gamma = 1 gives), `rollout_log_probs` where there is an importance cap, and `slot`.
        `meta_info["learning_rates"]`: by slot. Returns the members' metrics in
        `meta_info["updates"]`, by slot and the same from every rank.
        """
        prompts, responses = _rows(data)
        # With importance weights the learner works out its own log-probabilities.
        sampled = (
            "rollout_log_probs"
            if self.settings.learner.importance_sampling_cap
            else "old_log_probs"
        )
        rates: dict[int, float] = data.meta_info["learning_rates"]
        samples: dict[int, list[TrainingSample]] = {slot: [] for slot in sorted(rates)}
        for row, slot in enumerate(_slots(data)):
            length = len(responses[row])
            if slot == FILLER or not length:
                continue
            completion = Completion(
                slot=slot,
                prompt_ids=tuple(prompts[row]),
                token_ids=tuple(responses[row]),
                logprobs=tuple(data.batch[sampled][row, :length].tolist()),
                finished=True,
            )
            samples[slot].append(
                TrainingSample(completion, float(data.batch["advantages"][row, 0]))
            )
        updates = self.engine.update(samples, rates)
        # A row on each rank, because collecting concatenates; the figures are in the meta data.
        return DataProto.from_dict(
            tensors={"rank": torch.tensor([self.rank])}, meta_info={"updates": updates}
        )

    @register(dispatch_mode=Dispatch.ONE_TO_ALL)
    def save_checkpoint(self, folder: str, step: int, plain: dict[str, Any]) -> str | None:
        """The first rank writes `folder/step_<step>`: factors, optimizer states and `plain`."""
        if self.rank != 0:
            return None
        state = self.engine.state_dict()
        return str(save_checkpoint(Path(folder), step, state, plain, keep=1))

    @register(dispatch_mode=Dispatch.ONE_TO_ALL)
    def load_checkpoint(self, folder: str, step: int) -> None:
        """Every rank takes the members of a checkpoint that the trainer found to be sound."""
        tensors = read_tensors(Path(folder), step, mapped=True)
        theirs = len(tensors["adapters"])
        if theirs != self.settings.slots:
            raise UserError(
                f"{folder} was written by a run with {theirs} members in this place, and this one "
                f"has {self.settings.slots}; {OTHER_RUN}"
            )
        try:
            self.engine.load_state_dict(tensors)
        except UserError as error:
            raise UserError(
                f"{folder} was written by a run with other adapters ({error}); {OTHER_RUN}"
            ) from error

    @property
    def pad_id(self) -> int:
        """What fills up responses."""
        pad = self.tokenizer.pad_token_id
        return int(self.tokenizer.eos_token_id if pad is None else pad)


def _rows(data: DataProto) -> tuple[list[list[int]], list[list[int]]]:
    width = data.batch["responses"].shape[1]
    mask = data.batch["attention_mask"]
    prompts = prompt_rows(data.batch["input_ids"][:, :-width], mask[:, :-width])
    return prompts, response_rows(data.batch["responses"], mask)


def _slots(data: DataProto) -> list[int]:
    return [int(slot) for slot in np.asarray(data.non_tensor_batch["slot"])]
