"""The learner in plain torch: a bank of members on a frozen base and one optimizer per member.

On one machine's CPU the same seeds, threads and versions give the same bits.

On several ranks (`parallel`) rows are split, the gradients of a member's factors are summed, and
every rank makes the same optimizer step, so nothing but gradients of adapters travels. They are
added up in float64 over pieces that do not depend on the number of ranks: AdamW's first steps are
as large for a gradient of 1e-9 as for one of 1, so that rounding in float32 alone moves members
apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
import torch.distributed
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only
from torch.utils.checkpoint import (
    CheckpointPolicy,
    create_selective_checkpoint_contexts,
    noop_context_fn,
)

from azr_population.config.schema import LearnerConfig
from azr_population.engines.engine import (
    Completion,
    Hyperparameters,
    Ids,
    Samples,
    TrainingSample,
    Updates,
)
from azr_population.engines.micro_batches import (
    MicroBatch,
    collate,
    empty_batch,
    length,
    pieces,
    slot_batches,
)
from azr_population.engines.offload import Offload
from azr_population.engines.optimizers import OPTIMIZERS
from azr_population.engines.policy_gradient import finish_metrics, policy_loss
from azr_population.engines.token_log_probs import token_log_probs
from azr_population.engines.torch_rollout import shares_prompts
from azr_population.errors import UserError
from azr_population.weights.adapter import Adapter, Factors
from azr_population.weights.bank import Bank

PIECES = 8
"""On several ranks a member's rows are cut into at least this many pieces, for any number of
ranks."""

_PRODUCTS = {
    torch.ops.aten.mm,
    torch.ops.aten.addmm,
    torch.ops.aten.addmm_,
    torch.ops.aten._scaled_dot_product_flash_attention,
    torch.ops.aten._scaled_dot_product_efficient_attention,
    torch.ops.aten._scaled_dot_product_cudnn_attention,
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu,
}


def _keep_products(context: Any, operator: Any, *args: Any, **options: Any) -> CheckpointPolicy:
    """Keeps what costs products; what is computed number by number takes as much memory, and little
    time to compute again."""
    if operator._overloadpacket in _PRODUCTS:
        return CheckpointPolicy.MUST_SAVE
    return CheckpointPolicy.PREFER_RECOMPUTE


class TorchLearner:
    """Trains the members of `bank`, whose adapters are on `model`.

    With `parallel` updates sum over the ranks of torch's default process group: every rank has to
    call `update` with the same members in the same order, and with no samples where it has none.
    """

    def __init__(
        self,
        model: nn.Module,
        bank: Bank,
        config: LearnerConfig,
        parallel: bool = False,
    ) -> None:
        """An importance cap that is empty in `config` is 0 here: the sampler is this learner."""
        self.model = model
        self.bank = bank
        self.config = config
        self.parallel = parallel
        self.shares_prompts = self.config.share_prefix and shares_prompts(model, bank)
        """Whether a prompt goes through an update once for all its completions."""
        self._device = bank.device
        on_gpu = self._device.type == "cuda"
        self._keeps_products = False
        self._products = next(model.parameters()).dtype if on_gpu else bank.dtype
        if self.config.lora_dtype:
            self._products = getattr(torch, self.config.lora_dtype)
        self._optimizer = OPTIMIZERS.find(self.config.optimizer)
        if self.config.gradient_checkpointing:
            to_checkpoint: Any = model
            to_checkpoint.gradient_checkpointing_enable(
                {"use_reentrant": False, "context_fn": self._checkpoint_contexts}
            )
        self._optimizers = {slot: self._new_optimizer(slot) for slot in range(bank.slots)}
        self._offload = Offload(model, bank) if self.config.offload else None

    def update(self, samples: Samples, hyperparameters: Mapping[int, Hyperparameters]) -> Updates:
        """See `Engine`. Metrics: loss, entropy (means over tokens), grad_norm (before clipping),
        tokens, lr, updates (0 when the member had no samples); with an importance cap also
        mismatch_kl, ess and is_clip_frac, with `kl_loss_coef` kl_loss."""
        updates = {}
        with self._computing():
            for slot, rows in samples.items():
                try:
                    updates[slot] = self._update_member(slot, rows, hyperparameters[slot])
                finally:  # after an error too, or the next update would add to its gradients
                    self._optimizers[slot].zero_grad(set_to_none=True)
        return updates

    @torch.no_grad()
    def log_probs(
        self, prompts: Sequence[Ids], responses: Sequence[Ids], slots: Sequence[int]
    ) -> list[Tensor]:
        """See `Engine`."""
        rows = [
            TrainingSample(
                Completion(slot, tuple(prompt), tuple(ids), (0.0,) * len(ids), True), 0.0
            )
            for prompt, ids, slot in zip(prompts, responses, slots, strict=True)
        ]
        log_probs = [torch.empty(0)] * len(rows)
        answered = [row for row in range(len(rows)) if responses[row]]
        lengths, members = [length(rows[i]) for i in answered], [slots[i] for i in answered]
        batches = slot_batches(lengths, members, self.config.micro_batch_tokens)
        with self._computing():
            for batch in batches:
                places = [answered[place] for place in batch]
                collated = collate([[rows[i]] for i in places], self._device)
                with self.bank.adapters_active([slots[i] for i in places], self._products):
                    chosen, _ = token_log_probs(self.model, collated)
                parts = chosen.cpu().split([len(responses[i]) for i in places])
                for i, values in zip(places, parts, strict=True):
                    log_probs[i] = values
        return log_probs

    def read(self, slot: int) -> Adapter:
        """See `Engine`."""
        return self.bank.read(slot)

    def write(self, slot: int, adapter: Adapter) -> None:
        """See `Engine`."""
        self.bank.write(slot, adapter)
        self._optimizers[slot] = self._new_optimizer(slot)

    def state_dict(self) -> dict[str, Any]:
        """See `Engine`; copies on the CPU, because a GPU need not have room for a second bank."""
        adapters, optimizers = {}, {}
        for slot, optimizer in self._optimizers.items():
            factors = self.bank.read(slot).factors
            adapters[slot] = {name: (pair.A.cpu(), pair.B.cpu()) for name, pair in factors.items()}
            optimizers[slot] = tree_map_only(
                Tensor, lambda value: value.detach().to("cpu", copy=True), optimizer.state_dict()
            )
        return {"adapters": adapters, "optimizers": optimizers}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """See `Engine`. Raises UserError: the state belongs to another base, another shape of
        adapter, or another optimizer."""
        for slot, factors in state["adapters"].items():
            adapter = Adapter(self.bank.spec, {n: Factors(A, B) for n, (A, B) in factors.items()})
            self.write(slot, adapter)
            group = dict(self._optimizers[slot].param_groups[0])
            self._optimizers[slot].load_state_dict(state["optimizers"][slot])
            if missing := group.keys() - self._optimizers[slot].param_groups[0].keys():
                raise UserError(
                    f"engine.optimizer={self.config.optimizer}: the stored state is of another "
                    f"optimizer, it has no {', '.join(sorted(missing))}",
                    key="engine.optimizer",
                )

    def _update_member(
        self, slot: int, samples: Sequence[TrainingSample], settings: Hyperparameters
    ) -> dict[str, float]:
        tokens, whole = self._sum_over_ranks(
            [sum(len(s.completion.token_ids) for s in samples), sum(map(length, samples))]
        )
        if not tokens:
            return {"updates": 0.0, "tokens": 0.0}
        optimizer, parameters = self._optimizers[slot], self.bank.parameters_of(slot)
        for group in optimizer.param_groups:
            group["lr"] = settings.lr
        limit = self.config.most_tokens
        # With `parallel` the gradients, in float64; without, torch itself adds them up in float32.
        sums: list[Tensor] = []
        if self.parallel:
            limit = piece_tokens(int(whole), limit)
            # Row by row, as sums over ranks are, or the norm below is added up in another order.
            sums = [torch.zeros(p.shape, dtype=torch.float64, device=p.device) for p in parameters]
        # Exact, being a power of two: float16 would lose a token's slope of 1 / tokens.
        scale = 2.0 ** math.floor(math.log2(tokens))
        totals: dict[str, float] = {}
        groups = pieces(samples, limit, self.shares_prompts)
        batches: Iterable[MicroBatch] = (
            collate(piece, self._device, self.shares_prompts) for piece in groups
        )
        # Once on a rank without rows too: it reports the metrics that others do.
        for batch in batches if samples else [empty_batch(self._device)]:
            # Transformers checkpoint in training mode only; a base is loaded without dropout.
            self.model.train(bool(self.config.gradient_checkpointing))
            limit = self.config.recompute_above_tokens or 0
            self._keeps_products = batch.input_ids.numel() <= limit
            # Backward too, because gradient checkpointing runs the layers again there.
            with self.bank.adapters_active([slot] * len(batch.input_ids), self._products):
                loss, metrics = policy_loss(
                    self.model,
                    batch,
                    self.config.importance_sampling_cap,
                    settings.kl_loss_coef,
                    self.bank.routed(None),
                )
                (loss / tokens * scale).backward()
            for total, parameter in zip(sums, parameters, strict=self.parallel):
                if samples and parameter.grad is not None:
                    total += parameter.grad
                parameter.grad = None
            for name, value in metrics.items():
                totals[name] = totals.get(name, 0.0) + bool(samples) * value / tokens
        totals = dict(zip(totals, self._sum_over_ranks(list(totals.values())), strict=True))
        if ranks() > 1 and sums:
            flat = torch.cat([total.flatten() for total in sums])
            torch.distributed.all_reduce(flat)
            sums = list(flat.split([total.numel() for total in sums]))
        for total, parameter in zip(sums, parameters, strict=self.parallel):
            parameter.grad = total.view_as(parameter).to(parameter.dtype)
        for parameter in parameters:
            if parameter.grad is not None:
                parameter.grad /= scale
        norm = nn.utils.clip_grad_norm_(parameters, self.config.max_grad_norm)
        # A step with a non-finite gradient would spoil the member for good; it is counted instead.
        sound = bool(torch.isfinite(norm))
        if sound:
            with self._offload.moments_on_device(optimizer) if self._offload else nullcontext():
                optimizer.step()
            self.bank.drop_copies()  # an optimizer may write through `.data`
        figures = finish_metrics(totals)
        figures |= {"grad_norm": float(norm), "tokens": tokens, "lr": settings.lr}
        return {**figures, "updates": float(sound)}

    @contextmanager
    def _computing(self) -> Iterator[None]:
        """Inside, base and members are on the device."""
        with self._offload.on_device() if self._offload else nullcontext():
            try:
                yield
            finally:
                self.model.eval()

    def _sum_over_ranks(self, values: list[float]) -> list[float]:
        if not self.parallel or ranks() == 1:
            return values
        # float64, in which token counts stay exact.
        total = torch.tensor(values, dtype=torch.float64, device=self._device)
        torch.distributed.all_reduce(total)
        return [float(value) for value in total]

    def _checkpoint_contexts(self) -> tuple[Any, Any]:
        """What of a layer is kept for backward beside its input, for torch's `checkpoint`."""
        if not self._keeps_products:
            return noop_context_fn()
        # A member's update is added to the base's product in place, and then kept with it.
        return create_selective_checkpoint_contexts(_keep_products, allow_cache_entry_mutation=True)

    def _new_optimizer(self, slot: int) -> torch.optim.Optimizer:
        return self._optimizer(
            self.bank.parameters_of(slot), lr=0.0, weight_decay=self.config.weight_decay
        )


def piece_tokens(whole: int, micro_batch_tokens: int) -> int:
    """Most tokens in one forward and backward of a member that has `whole` on all ranks: at least
    `PIECES` pieces, so that there is something to do for each rank."""
    return min(micro_batch_tokens, -(-whole // PIECES))


def ranks() -> int:
    """Size of torch's default process group; 1 without one."""
    ready = torch.distributed.is_available() and torch.distributed.is_initialized()
    return torch.distributed.get_world_size() if ready else 1
