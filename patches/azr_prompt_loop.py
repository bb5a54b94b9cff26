"""AZR's builder of proposal prompts loops for ever when every prompt is too long."""

import functools
from typing import Any

from azr_population.errors import UserError

from .mechanism import Patch

TRIES = 200
"""Prompts in a row that may be too long before the run stops."""


class _Counting:
    """A tokenizer that gives up after `TRIES` prompts in a row that are longer than `limit`."""

    def __init__(self, tokenizer: Any, limit: int) -> None:
        self._tokenizer, self._limit = tokenizer, limit
        self._failed, self._shortest = 0, 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        encoded = self._tokenizer(*args, **kwargs)
        length = len(encoded["input_ids"])
        if length <= self._limit:
            self._failed = 0
            return encoded
        self._shortest = min(length, self._shortest) if self._failed else length
        self._failed += 1
        if self._failed >= TRIES:
            raise UserError(
                f"azr.data_selection_strategy.content_max_length={self._limit}: {TRIES} proposal "
                f"prompts in a row were longer (the shortest had {self._shortest} tokens); raise "
                "it and data.max_prompt_length, or lower azr.data_selection_strategy.io_n"
            )
        return encoded

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tokenizer, name)


def _bounded(original: Any) -> Any:
    @functools.wraps(original)
    def get_gen_code_io_data(*args: Any, **kwargs: Any) -> Any:
        if "tokenizer" in kwargs and "content_max_length" in kwargs:
            kwargs["tokenizer"] = _Counting(kwargs["tokenizer"], kwargs["content_max_length"])
        return original(*args, **kwargs)

    return get_gen_code_io_data


PROMPT_LOOP = Patch(
    "azr-prompt-loop",
    "absolute_zero_reasoner.trainer.ppo.azr_ray_trainer:get_gen_code_io_data",
    "963188e10a045848",
    f"after {TRIES} proposal prompts in a row that are too long the run stops and says so",
    _bounded,
)
