"""Odd programs, as members might write them: AZR's seed programs where AZR_HOME has them, else a
few of ours, mutated."""

from __future__ import annotations

import json
import os
import random
import re
from functools import cache
from pathlib import Path

OURS = [
    ("def f(a, b=2):\n    return [a * i + b for i in range(3)]", "1"),
    ("class C:\n    def __init__(self, a): self.a = a\ndef f(a):\n    return vars(C(a))", "[2]"),
    ("def f(s):\n    return f'{s!r:>10} and {len(s)} more'", "'ab'"),
    ("def f(x):\n    match x:\n        case [a, *b]: return b\n    return {'x': 1}", "(1, 2)"),
]
VALUES = [
    *("f'{x} apples'", "f'{3!r:>{9}} {7=}'", "f'''{chr(7)}\n'''", "b'\\xff\\x00'", "'\\ud800'"),
    *("'\u202e\u2066'", "'\x1b[2J'", "'\ufeff\U0001f468\u200d'", "'\\0'", "1e999", "-1e999j"),
    *("9" * 4000, "0x" + "f" * 4000, "1_0.0e-400", "...", "-" * 500 + "1", "(" * 90 + ")" * 90),
    *("[" * 150 + "]" * 150, "lambda: " * 50 + "0", "not " * 200 + "1", "{**{}, 1: ...}"),
    *("(y := 1)", "'</script><script>alert(1)</script>'", "'=cmd()|A1'", "'\\\\input{/x}$%_'"),
    *("float('nan')", "10 ** 5000", "'a' * 10 ** 6", "[0] * 10 ** 9", "f(1)", "[*'ab']", "{-0.0}"),
    *("print('\\x1b]0;x\\x07')", "open('/etc/passwd').read()", "(lambda s: s)(2)", "'\\N{DASH}'"),
]
"""Expressions."""
WORDS = [
    *("\ud800", "\udcff", "\0", "\ufeff", "\x0c", "\r", "\u00e9", "\uff11", "\ufb01", "\\"),
    *("(" * 300, "9" * 5000, "while True: pass", "raise SystemExit", "global f", "return"),
    *("yield x", "await x", "del f", "import os", "from __future__ import annotations", "@f"),
    *("# coding: utf-7", "x = x", "'''", '"', "```", "</answer>", "\t", "pass", "f = 1", "else:"),
]


@cache
def seeds() -> list[tuple[str, str]]:
    """Programs and an input of each, to begin with."""
    file = Path(os.environ.get("AZR_HOME", ""), "data", "7b_coder_seed_io.jsonl")
    if not file.is_file():
        return OURS
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    return [*OURS, *((row["snippet"], row["input"]) for row in rows)]


def mutated(program: str, draw: random.Random) -> str:
    """The program with up to three changes: values in the place of others, words put in, lines
    doubled, struck out or moved, signs lost."""
    for _ in range(draw.choice([0, 1, 1, 1, 2, 3])):
        lines = program.split("\n")
        line = draw.randrange(len(lines))
        kind = draw.random()
        if kind < 0.6:
            matches = list(re.finditer(r"\b\d+\b|'\w*'|(?<=return ).+|(?<== ).+", program))
            if matches:
                start, end = draw.choice(matches).span()
                program = program[:start] + draw.choice(VALUES) + program[end:]
            continue
        if kind < 0.8:
            indent = lines[line][: len(lines[line]) - len(lines[line].lstrip())]
            lines.insert(line, indent + draw.choice(WORDS))
        elif kind < 0.9:
            lines[line : line + 1] = [lines[line]] * draw.randrange(3)
        else:
            at = draw.randrange(len(program) + 1)
            lines = (program[:at] + draw.choice(["", "'", "{"]) + program[at + 1 :]).split("\n")
        program = "\n".join(lines)
    return program
