"""The learner in plain torch: a bank of members on a frozen base and one optimizer per member.

On one machine's CPU the same seeds, threads and versions give the same bits.

On several ranks (`parallel`) rows are split, the gradients of a member's factors are summed, and
every rank makes the same optimizer step, so nothing but gradients of adapters travels. They are
added up in float64 over pieces that do not depend on the number of ranks: AdamW's first steps are
as large for a gradient of 1e-9 as for one of 1, so that rounding in float32 alone moves members
apart.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
import torch.distributed
from torch import Tensor, nn

from azr_population.config.schema import LearnerConfig
from azr_population.engines.engine import (
    NO_ADAPTER,
    Hyperparameters,
    Ids,
    TrainingSample,
    Updates,
)
from azr_population.engines.micro_batches import collate, length, nothing, pieces
from azr_population.engines.offload import Offload
from azr_population.engines.optimizers import OPTIMIZERS
from azr_population.engines.policy_gradient import (
    POLICY_LOSSES,
    finish_metrics,
    metric_names,
    policy_loss,
)
from azr_population.engines.sharding import give_back, ranks
from azr_population.engines.shared_prefix import shares_prompts
from azr_population.engines.token_log_probs import log_probs
from azr_population.weights.adapter import Adapter, Factors
from azr_population.weights.bank import Bank

PIECES = 8
"""On several ranks a member's rows are cut into at least so many, however many ranks there are."""


class TorchLearner:
    """Trains the members of `bank`, whose adapters are on `model`.

    With `parallel` updates sum over the ranks of torch's default process group: every rank has to
    call `update` with the same members in the same order, and with no samples where it has none.
    """

    def __init__(
        self,
        model: nn.Module,
        bank: Bank,
        config: LearnerConfig | None = None,
        parallel: bool = False,
    ) -> None:
        """An importance cap that is empty in `config` is 0 here: the sampler is this learner."""
        self.parallel = parallel
        self._sums: list[Tensor] = []
        """With `parallel` the gradients of the member that is being updated, in float64."""
        self.model = model
        self.bank = bank
        self.config = config or LearnerConfig()
        self.shares_prompts = self.config.share_prefix and shares_prompts(model)
        """Whether a prompt goes through an update once for all its completions."""
        self._products = self._dtype_of_products()
        self._optimizer = OPTIMIZERS.find(self.config.optimizer).function
        self._policy_loss = POLICY_LOSSES.find(self.config.policy_loss).function
        self._importance_cap = self.config.importance_sampling_cap or 0.0
        if self.config.gradient_checkpointing:
            to_checkpoint: Any = model
            to_checkpoint.gradient_checkpointing_enable({"use_reentrant": False})
        self._optimizers = {slot: self._new_optimizer(slot) for slot in range(bank.slots)}
        self._device = bank.device
        self._offload = Offload(model, bank) if self.config.offload else None

    def update(
        self,
        samples: Mapping[int, Sequence[TrainingSample]],
        hyperparameters: Mapping[int, Hyperparameters],
    ) -> Updates:
        """See `Learner`. Metrics: loss, entropy, approx_kl, clip_frac (means over tokens),
        grad_norm (before clipping), tokens, lr, updates (0 when the member had no samples); with
        an importance cap also mismatch_kl, ess and is_clip_frac, with `kl_loss_coef` kl_loss."""
        with self._computing():
            try:
                return {
                    slot: self._update_member(slot, rows, hyperparameters[slot])
                    for slot, rows in samples.items()
                }
            finally:
                self.model.eval()
                give_back(self.model)

    def log_probs(
        self, prompts: Sequence[Ids], responses: Sequence[Ids], slots: Sequence[int]
    ) -> tuple[list[Tensor], list[Tensor]]:
        """See `Learner`."""
        with self._computing():
            result = log_probs(
                self.model,
                self.bank,
                prompts,
                responses,
                slots,
                self.config.micro_batch_tokens,
                self._products,
                self._passes,
            )
            give_back(self.model)
        return result

    def read(self, slot: int) -> Adapter:
        """See `Learner`."""
        return self.bank.read(slot)

    def write(self, slot: int, adapter: Adapter) -> None:
        """See `Learner`."""
        self.bank.write(slot, adapter)
        self._optimizers[slot] = self._new_optimizer(slot)

    def state_dict(self) -> dict[str, Any]:
        """See `Learner`; copies on the CPU, because a GPU need not have room for a second bank."""
        return {
            "adapters": {
                slot: {
                    name: (pair.A.cpu(), pair.B.cpu())
                    for name, pair in self.bank.read(slot).factors.items()
                }
                for slot in self._optimizers
            },
            "optimizers": {
                slot: _copied(optimizer.state_dict())
                for slot, optimizer in self._optimizers.items()
            },
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """See `Learner`.

        Raises:
            UserError: the state belongs to another base or another shape of adapter.
        """
        for slot, factors in state["adapters"].items():
            adapter = Adapter(self.bank.spec, {n: Factors(A, B) for n, (A, B) in factors.items()})
            self.write(slot, adapter)
            self._optimizers[slot].load_state_dict(state["optimizers"][slot])
            for group in self._optimizers[slot].param_groups:
                # A setting and no state: a fork may have another one.
                group["weight_decay"] = self.config.weight_decay

    def _update_member(
        self, slot: int, samples: Sequence[TrainingSample], settings: Hyperparameters
    ) -> dict[str, float]:
        tokens, whole = self._sum_over_ranks(
            [sum(len(s.completion.token_ids) for s in samples), sum(map(length, samples))]
        )
        if not tokens:
            return {"updates": 0.0, "tokens": 0.0}
        optimizer = self._optimizers[slot]
        for group in optimizer.param_groups:
            group["lr"] = settings.lr
            if settings.weight_decay is not None:
                group["weight_decay"] = settings.weight_decay
        device = self._device
        names = metric_names(self._importance_cap, settings.kl_loss_coef)
        totals = dict.fromkeys(names, 0.0)
        share, limit = self.shares_prompts, self.config.most_tokens
        if self.parallel:
            limit = piece_tokens(int(whole), limit)
        batches = list(pieces(samples, limit, share))
        for number in range(self._passes(len(batches))):
            has_rows = number < len(batches)
            batch = collate(batches[number], device, share) if has_rows else nothing(device)
            # Transformers checkpoint in training mode only; causal LMs have no dropout.
            self.model.train(self._checkpoints(batch.input_ids.numel()))
            routes = torch.full((len(batch.input_ids),), slot, device=device)
            # Backward too, because gradient checkpointing runs the layers again there.
            with self.bank.adapters_active(routes, self._products):
                loss, metrics = policy_loss(
                    self.model,
                    batch,
                    self.config.clip_ratio,
                    self._importance_cap,
                    self._policy_loss,
                    settings.kl_loss_coef,
                    self.bank.adapters_active(torch.full_like(routes, NO_ADAPTER)),
                    settings.temperature,
                )
                (loss / tokens).backward()
            if not has_rows:
                self._optimizers[slot].zero_grad(set_to_none=True)
                continue
            self._keep_gradients(slot)
            for name, value in metrics.items():
                totals[name] += value / tokens
        totals = dict(zip(totals, self._sum_over_ranks(list(totals.values())), strict=True))
        self._sum_gradients(slot)
        norm = nn.utils.clip_grad_norm_(self.bank.parameters_of(slot), self.config.max_grad_norm)
        # A step with a non-finite gradient would spoil the member for good; it is counted instead.
        sound = bool(torch.isfinite(norm))
        if sound:
            with self._offload.moments_on_device(optimizer) if self._offload else nullcontext():
                optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        figures = finish_metrics(totals)
        figures |= {"grad_norm": float(norm), "tokens": tokens, "lr": settings.lr}
        if settings.weight_decay is not None:
            figures["weight_decay"] = settings.weight_decay
        if settings.temperature != 1:
            figures["temperature"] = settings.temperature
        return {**figures, "updates": float(sound)}

    def share(self, slot: int) -> None:
        """Sends the first rank's factors of a member to all others."""
        if ranks() > 1:
            for parameter in self.bank.parameters_of(slot):
                # Offloaded, it is on the host, from where NCCL sends nothing.
                sent = parameter.data.to(self._device)
                torch.distributed.broadcast(sent, src=0)
                parameter.data.copy_(sent)

    def digest(self) -> str:
        """SHA-256 over all members' factors on this rank."""
        total = hashlib.sha256()
        for slot in range(self.bank.slots):
            for parameter in self.bank.parameters_of(slot):
                total.update(parameter.detach().cpu().numpy().tobytes())
        return total.hexdigest()

    def _computing(self) -> AbstractContextManager[None]:
        """Inside, base and members are on the device."""
        return self._offload.on_device() if self._offload else nullcontext()

    def _sum_over_ranks(self, values: list[float]) -> list[float]:
        if not self.parallel or ranks() == 1:
            return values
        # float64, in which token counts stay exact.
        total = torch.tensor(values, dtype=torch.float64, device=self.bank.device)
        torch.distributed.all_reduce(total)
        return [float(value) for value in total]

    def _checkpoints(self, tokens: int) -> bool:
        """Whether the layers are run again for a piece of so many tokens."""
        return self.config.gradient_checkpointing and tokens > (
            self.config.recompute_above_tokens or 0
        )

    def _passes(self, batches: int) -> int:
        """How often the model runs where this rank has so many batches: each pass through a base
        that is shared out gathers its weights from all ranks."""
        if not self.parallel or ranks() == 1 or not self.config.shard_base:
            return batches
        most = torch.tensor(batches, device=self.bank.device)
        torch.distributed.all_reduce(most, torch.distributed.ReduceOp.MAX)
        return int(most)

    def _dtype_of_products(self) -> torch.dtype:
        if self.config.lora_dtype:
            dtype: torch.dtype = getattr(torch, self.config.lora_dtype)
            return dtype
        on_gpu = self.bank.device.type == "cuda"
        return next(self.model.parameters()).dtype if on_gpu else self.bank.dtype

    def _keep_gradients(self, slot: int) -> None:
        """After each backward; without ranks torch itself adds gradients up, in float32."""
        if not self.parallel:
            return
        parameters = self.bank.parameters_of(slot)
        if not self._sums:
            self._sums = [torch.zeros_like(p, dtype=torch.float64) for p in parameters]
        for total, parameter in zip(self._sums, parameters, strict=True):
            if parameter.grad is not None:
                total += parameter.grad
                parameter.grad = None

    def _sum_gradients(self, slot: int) -> None:
        """Sums the member's gradients over the ranks."""
        if not self.parallel:
            return
        # A rank may have no rows of this member.
        self._keep_gradients(slot)
        if ranks() > 1:
            flat = torch.cat([total.flatten() for total in self._sums])
            torch.distributed.all_reduce(flat)
            self._sums = list(flat.split([total.numel() for total in self._sums]))
        for parameter, total in zip(self.bank.parameters_of(slot), self._sums, strict=True):
            parameter.grad = total.view_as(parameter).to(parameter.dtype)
        self._sums = []

    def _new_optimizer(self, slot: int) -> torch.optim.Optimizer:
        return self._optimizer(
            self.bank.parameters_of(slot), lr=0.0, weight_decay=self.config.weight_decay
        )


def piece_tokens(whole: int, micro_batch_tokens: int) -> int:
    """Most tokens in one forward and backward of a member that has `whole` on all ranks: at least
    `PIECES` pieces, so that there is something to do for each rank."""
    return min(micro_batch_tokens, -(-whole // PIECES))


def _copied(state: Any) -> Any:
    """An optimizer's state with copies of its tensors on the CPU."""
    if isinstance(state, Tensor):
        return state.detach().to("cpu", copy=True)
    if isinstance(state, dict):
        return {key: _copied(value) for key, value in state.items()}
    if isinstance(state, list):
        return [_copied(value) for value in state]
    return state
