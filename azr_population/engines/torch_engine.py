"""The engine in plain torch: CPU or one GPU, any Hugging Face causal LM.

On CPU the same seeds, threads and versions give the same bits. Not covered: several GPUs (the veRL
workers wrap this class for that) and continuous batching.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from azr_population.adapters.adapter import Adapter, LoraSpec
from azr_population.adapters.bank import Bank
from azr_population.engines.attention import use_strided_attention
from azr_population.engines.base_model import load_base
from azr_population.engines.decoding import decode
from azr_population.engines.engine import Completion, Sample, Sampling
from azr_population.engines.policy_gradient import METRICS, micro_batches, policy_loss


class TorchEngine:
    """A frozen base, a bank of members on it and one AdamW per member."""

    def __init__(
        self,
        model: nn.Module,
        tokenizer: Any,
        spec: LoraSpec,
        slots: int,
        generator: torch.Generator,
        *,
        generate_rows: int = 512,
        micro_batch_tokens: int = 1024,
        max_grad_norm: float = 1.0,
        weight_decay: float = 0.0,
        clip_ratio: float = 0.2,
        chat: bool = False,
    ) -> None:
        """`model` is frozen and gets the bank's adapters; `generator` draws their first weights.

        With `chat`, a prompt is the user's turn of the tokenizer's chat template; where there is no
        template, it is encoded with the special tokens that the base expects at the start of text.
        """
        if next(model.parameters()).device.type == "cpu":
            use_strided_attention(model)
        self.model = model
        self.tokenizer = tokenizer
        self.bank = Bank(model, spec, slots)
        self._generate_rows = generate_rows
        self._micro_batch_tokens = micro_batch_tokens
        self._max_grad_norm = max_grad_norm
        self._weight_decay = weight_decay
        self._clip_ratio = clip_ratio
        self._chat = chat
        for slot in range(slots):
            self.bank.init_member(slot, generator)
        self._optimizers = {slot: self._new_optimizer(slot) for slot in range(slots)}

    @classmethod
    def from_folder(
        cls,
        path: str | Path,
        spec: LoraSpec,
        slots: int,
        generator: torch.Generator,
        *,
        dtype: str = "float32",
        device: str = "cpu",
        **options: Any,
    ) -> TorchEngine:
        """An engine on the base model in a Hugging Face folder; options as in `__init__`."""
        model, tokenizer = load_base(path, dtype, device)
        return cls(model, tokenizer, spec, slots, generator, **options)

    def generate(
        self,
        prompts: Sequence[str],
        members: Sequence[int],
        sampling: Sampling,
        generator: torch.Generator,
    ) -> list[list[Completion]]:
        """See `azr_population.engines.engine.Engine`."""
        if not prompts:
            return []
        encoded = self._encode(prompts)
        # By member, because the bank routes runs of rows; then by length, to pad little.
        order = sorted(range(len(prompts)), key=lambda row: (members[row], len(encoded[row])))
        results: list[list[Completion]] = [[] for _ in prompts]
        size = max(1, self._generate_rows // sampling.n)
        for start in range(0, len(order), size):
            rows = order[start : start + size]
            decoded = decode(
                self.model,
                self.bank,
                [encoded[row] for row in rows],
                [members[row] for row in rows],
                sampling,
                self.stop_ids,
                generator,
            )
            texts = iter(
                self.tokenizer.batch_decode(
                    [
                        one.token_ids[:-1] if one.finished else one.token_ids
                        for group in decoded
                        for one in group
                    ],
                    skip_special_tokens=False,
                    clean_up_tokenization_spaces=False,
                )
            )
            for row, group in zip(rows, decoded, strict=True):
                for one in group:
                    results[row].append(
                        Completion(
                            member=members[row],
                            prompt_ids=tuple(encoded[row]),
                            token_ids=tuple(one.token_ids),
                            logprobs=tuple(one.logprobs),
                            text=next(texts),
                            finished=one.finished,
                        )
                    )
        return results

    def update(
        self, samples: Mapping[int, Sequence[Sample]], learning_rates: Mapping[int, float]
    ) -> dict[int, dict[str, float]]:
        """See `Engine`. Metrics: loss, entropy, approx_kl, clip_fraction (means over tokens),
        grad_norm (before clipping), tokens, updates (0 when the member had no samples)."""
        return {
            member: self._update_member(member, rows, learning_rates[member])
            for member, rows in samples.items()
        }

    def read_member(self, member: int) -> Adapter:
        """See `Engine`."""
        return self.bank.read(member)

    def write_member(self, member: int, adapter: Adapter) -> None:
        """See `Engine`."""
        self.bank.write(member, adapter)
        self._optimizers[member] = self._new_optimizer(member)

    def state_dict(self) -> dict[str, Any]:
        """See `Engine`."""
        return {
            "adapters": {
                slot: {name: (f.A, f.B) for name, f in self.bank.read(slot).factors.items()}
                for slot in self._optimizers
            },
            # Copied, because torch hands out the live tensors.
            "optimizers": {
                slot: copy.deepcopy(optimizer.state_dict())
                for slot, optimizer in self._optimizers.items()
            },
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """See `Engine`.

        Raises:
            UserError: the state belongs to another base or another shape of adapter.
        """
        from azr_population.adapters.adapter import Factors

        for slot, factors in state["adapters"].items():
            adapter = Adapter(self.bank.spec, {n: Factors(A, B) for n, (A, B) in factors.items()})
            self.write_member(slot, adapter)
            self._optimizers[slot].load_state_dict(state["optimizers"][slot])

    def _update_member(
        self, member: int, samples: Sequence[Sample], learning_rate: float
    ) -> dict[str, float]:
        tokens = self._sum_over_ranks([sum(len(s.completion.token_ids) for s in samples)])[0]
        if not tokens:
            return {"updates": 0.0, "tokens": 0.0}
        optimizer = self._optimizers[member]
        for group in optimizer.param_groups:
            group["lr"] = learning_rate
        device = next(self.model.parameters()).device
        totals = dict.fromkeys(METRICS, 0.0)
        for batch in micro_batches(samples, self._micro_batch_tokens, device):
            slots = torch.full((len(batch.input_ids),), member, device=device)
            # Backward too, because gradient checkpointing runs the layers again there.
            with self.bank.routed(slots):
                loss, metrics = policy_loss(self.model, batch, self._clip_ratio)
                (loss / tokens).backward()
            for name, value in metrics.items():
                totals[name] += value / tokens
        totals = dict(zip(totals, self._sum_over_ranks(list(totals.values())), strict=True))
        self._sum_gradients(self.bank.parameters_of(member))
        norm = nn.utils.clip_grad_norm_(self.bank.parameters_of(member), self._max_grad_norm)
        # A step with a non-finite gradient would spoil the member for good; it is counted instead.
        sound = bool(torch.isfinite(norm))
        if sound:
            optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return {**totals, "grad_norm": float(norm), "tokens": tokens, "updates": float(sound)}

    def _sum_over_ranks(self, values: list[float]) -> list[float]:
        """The sums over data-parallel ranks; there is one rank here."""
        return values

    def _sum_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """Sums the gradients over data-parallel ranks; there is one rank here."""

    def _encode(self, prompts: Sequence[str]) -> list[list[int]]:
        if self._chat and self.tokenizer.chat_template:
            turns = [[{"role": "user", "content": prompt}] for prompt in prompts]
            texts = self.tokenizer.apply_chat_template(
                turns, add_generation_prompt=True, tokenize=False
            )
            # The template writes the special tokens itself.
            return self.tokenizer(texts, add_special_tokens=False)["input_ids"]
        return self.tokenizer(list(prompts), add_special_tokens=self._chat)["input_ids"]

    def _new_optimizer(self, slot: int) -> torch.optim.AdamW:
        return torch.optim.AdamW(
            self.bank.parameters_of(slot), lr=0.0, weight_decay=self._weight_decay
        )

    @property
    def stop_ids(self) -> frozenset[int]:
        """The token ids that end a completion."""
        config = getattr(self.model, "generation_config", None)
        listed = getattr(config, "eos_token_id", None)
        ids = listed if isinstance(listed, list) else [listed]
        return frozenset(i for i in [*ids, self.tokenizer.eos_token_id] if i is not None)
