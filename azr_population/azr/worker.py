"""One process of a worker group: the frozen base, the group's members, their methods under veRL.

Written against `verl.single_controller` (Worker, register, Dispatch) and `DataProto` alone, so that
it does not depend on veRL's own trainers and workers. Rows come split over ranks and name their
member in `non_tensor_batch["slot"]`; -1 is a row that only fills up the split.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import ray
import torch
import torch.distributed
from verl import DataProto
from verl.single_controller.base import Worker
from verl.single_controller.base.decorator import Dispatch, register

from azr_population.adapters.adapter import Adapter, Factors, LoraSpec
from azr_population.azr.data_parallel import DataParallelEngine
from azr_population.azr.log_probs import log_probs
from azr_population.azr.tokens import (
    member_batches,
    padded_right,
    prompt_rows,
    response_rows,
    with_responses,
)
from azr_population.engines.base_model import load_base
from azr_population.engines.decoding import decode
from azr_population.engines.engine import Completion, Sample, Sampling
from azr_population.errors import UserError
from azr_population.evolution.registry import breed
from azr_population.runs.checkpoint import load_latest, save_checkpoint

FILLER = -1
"""The slot of a row that is there only because rows must split evenly."""

OTHER_RUN = "resume with the same +population, or give another trainer.experiment_name"


@dataclass(frozen=True)
class WorkerSettings:
    """What a worker is made from; plain data, because it travels through Ray."""

    base: str
    """Folder of the base, or its name on the hub."""
    slots: int
    first_member: int
    """The slot in the roster of the group's first member; its weights are drawn accordingly."""
    device: str
    dtype: str
    lora: LoraSpec
    seed: int
    response_length: int
    threads: int = 0
    generate_rows: int = 256
    generate_tokens: int = 393_216
    micro_batch_tokens: int = 8192
    max_grad_norm: float = 1.0
    weight_decay: float = 0.0
    clip_ratio: float = 0.2
    gradient_checkpointing: bool = False


class PopulationWorker(Worker):
    """The members of one worker group on one rank."""

    engine: DataParallelEngine

    def __init__(self, settings: WorkerSettings) -> None:
        super().__init__()
        self.settings = settings

    @register(dispatch_mode=Dispatch.ONE_TO_ALL)
    def init_model(self) -> str:
        """Joins the group, loads the base and draws the members, the same on every rank.

        Returns where the rank runs: its node, and its GPU where it has one.
        """
        settings = self.settings
        if settings.threads:
            torch.set_num_threads(settings.threads)
        if self.world_size > 1 and not torch.distributed.is_initialized():
            torch.distributed.init_process_group(
                "nccl" if settings.device == "cuda" else "gloo",
                rank=self.rank,
                world_size=self.world_size,
            )
        self.engine = self.make_engine()
        if settings.gradient_checkpointing:
            self.engine.use_gradient_checkpointing()
        for slot in range(settings.slots):
            generator = torch.Generator().manual_seed(
                settings.seed * 10_007 + settings.first_member + slot
            )
            self.engine.bank.init_member(slot, generator)
        gpus = "".join(f" GPU {gpu}" for gpu in ray.get_gpu_ids())
        return f"{ray.util.get_node_ip_address()}{gpus}"

    def make_engine(self) -> DataParallelEngine:
        """The engine; a test's worker may have another one."""
        settings = self.settings
        model, tokenizer = load_base(local_base(settings.base), settings.dtype, settings.device)
        return DataParallelEngine(
            model,
            tokenizer,
            settings.lora,
            settings.slots,
            torch.Generator().manual_seed(settings.seed),
            generate_rows=settings.generate_rows,
            micro_batch_tokens=settings.micro_batch_tokens,
            max_grad_norm=settings.max_grad_norm,
            weight_decay=settings.weight_decay,
            clip_ratio=settings.clip_ratio,
        )

    @register(dispatch_mode=Dispatch.DP_COMPUTE_PROTO, blocking=False)
    def generate_sequences(self, data: DataProto) -> DataProto:
        """One response to each prompt, by its member.

        `data`: `input_ids`, `attention_mask`, `position_ids` [rows, P] and `slot`. `meta_info`:
        `sampling` (`Sampling`), `seed`. Returns veRL's tensors, see `tokens.with_responses`.
        """
        prompts = prompt_rows(data.batch["input_ids"], data.batch["attention_mask"])
        slots = _slots(data)
        completions: list[list[int]] = [[] for _ in prompts]
        wanted = [row for row in range(len(prompts)) if slots[row] != FILLER]
        for rows, ids in self.generate(
            [prompts[row] for row in wanted],
            [slots[row] for row in wanted],
            data.meta_info["sampling"],
            data.meta_info["seed"] + self.rank,
        ):
            completions[wanted[rows]] = ids
        tensors = with_responses(
            data.batch,
            completions,
            self.settings.response_length,
            self.pad_id,
        )
        return DataProto.from_dict(tensors=tensors)

    def generate(
        self,
        prompts: Sequence[list[int]],
        slots: Sequence[int],
        sampling: Sampling,
        seed: int,
    ) -> list[tuple[int, list[int]]]:
        """(place, token ids of the response) for every prompt, in the order of decoding."""
        generator = torch.Generator(device=self.settings.device).manual_seed(seed)
        done: list[tuple[int, list[int]]] = []
        for rows in member_batches(
            [len(prompt) + sampling.max_new_tokens for prompt in prompts],
            slots,
            self.settings.generate_tokens,
            self.settings.generate_rows,
        ):
            decoded = decode(
                self.engine.model,
                self.engine.bank,
                [prompts[row] for row in rows],
                [slots[row] for row in rows],
                sampling,
                self.engine.stop_ids,
                generator,
            )
            done += [(row, one.token_ids) for row, (one,) in zip(rows, decoded, strict=True)]
        return done

    @register(dispatch_mode=Dispatch.DP_COMPUTE_PROTO, blocking=False)
    def compute_log_prob(self, data: DataProto) -> DataProto:
        """`old_log_probs` and `entropys` [rows, R] of the responses, 0 where there is no token."""
        prompts, responses = _rows(data)
        slots = [max(slot, 0) for slot in _slots(data)]
        chosen, entropies = log_probs(
            self.engine, prompts, responses, slots, self.settings.micro_batch_tokens
        )
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
        gamma = 1 gives) and `slot`. `meta_info["learning_rates"]`: by slot. Returns the members'
        metrics in `meta_info["updates"]`, by slot and the same from every rank.
        """
        prompts, responses = _rows(data)
        rates: dict[int, float] = data.meta_info["learning_rates"]
        samples: dict[int, list[Sample]] = {slot: [] for slot in sorted(rates)}
        for row, slot in enumerate(_slots(data)):
            length = len(responses[row])
            if slot == FILLER or not length:
                continue
            completion = Completion(
                member=slot,
                prompt_ids=tuple(prompts[row]),
                token_ids=tuple(responses[row]),
                logprobs=tuple(data.batch["old_log_probs"][row, :length].tolist()),
                text="",
                finished=True,
            )
            samples[slot].append(Sample(completion, float(data.batch["advantages"][row, 0])))
        updates = self.engine.update(samples, rates)
        # A row on each rank, because collecting concatenates; the figures are in the meta data.
        return DataProto.from_dict(
            tensors={"rank": torch.tensor([self.rank])}, meta_info={"updates": updates}
        )

    @register(dispatch_mode=Dispatch.ONE_TO_ALL)
    def read_member(self, slot: int) -> Adapter | None:
        """A copy of the member's factors on the CPU, from the first rank; None from the others."""
        return _on_cpu(self.engine.read_member(slot)) if self.rank == 0 else None

    @register(dispatch_mode=Dispatch.ONE_TO_ALL)
    def write_member(self, slot: int, adapter: Adapter) -> None:
        """Replaces the member's factors on every rank and starts its optimizer afresh."""
        self.engine.write_member(slot, adapter)

    @register(dispatch_mode=Dispatch.ONE_TO_ALL)
    def evolve(
        self, slot: int, parents: Sequence[int], recipe: Mapping[str, Any], seed: int
    ) -> tuple[str, dict[str, Any], dict[str, float]]:
        """Puts a child of `parents` (slots, the better one first) in the place of `slot`.

        `recipe` are keywords of `breed`: mix, options, adapt, inherited. Returns the operator that
        was drawn, its options and its step sizes. Bred on the CPU of every rank from the
        same seed, then sent from the first rank, so that ranks cannot drift apart.
        """
        child = breed(
            parents=[_on_cpu(self.engine.read_member(parent)) for parent in parents],
            generator=torch.Generator().manual_seed(seed),
            **recipe,
        )
        self.engine.write_member(slot, child.adapter)
        self.engine.share_member(slot)
        return child.operator, child.options, child.step_sizes

    @register(dispatch_mode=Dispatch.ONE_TO_ALL)
    def save_checkpoint(self, folder: str, step: int, plain: dict[str, Any]) -> str | None:
        """The first rank writes `folder/step_<step>`: factors, optimizer states and `plain`."""
        if self.rank != 0:
            return None
        state = self.engine.state_dict()
        return str(save_checkpoint(Path(folder), step, state, plain, keep=1))

    @register(dispatch_mode=Dispatch.ONE_TO_ALL)
    def load_checkpoint(self, folder: str) -> dict[str, Any]:
        """Every rank reads the checkpoint in `folder`; returns its step and plain data."""
        checkpoint = load_latest(Path(folder))
        theirs = len(checkpoint.tensors["adapters"])
        if theirs != self.settings.slots:
            raise UserError(
                f"{folder} was written by a run with {theirs} members in this place, and this one "
                f"has {self.settings.slots}; {OTHER_RUN}"
            )
        try:
            self.engine.load_state_dict(checkpoint.tensors)
        except UserError as error:
            raise UserError(
                f"{folder} was written by a run with other adapters ({error}); {OTHER_RUN}"
            ) from error
        return {"step": checkpoint.step, "plain": checkpoint.plain}

    @register(dispatch_mode=Dispatch.ONE_TO_ALL)
    def digest(self) -> str:
        """SHA-256 over all members on this rank."""
        return self.engine.digest()

    @property
    def pad_id(self) -> int:
        """What fills up responses."""
        pad = self.engine.tokenizer.pad_token_id
        return int(self.engine.tokenizer.eos_token_id if pad is None else pad)


def local_base(name: str) -> str:
    """The folder of a base given as a folder or as a name on the hub (downloaded if needed)."""
    folder = os.path.expanduser(name)
    if os.path.isdir(folder):
        return folder
    from huggingface_hub import snapshot_download

    return str(snapshot_download(name))


def _rows(data: DataProto) -> tuple[list[list[int]], list[list[int]]]:
    width = data.batch["responses"].shape[1]
    mask = data.batch["attention_mask"]
    prompts = prompt_rows(data.batch["input_ids"][:, :-width], mask[:, :-width])
    return prompts, response_rows(data.batch["responses"], mask)


def _slots(data: DataProto) -> list[int]:
    return [int(slot) for slot in np.asarray(data.non_tensor_batch["slot"])]


def _on_cpu(adapter: Adapter) -> Adapter:
    return Adapter(
        adapter.spec,
        {name: Factors(pair.A.cpu(), pair.B.cpu()) for name, pair in adapter.factors.items()},
    )
