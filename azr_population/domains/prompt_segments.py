"""Prompts and completions split into code and prose, for display."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from azr_population.domains.format import FENCE

_TURN = re.compile(r"<\|im_start\|>user\n(.*?)<\|im_end\|>", re.DOTALL)


class Segment(NamedTuple):
    """A stretch of text; `mark` is what opens it (`<in>`, "```python"), or nothing."""

    mark: str
    text: str
    code: bool


def marks_of(prompt: str, marks: Sequence[str]) -> Sequence[str]:
    """The domain's `marks`, if a prompt is parted by them: it begins with one."""
    return marks if prompt.startswith(tuple(marks)) else ()


def split_segments(text: str, marks: Sequence[str]) -> list[Segment]:
    """The text in segments without blank ones: between `marks` all is code; without any marks
    fenced blocks are (one that is not closed reaches to the end)."""
    if marks:
        mark = re.compile("|".join(map(re.escape, marks)))
        parts = zip(["", *mark.findall(text)], mark.split(text), strict=True)
        return [Segment(mark, body, True) for mark, body in parts if mark or body.strip()]
    separated = []
    end = 0
    for fence in FENCE.finditer(text):
        separated.append(Segment("", text[end : fence.start()], False))
        separated.append(Segment(f"```{fence[1]}", fence[2], True))
        end = fence.end()
    separated.append(Segment("", text[end:], False))
    return [segment for segment in separated if segment.mark or segment.text.strip()]


def user_turn(prompt: str) -> str:
    """The user's turn of a chat in ChatML (SmolLM2, Qwen); any other prompt as it is."""
    turns = _TURN.findall(prompt)
    return turns[-1] if turns else prompt
