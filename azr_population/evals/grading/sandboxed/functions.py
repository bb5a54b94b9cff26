"""Calls the function that a solution defines, in the sandbox, as evalplus does."""

import json
import marshal
import sys
from collections.abc import Callable
from typing import Any

from azr_population.evals.grading.sandboxed.values import (
    LONGEST_PACKED,
    ROOMS,
    Line,
    described,
    in_room,
    line_of,
    packed,
)


def call_all(
    solution: str,
    entry_point: str,
    inputs: bytes,
    time_part: Callable[[bool], None],
    first: int = 0,
) -> str:
    """The outputs of a solution's function on argument lists (marshalled), packed.

    `lines`, one for each input up to the first that raised, with texts from `first` on as far as
    there is room; `error`, what was raised. `time_part` is told when the time of an input begins
    and ends.
    """
    sys.set_int_max_str_digits(0)
    lines: list[Line] = []
    error = ""
    try:
        scope: dict[str, Any] = {}
        exec(compile(solution, "<solution>", "exec", dont_inherit=True), scope)
        function = scope[entry_point]
        for arguments in marshal.loads(inputs):
            time_part(True)
            value = function(*arguments)
            time_part(False)
            lines.append(line_of(value))
    except BaseException as raised:
        time_part(False)
        error = described(raised)
    for room in ROOMS:
        text = packed({"lines": in_room(lines, first, room), "error": error})
        if len(text) <= LONGEST_PACKED:
            return text
    raise ValueError("the outputs are too many")


def recorded(check: str, entry_point: str, canonical: str) -> str:
    """The argument lists with which `check(candidate)` calls its candidate, each as a literal."""
    scope: dict[str, Any] = {}
    exec(compile(canonical, "<canonical>", "exec", dont_inherit=True), scope)
    exec(compile(check, "<check>", "exec", dont_inherit=True), scope)
    function, seen = scope[entry_point], []

    def candidate(*arguments: Any) -> Any:
        seen.append(repr(list(arguments)))
        return function(*arguments)

    scope["check"](candidate)
    return json.dumps(seen)
