"""Text in, text out: what self-play asks of an engine, on top of token ids."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, cast

from azr_population.engines.engine import (
    Completion,
    Engine,
    GeneratedCounts,
    Hyperparameters,
    Samples,
    Sampling,
    Updates,
)
from azr_population.errors import UserError, first_line
from azr_population.weights.adapter import Adapter


class TextEngine:
    """An engine and the tokenizer of its base.

    With `chat`, a prompt is the user's turn of the tokenizer's chat template; where there is no
    template, it is encoded with the special tokens that the base expects at the start of text.
    """

    def __init__(self, engine: Engine, tokenizer: Any, chat: bool = False) -> None:
        self.engine = engine
        self.tokenizer = tokenizer
        self._chat = chat
        self._generated = GeneratedCounts()

    def generate(
        self, prompts: Sequence[str], slots: Sequence[int], sampling: Sampling, seed: int
    ) -> list[list[Completion]]:
        """See `Rollout`; the completions have their text."""
        if not prompts:
            return []
        groups = self.engine.generate(self.encode(prompts), slots, sampling, seed)
        completions = list(chain.from_iterable(groups))
        self._generated.add(completions)
        texts = self.tokenizer.batch_decode(
            [done.token_ids[: -1 if done.finished else None] for done in completions],
            skip_special_tokens=False,
            clean_up_tokenization_spaces=False,
        )
        rest = iter(texts)
        return [[replace(done, text=next(rest)) for done in group] for group in groups]

    def take_generated(self) -> GeneratedCounts:
        """Counts of what was generated since the last call, by slot."""
        generated, self._generated = self._generated, GeneratedCounts()
        return generated

    def likelihoods(
        self, prompts: Sequence[str], answers: Sequence[str], slots: Sequence[int]
    ) -> list[float]:
        """The probability that each prompt is answered by exactly this text, end of sequence
        included, at temperature 1 by the member in the same place."""
        if not prompts:
            return []
        endings = self.tokenizer(list(answers), add_special_tokens=False)["input_ids"]
        responses = [[*ids, self.tokenizer.eos_token_id] for ids in endings]
        chosen = self.engine.log_probs(self.encode(prompts), responses, slots)
        return [float(logprobs.double().sum().exp()) for logprobs in chosen]

    def encode(self, prompts: Sequence[str]) -> list[list[int]]:
        """The token ids that the engine is given for these prompts."""
        return encode(self.tokenizer, prompts, self._chat)

    def update(self, samples: Samples, hyperparameters: Mapping[int, Hyperparameters]) -> Updates:
        """Calls the engine's `update`; this method and all below pass no text."""
        return self.engine.update(samples, hyperparameters)

    def read(self, slot: int) -> Adapter:
        return self.engine.read(slot)

    def write(self, slot: int, adapter: Adapter) -> None:
        self.engine.write(slot, adapter)

    def state_dict(self) -> dict[str, Any]:
        return self.engine.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.engine.load_state_dict(state)


def encode(tokenizer: Any, prompts: Sequence[str], chat: bool) -> list[list[int]]:
    """Prompts as token ids; for `chat` see `TextEngine`."""
    if chat and tokenizer.chat_template:
        turns = [[{"role": "user", "content": prompt}] for prompt in prompts]
        texts = render(tokenizer, turns)
        # The template writes the special tokens itself.
        ids = tokenizer(texts, add_special_tokens=False)["input_ids"]
    else:
        ids = tokenizer(list(prompts), add_special_tokens=chat)["input_ids"]
    return cast(list[list[int]], ids)


def render(tokenizer: Any, turns: Sequence[Any]) -> Any:
    """A conversation as the text of the chat template up to the assistant's turn, or a text for
    each of several. Raises UserError: the template fails."""
    try:
        return tokenizer.apply_chat_template(turns, add_generation_prompt=True, tokenize=False)
    except Exception as error:  # of any kind: a template is the base's own code
        raise UserError(
            f"the base's chat template fails: {type(error).__name__}: {first_line(error)}; mend it "
            "in its folder (chat_template)"
        ) from error
