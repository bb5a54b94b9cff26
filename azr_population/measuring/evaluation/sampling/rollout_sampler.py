"""Samples by a rollout of `engines`: the base and all members of an entry in one batch."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from azr_population.engines.base_folder import context_of
from azr_population.engines.base_model import load_base, stop_ids
from azr_population.engines.engine import Rollout, Sampling
from azr_population.engines.rollouts import RolloutSettings, Served
from azr_population.engines.torch_engine import make_bank
from azr_population.errors import UserError
from azr_population.measuring.evaluation.contestants import Contestant, Contestants
from azr_population.measuring.evaluation.prompts import Prompt
from azr_population.measuring.evaluation.sampling.sampler import Drawn, Request, Settings, cut
from azr_population.weights.adapter import Adapter, Factors, LoraSpec
from azr_population.weights.bank import Bank
from azr_population.weights.peft_folder import load_adapter

_NOT_ASKED = "the prompt is longer than the context, or has no token that the model knows"
_NO_MEMBERS = LoraSpec(1, 1.0, ("all-linear",))


class RolloutSampler:
    """`slots` says which slot of the rollout each contestant has."""

    def __init__(
        self, name: str, rollout: Rollout, tokenizer: Any, slots: dict[str, int], context: int
    ) -> None:
        """`context` is how many tokens prompt and completion may have together."""
        self.name = name
        self.rollout = rollout
        self.tokenizer = tokenizer
        self.slots = slots
        self.context = context

    def sample(
        self, requests: Sequence[Request], settings: Settings, seed: int
    ) -> Iterator[tuple[int, list[Drawn]]]:
        """See `Sampler`; all requests go through the model in one call."""
        texts = [_rendered(self.tokenizer, request.prompt) for request in requests]
        ids = self.tokenizer([text for text, _ in texts], add_special_tokens=False)["input_ids"]
        for n in sorted({request.n for request in requests}):
            rows = [row for row, request in enumerate(requests) if request.n == n]
            fitting = [row for row in rows if 0 < len(ids[row]) < self.context]
            limits = [min(settings.max_new_tokens, self.context - len(ids[r])) for r in fitting]
            sampling = Sampling(tuple(limits), settings.temperature, settings.top_p, n)
            slots = [self.slots[requests[row].contestant.name] for row in fitting]
            prompts = [ids[row] for row in fitting]
            groups = self.rollout.generate(prompts, slots, sampling, seed) if fitting else []
            for row, group in zip(fitting, groups, strict=True):
                plain, prompt = texts[row][1], requests[row].prompt
                stops = prompt.plain_stops or prompt.stops if plain else prompt.stops
                yield row, [self._drawn(one, stops, plain) for one in group]
            for row in set(rows) - set(fitting):
                yield row, [Drawn("", 0, False, note=_NOT_ASKED)] * n

    def _drawn(self, completion: Any, stops: Sequence[str], plain: bool) -> Drawn:
        ids = completion.token_ids[:-1] if completion.finished else completion.token_ids
        text = self.tokenizer.decode(
            ids, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        kept = cut(text, stops)
        ended = completion.finished or len(kept) < len(text)
        return Drawn(kept, len(completion.token_ids), ended, plain)


Samplers = Iterator[tuple[RolloutSampler, list[Contestant]]]


def rollout_samplers(
    entry: Contestants,
    contestants: Sequence[Contestant],
    dtype: str,
    device: str,
    rollout: RolloutSettings | None = None,
) -> Samplers:
    """Samplers for these contestants of an entry, one for each shape of adapter among them; each is
    ended before the next one starts.

    All contestants of a run have one shape, and so one batch. Raises UserError where an adapter
    does not fit the base, or where the rollout cannot serve it.
    """
    assert entry.base is not None
    settings = rollout or RolloutSettings()
    settings.kind.check(1)
    on_gpu = device.startswith("cuda")
    # A rollout with weights of its own has the GPU to itself.
    held_on = "cpu" if settings.kind.own_weights else device
    for model, tokenizer, bank, together in _banks(entry, contestants, dtype, held_on):
        base, stops = str(entry.base), stop_ids(model, tokenizer)
        made = settings.kind.make(Served(model, bank, stops, base, dtype, on_gpu), settings)
        for slot in range(len(together)):
            made.push(slot, bank.read(slot))
        limits = [limit for limit in (context_of(model), made.longest) if limit]
        slots = {one.name: slot for slot, one in enumerate(together)}
        try:
            yield (
                RolloutSampler(settings.name, made, tokenizer, slots, min(limits, default=1 << 20)),
                together,
            )
        finally:
            made.close()


def _banks(
    entry: Contestants, contestants: Sequence[Contestant], dtype: str, device: str
) -> Iterator[tuple[Any, Any, Bank, list[Contestant]]]:
    """Base, tokenizer, and the bank in whose slots these contestants are, for each shape."""
    assert entry.base is not None
    adapters = {one.name: load_adapter(one.folder) for one in contestants if one.folder}
    shapes: dict[LoraSpec, list[Contestant]] = {}
    for one in contestants:
        if one.folder:
            shapes.setdefault(adapters[one.name].spec, []).append(one)
    bare = [one for one in contestants if not one.folder]
    groups = list(shapes.items()) or [(_NO_MEMBERS, [])]
    for number, (spec, members) in enumerate(groups):
        together = members + (bare if number == 0 else [])
        model, tokenizer = load_base(entry.base, dtype, device)
        # Fresh adapters add nothing (B is zero): that is the base.
        seeds = [torch.Generator().manual_seed(0) for _ in together]
        bank = make_bank(model, spec, seeds)
        for slot, one in enumerate(members):
            try:
                bank.write(slot, _complete(adapters[one.name], bank))
            except UserError as error:
                raise UserError(f"{one.folder} does not fit {entry.base}: {error}") from error
        yield model, tokenizer, bank, together


def _complete(adapter: Adapter, bank: Bank) -> Adapter:
    """The adapter as the bank keeps factors: float32, and zero where it leaves a layer alone."""
    factors = {
        name: Factors(torch.zeros_like(pair.A), torch.zeros_like(pair.B))
        for name, pair in bank.read(0).factors.items()
    }
    given = {n: Factors(pair.A.float(), pair.B.float()) for n, pair in adapter.factors.items()}
    return Adapter(adapter.spec, {**factors, **given})


def _rendered(tokenizer: Any, prompt: Prompt) -> tuple[str, bool]:
    """The whole text before the completion with its special tokens, and whether it is no chat."""
    if prompt.chat and tokenizer.chat_template:
        turns = [{"role": "user", "content": prompt.text}]
        if prompt.system:
            turns.insert(0, {"role": "system", "content": prompt.system})
        text = tokenizer.apply_chat_template(turns, add_generation_prompt=True, tokenize=False)
        return text + prompt.answer_begins, False
    begin = tokenizer.bos_token or ""
    starts = bool(begin) and tokenizer("")["input_ids"][:1] == [tokenizer.bos_token_id]
    return (begin if starts else "") + (prompt.plain or prompt.text), True
