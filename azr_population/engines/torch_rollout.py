"""A base in torch with a bank of members on it, and the rollout that samples from it:
`decoding.decode` on batches that fit the memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor, nn

from azr_population.engines.decoding import decode
from azr_population.engines.engine import (
    NO_ADAPTER,
    ROWS,
    TOKENS,
    EngineSettings,
    Finished,
    PromptBatch,
    Rollout,
    Sampling,
    TrainingSample,
)
from azr_population.engines.kv_cache import ATTENDING
from azr_population.engines.micro_batches import collate, slot_batches
from azr_population.engines.shared_prefix import attends_to_all, use_own_attention
from azr_population.engines.token_log_probs import token_log_probs
from azr_population.errors import UserError
from azr_population.weights.adapter import Adapter, LoraSpec
from azr_population.weights.bank import Bank

_TOLERANCE = {torch.float32: 1e-3, torch.float16: 0.1, torch.bfloat16: 0.5}
"""Nats by which log-probabilities may differ for rounding; a token unseen changes far more."""

_tried: WeakKeyDictionary[nn.Module, bool] = WeakKeyDictionary()


def make_bank(model: nn.Module, spec: LoraSpec, generators: Sequence[torch.Generator]) -> Bank:
    """A bank on a model made ready to sample from; slot i is drawn by `generators[i]`."""
    use_own_attention(model)
    bank = Bank(model, spec, len(generators))
    for slot, generator in enumerate(generators):
        bank.init_member(slot, generator)
    return bank


def refuse_recurrent(model: Any) -> None:
    """Raises UserError: some layers of this base, which may be on the meta device, keep a state in
    place of keys and values (state space, linear attention, convolutions)."""
    kinds = getattr(model.config.get_text_config(), "layer_types", None) or ()
    other = sorted({*kinds} - ATTENDING)
    if other or getattr(model, "_is_stateful", False):
        raise UserError(
            f"base.path={model.config.name_or_path}: {type(model).__name__} keeps a state "
            f"({', '.join(other) or 'a recurrence'}) that the torch sampler does not carry; take a "
            "base whose layers all attend (docs/bases.md), or sample by vLLM",
            key="base.path",
        )


@torch.inference_mode()
def check_sampling(model: Any, bank: Bank) -> None:
    """Has the bare base sample after two prompts of unlike length and score what it sampled.
    Raises UserError: the learner's scores are not the sampler's."""
    refuse_recurrent(model)
    weight, vocabulary = next(model.parameters()), model.config.get_text_config().vocab_size
    prompts = [[i % vocabulary for i in range(5, 5 + length)] for length in (3, 17)]
    uniforms = torch.arange(1, 9).view(2, 4) / 9
    groups = decode(
        model, bank, prompts, [NO_ADAPTER] * 2, Sampling(4), frozenset(), uniforms, share=False
    )
    batch = collate([[TrainingSample(done, 1.0)] for (done,) in groups], weight.device)
    off = float((token_log_probs(model, batch)[0] - batch.old_logprobs).abs().max())
    if not off <= _TOLERANCE[weight.dtype]:
        raise UserError(
            f"base.path={model.config.name_or_path}: what {type(model).__name__} samples after "
            f"prompts of unlike length it scores {off:.2g} nats off when it learns, so it would "
            "train wrongly; take another base (docs/bases.md), or sample by vLLM",
            key="base.path",
        )


def shares_prompts(model: Any, bank: Bank) -> bool:
    """Whether completions of one prompt can share its computation (`shared_prefix.py`): on a CPU.
    A base is tried on a few tokens when it is first asked for."""
    if model not in _tried:
        on_cpu = bank.device.type == "cpu"
        _tried[model] = on_cpu and attends_to_all(model) and _agrees(model, bank)
    return _tried[model]


@torch.inference_mode()
def _agrees(model: Any, bank: Bank) -> bool:
    """Whether completions that share a prompt get the log-probabilities that they get alone."""
    weight, vocabulary = next(model.parameters()), model.config.get_text_config().vocab_size
    prompt, uniforms = [i % vocabulary for i in range(5, 11)], torch.arange(1, 7).view(2, 3) / 7
    (group,) = decode(
        model, bank, [prompt], [NO_ADAPTER], Sampling(3, n=2), frozenset(), uniforms, share=True
    )
    samples = [TrainingSample(done, 1.0) for done in group]
    alone, _ = token_log_probs(model, collate([[each] for each in samples], weight.device))
    together = collate([samples], weight.device, share=True)
    sampled = together.old_logprobs
    off = max(
        float((scores - alone).abs().max())
        for scores in (sampled, token_log_probs(model, together)[0])
    )
    # NaN is no agreement.
    return off <= _TOLERANCE[weight.dtype]


class TorchRollout(Rollout):
    """Samples from a bank, which may be the learner's own; `stop_ids` end a completion."""

    def __init__(
        self,
        model: nn.Module,
        bank: Bank,
        stop_ids: frozenset[int],
        rows: int = ROWS,
        tokens: int = TOKENS,
        share_prefix: bool = True,
        step_graphs: bool = False,
    ) -> None:
        self.model = model
        self.bank = bank
        self.stop_ids = stop_ids
        self._rows = rows
        self._tokens = tokens
        self._share_prefix = share_prefix
        self._step_graphs = step_graphs

    @classmethod
    def make(
        cls, model: nn.Module, bank: Bank, stop_ids: frozenset[int], settings: EngineSettings
    ) -> TorchRollout:
        check_sampling(model, bank)
        rows, tokens = settings.generate_rows or ROWS, settings.generate_tokens
        learner = settings.learner
        return cls(model, bank, stop_ids, rows, tokens, learner.share_prefix, learner.step_graphs)

    def stream(self, batch: PromptBatch, sampling: Sampling, seed: int) -> Iterator[list[Finished]]:
        """See `Sampler`; rows that are decoded together end together. On one machine's CPU the same
        call gives the same bits."""
        limits, n = sampling.limits(len(batch.prompts)), sampling.n
        lengths = [len(prompt) + limit for prompt, limit in zip(batch.prompts, limits, strict=True)]
        share = self._share_prefix and n > 1 and shares_prompts(self.model, self.bank)
        most = max(1, self._rows // n)
        for rows in slot_batches(lengths, batch.slots, self._tokens // n, most):
            part, longest = batch.select(rows), max(limits[row] for row in rows)
            groups = decode(
                self.model,
                self.bank,
                part.prompts,
                part.slots,
                sampling.select(rows),
                self.stop_ids,
                _uniforms(seed, part.numbers, n, longest),
                share,
                self._step_graphs,
            )
            yield list(zip(rows, groups, strict=True))

    def push(self, slot: int, adapter: Adapter) -> None:
        """See `Rollout`; where the bank is the learner's own, this changes nothing."""
        self.bank.write(slot, adapter)


def _uniforms(seed: int, rows: Sequence[int], n: int, tokens: int) -> Tensor:
    """Numbers in [0, 1), [rows * n, tokens]: a stream of its own for each completion, by (seed,
    row, completion), so that a row draws alike in whatever batch and process it is."""
    streams = [np.random.Philox(key=[seed, row * n + k]) for row in rows for k in range(n)]
    numbers = [np.random.Generator(stream).random(tokens, dtype=np.float32) for stream in streams]
    return torch.from_numpy(np.stack(numbers))
