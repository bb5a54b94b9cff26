"""A prompt or a completion taken apart for a reader: what is code in it, and what is prose."""

from __future__ import annotations

import re
from typing import NamedTuple

from azr_population.domains.code.nano_format import MARKS

_FENCE = re.compile(r"^```[ \t]*(\w*)[^\n]*\n(.*?)(?:^```[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
_MARK = re.compile("|".join(map(re.escape, MARKS)))
_TURN = re.compile(r"<\|im_start\|>user\n(.*?)<\|im_end\|>", re.DOTALL)


class Piece(NamedTuple):
    """A stretch of text; `mark` is what opens it (`<in>`, "```python"), or nothing."""

    mark: str
    text: str
    code: bool


def is_nano(prompt: str) -> bool:
    """Whether a prompt is one of the nano format."""
    return prompt.startswith(MARKS)


def pieces(text: str, nano: bool) -> list[Piece]:
    """The text in pieces without blank ones: fenced blocks are code (one that is not closed reaches
    to the end), and in the `nano` format all is code between the marks."""
    if nano:
        marks = ["", *_MARK.findall(text)]
        parts = zip(marks, _MARK.split(text), strict=True)
        return [Piece(mark, body, True) for mark, body in parts if mark or body.strip()]
    found = []
    end = 0
    for fence in _FENCE.finditer(text):
        found.append(Piece("", text[end : fence.start()], False))
        found.append(Piece(f"```{fence[1]}", fence[2], True))
        end = fence.end()
    found.append(Piece("", text[end:], False))
    return [piece for piece in found if piece.mark or piece.text.strip()]


def asked(prompt: str) -> str:
    """The user's turn of a chat in ChatML (SmolLM2, Qwen); any other prompt as it is."""
    turns = _TURN.findall(prompt)
    return turns[-1] if turns else prompt
