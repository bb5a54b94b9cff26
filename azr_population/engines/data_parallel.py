"""The torch learner on one rank of several: the base on each, members identical on all.

Rows are split over ranks, the gradients of a member's factors are summed, and every rank makes the
same optimizer step, so nothing but gradients of adapters travels. They are added up in float64 over
pieces that do not depend on the number of ranks: AdamW's first steps are as large for a gradient of
1e-9 as for one of 1, so that rounding in float32 alone moves members apart.
"""

from __future__ import annotations

import hashlib

import torch
import torch.distributed
from torch import Tensor, nn

from azr_population.config.schema import LearnerConfig
from azr_population.engines.sharding import ranks
from azr_population.engines.torch_learner import TorchLearner
from azr_population.weights.bank import Bank

PIECES = 8
"""A member's rows are cut into at least so many, whatever the number of ranks."""


class DataParallelLearner(TorchLearner):
    """`TorchLearner` whose updates sum over the ranks of torch's default process group.

    Every rank has to call `update` with the same members in the same order, and with no samples
    where it has none. With one rank it computes what `TorchLearner` computes.
    """

    def __init__(self, model: nn.Module, bank: Bank, config: LearnerConfig | None = None) -> None:
        """As `TorchLearner`."""
        super().__init__(model, bank, config)
        self._sums: list[Tensor] = []
        """The gradients of the member that is being updated, in float64."""

    def share(self, slot: int) -> None:
        """Sends the first rank's factors of a member to all others."""
        if ranks() > 1:
            for parameter in self.bank.parameters_of(slot):
                torch.distributed.broadcast(parameter.data, src=0)

    def digest(self) -> str:
        """SHA-256 over all members' factors on this rank."""
        total = hashlib.sha256()
        for slot in range(self.bank.slots):
            for parameter in self.bank.parameters_of(slot):
                total.update(parameter.detach().cpu().numpy().tobytes())
        return total.hexdigest()

    def _sum_over_ranks(self, values: list[float]) -> list[float]:
        if ranks() == 1:
            return values
        device = self.bank.parameters_of(0)[0].device
        # float64, in which token counts stay exact.
        total = torch.tensor(values, dtype=torch.float64, device=device)
        torch.distributed.all_reduce(total)
        return [float(value) for value in total]

    def _passes(self, own: int) -> int:
        # Each pass through a base that is shared out gathers its weights from all ranks.
        if ranks() == 1 or not self.config.shard_base:
            return own
        most = torch.tensor(own, device=self.bank.device)
        torch.distributed.all_reduce(most, torch.distributed.ReduceOp.MAX)
        return int(most)

    def _piece_tokens(self, whole: int) -> int:
        return piece_tokens(whole, self.config.most_tokens)

    def _keep_gradients(self, slot: int) -> None:
        parameters = self.bank.parameters_of(slot)
        if not self._sums:
            self._sums = [torch.zeros_like(p, dtype=torch.float64) for p in parameters]
        for total, parameter in zip(self._sums, parameters, strict=True):
            if parameter.grad is not None:
                total += parameter.grad
                parameter.grad = None

    def _sum_gradients(self, slot: int) -> None:
        # A rank may have no rows of this member.
        self._keep_gradients(slot)
        if ranks() > 1:
            flat = torch.cat([total.flatten() for total in self._sums])
            torch.distributed.all_reduce(flat)
            parts = flat.split([total.numel() for total in self._sums])
        else:
            parts = tuple(self._sums)
        for parameter, part in zip(self.bank.parameters_of(slot), parts, strict=True):
            parameter.grad = part.view_as(parameter).to(parameter.dtype)
        self._sums = []


def piece_tokens(whole: int, micro_batch_tokens: int) -> int:
    """Most tokens in one forward and backward of a member that has `whole` on all ranks: at least
    `PIECES` pieces, so that there is something to do for each rank."""
    return min(micro_batch_tokens, -(-whole // PIECES))
