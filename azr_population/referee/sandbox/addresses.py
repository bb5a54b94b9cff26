"""Memory addresses: where they come from, and whether an output shows one.

A zygote runs without address space randomisation where the kernel lets it, so that an order which
depends on where objects lie (a set with None in it) is the same in every worker and on every day.
"""

import re
from collections.abc import Sequence

_SHOWN = re.compile(r" at 0x([0-9a-f]{6,16})\b")
_SLACK = 1 << 30  # bytes that a process may grow by

Ranges = Sequence[tuple[int, int]]


def mapped() -> list[tuple[int, int]]:
    """The ranges of addresses that this process uses or may come to use, in large pieces."""
    ranges: list[tuple[int, int]] = []
    try:
        with open("/proc/self/maps") as file:
            lines = [line.split(maxsplit=1)[0].split("-") for line in file]
    except OSError:
        return [(0, 1 << 64)]
    for low, high in sorted((int(low, 16), int(high, 16)) for low, high in lines):
        if ranges and low <= ranges[-1][1] + _SLACK:
            ranges[-1] = (ranges[-1][0], high)
        else:
            ranges.append((max(low - _SLACK, low >> 1), high))
    return [(low, high + _SLACK) for low, high in ranges]


def shown(text: str, ranges: Ranges, source: str) -> bool:
    """Whether an output holds the likes of `<function f at 0x7f31c02a3b50>`.

    A number counts that is an address of this process, unless the program's own text holds it.
    """
    for match in _SHOWN.finditer(text):
        address = int(match[1], 16)
        if any(low <= address < high for low, high in ranges) and match[1] not in source:
            return True
    return False
