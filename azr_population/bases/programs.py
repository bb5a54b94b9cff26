"""Which programs a base was warmed up on, as digests: a proposal that repeats one is a copy."""

import ast
import hashlib
from collections.abc import Iterable
from pathlib import Path

FILE = "warmup_programs.txt"
"""In the base's folder: a digest a line."""


def digest(program: str) -> str:
    """Twelve hex digits, the same however the program is laid out or commented."""
    try:
        program = ast.unparse(ast.parse(program))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        program = program.strip()
    return hashlib.sha256(program.encode()).hexdigest()[:12]


def read_digests(folder: str | Path) -> set[str]:
    """The digests of a base's warm-up; empty where it had none."""
    path = Path(folder) / FILE
    return set(path.read_text(encoding="ascii").split()) if path.is_file() else set()


def write_digests(folder: Path, digests: Iterable[str]) -> None:
    """Replaces the list."""
    (folder / FILE).write_text("\n".join(sorted(digests)) + "\n", encoding="ascii")
