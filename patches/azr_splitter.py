"""AZR's reward manager crashes on a row whose prompt does not contain `reward_fn.splitter`.

It finds the response by splitting the decoded text; a tokenizer that does not give the prompt back
letter by letter, or a validation set with another template, ends the run with an IndexError.
"""

import copy
import functools
from typing import Any

from .mechanism import Patch


class _Response:
    """In the place of the tokenizer: every text is the splitter and the row's response."""

    def __init__(self, text: str) -> None:
        self._text = text

    def encode(self, *args: Any, **kwargs: Any) -> list[int]:
        return []

    def decode(self, *args: Any, **kwargs: Any) -> str:
        return self._text


def _from_tokens(original: Any) -> Any:
    @functools.wraps(original)
    def _get_data_dict(self: Any, data_item: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return original(self, data_item, *args, **kwargs)
        except IndexError:
            width = data_item.batch["prompts"].shape[-1]
            length = int(data_item.batch["attention_mask"][width:].sum())
            response = self.tokenizer.decode(
                data_item.batch["responses"][:length], skip_special_tokens=True
            )
            if isinstance(self.tokenizer, _Response):
                raise
            own = copy.copy(self)
            own.tokenizer = _Response(f"{self.splitter} {response}")
            return original(own, data_item, *args, **kwargs)

    return _get_data_dict


SPLITTER = Patch(
    "azr-splitter",
    "absolute_zero_reasoner.rewards.reward_managers:CodeIORewardManager._get_data_dict",
    "8b5adb2d31fcf2b4",
    "without the splitter in its text a row's response is read off its tokens",
    _from_tokens,
)
