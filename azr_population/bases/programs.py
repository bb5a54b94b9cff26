"""Which programs a base was warmed up on, as digests: a proposal that repeats one is a copy."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from azr_population.domains.code.source import laid_out

FILE = "warmup_programs.txt"
"""In the base's folder: a digest a line."""


def digest(program: str) -> str:
    """Twelve hex digits, the same however the program is laid out or commented."""
    text = laid_out(program) or program.strip()
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:12]


def read_digests(folder: str | Path) -> set[str]:
    """The digests of a base's warm-up; empty where it had none."""
    path = Path(folder) / FILE
    return set(path.read_text(encoding="ascii").split()) if path.is_file() else set()


def write_digests(folder: Path, digests: Iterable[str]) -> None:
    """Replaces the list."""
    (folder / FILE).write_text("\n".join(sorted(digests)) + "\n", encoding="ascii")
