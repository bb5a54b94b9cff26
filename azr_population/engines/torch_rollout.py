"""A base in torch with a bank of members on it, and the rollout that samples from it:
`decoding.decode` on batches that fit the memory."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext

import numpy as np
import torch
from torch import Tensor, nn

from azr_population.engines.decoding import decode
from azr_population.engines.engine import Completion, Finished, Ids, Sampling, StreamingSampler
from azr_population.engines.micro_batches import slot_batches
from azr_population.engines.shared_prefix import use_shared_attention
from azr_population.weights.adapter import Adapter, LoraSpec
from azr_population.weights.bank import Bank

ROWS, TOKENS = 512, 393_216
"""Most rows of a batch, and most tokens that its KV cache can grow to (docs/azr.md, Memory)."""


def make_bank(model: nn.Module, spec: LoraSpec, generators: Sequence[torch.Generator]) -> Bank:
    """A bank on a model made ready to sample from; slot i is drawn by `generators[i]`."""
    if next(model.parameters()).device.type == "cpu":
        use_shared_attention(model)
    bank = Bank(model, spec, len(generators))
    for slot, generator in enumerate(generators):
        bank.init_member(slot, generator)
    return bank


class TorchRollout(StreamingSampler):
    """Samples from a bank, which may be the learner's own; `stop_ids` end a completion."""

    longest: int | None = None

    def __init__(
        self,
        model: nn.Module,
        bank: Bank,
        stop_ids: frozenset[int],
        rows: int = ROWS,
        tokens: int = TOKENS,
        share_prefix: bool = True,
    ) -> None:
        self.model = model
        self.bank = bank
        self.stop_ids = stop_ids
        self._rows = rows
        self._tokens = tokens
        self._share_prompts = share_prefix

    def stream(
        self,
        prompts: Sequence[Ids],
        slots: Sequence[int],
        sampling: Sampling,
        seed: int,
        rows: Sequence[int] | None = None,
    ) -> Iterator[list[Finished]]:
        """See `Rollout`; the rows of a batch end together. On one machine's CPU the same call gives
        the same bits."""
        numbers = rows if rows is not None else range(len(prompts))
        limits = sampling.limits(len(prompts))
        for batch in slot_batches(
            [len(prompt) + limit for prompt, limit in zip(prompts, limits, strict=True)],
            slots,
            self._tokens // sampling.n,
            max(1, self._rows // sampling.n),
        ):
            longest = max(limits[row] for row in batch)
            decoded = decode(
                self.model,
                self.bank,
                [prompts[row] for row in batch],
                [slots[row] for row in batch],
                [limits[row] for row in batch],
                sampling.of_rows(batch, len(prompts)),
                self.stop_ids,
                _uniforms(seed, [numbers[row] for row in batch], sampling.n, longest),
                self._share_prompts,
            )
            completions = [
                [
                    Completion(
                        slot=slots[row],
                        prompt_ids=tuple(prompts[row]),
                        token_ids=tuple(done.token_ids),
                        logprobs=tuple(done.logprobs),
                        finished=done.finished,
                    )
                    for done in group
                ]
                for row, group in zip(batch, decoded, strict=True)
            ]
            yield list(zip(batch, completions, strict=True))

    def push(self, slot: int, adapter: Adapter) -> None:
        """See `Rollout`; where the bank is the learner's own, this changes nothing."""
        self.bank.write(slot, adapter)

    def asleep(self) -> AbstractContextManager[None]:
        """See `Rollout`; there is nothing to give, the base is the learner's too."""
        return nullcontext()

    def close(self) -> None:
        """See `Rollout`; base and bank are not its own."""


def _uniforms(seed: int, rows: Sequence[int], n: int, tokens: int) -> Tensor:
    """Numbers in [0, 1), [rows * n, tokens]: a stream of its own for each completion, by (seed,
    row, completion), so that a row draws alike in whatever batch and process it is."""
    streams = [np.random.Philox(key=[seed, row * n + k]) for row in rows for k in range(n)]
    numbers = [np.random.Generator(stream).random(tokens, dtype=np.float32) for stream in streams]
    return torch.from_numpy(np.stack(numbers))
