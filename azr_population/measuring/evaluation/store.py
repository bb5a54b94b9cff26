"""Completions and verdicts on disk: what is finished is kept, whatever happens next.

    completions.jsonl   one line a completion, in the order in which they were drawn
    verdicts.jsonl      one line a verdict; the last one of a completion counts
    settings.jsonl      what the digest of a setting stands for

A line torn by a crash is left where it is and skipped. One process at a time writes.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from azr_population.files import lock, open_own, writing
from azr_population.measuring.evaluation.grading.verdict import Verdict
from azr_population.measuring.evaluation.sampling.sampler import Drawn


@dataclass(frozen=True)
class Key:
    """Which completion: everything that it depends on."""

    settings: str
    """Digest of benchmark, prompt and sampling."""
    member: str
    weights: str
    problem: str
    sample: int


def settings_digest(settings: Mapping[str, Any]) -> str:
    """Eight hex digits that stand for how completions are drawn."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:8]


class Store:
    """The records of one entry. Use `locked` to write."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.completions: dict[Key, Drawn] = {}
        self.verdicts: dict[Key, Verdict] = {}
        self._known: set[str] = set()
        for row in self._rows("completions"):
            self._take(row, self.completions, Drawn)
        for row in self._rows("verdicts"):
            self._take(row, self.verdicts, Verdict)
        self._known = {row["digest"] for row in self._rows("settings") if "digest" in row}

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keeps others from writing here; freed even by a crash. Raises UserError where another
        process writes, or the folder cannot be written."""
        with ExitStack() as stack:
            with writing(self.folder):
                self.folder.mkdir(parents=True, exist_ok=True)
                used = f"{self.folder} is in use by another evaluation"
                stack.enter_context(lock(self.folder / ".lock", used))
            yield

    def note_settings(self, digest: str, settings: Mapping[str, Any]) -> None:
        """Writes down what a digest stands for, once."""
        if digest not in self._known:
            self._append("settings", [{"digest": digest, **settings}])
            self._known.add(digest)

    def add_completions(self, rows: Iterable[tuple[Key, Drawn]]) -> None:
        """Keeps completions; they are on disk when this returns."""
        kept = list(rows)
        self._append("completions", [{**asdict(key), **asdict(drawn)} for key, drawn in kept])
        self.completions.update(kept)

    def add_verdicts(self, rows: Iterable[tuple[Key, Verdict]]) -> None:
        """Keeps verdicts, over older ones of the same completions."""
        kept = list(rows)
        self._append("verdicts", [{**asdict(key), **asdict(verdict)} for key, verdict in kept])
        self.verdicts.update(kept)

    def copy(self, other: Store, keys: Iterable[Key]) -> None:
        """Keeps what another store has of these keys and this one has not."""
        missing = [key for key in keys if key not in self.completions and key in other.completions]
        self.add_completions((key, other.completions[key]) for key in missing)
        judged = [key for key in missing if key in other.verdicts]
        self.add_verdicts((key, other.verdicts[key]) for key in judged)

    def _append(self, name: str, rows: list[dict[str, Any]]) -> None:
        if not rows:
            return
        path = self.folder / f"{name}.jsonl"
        text = "".join(json.dumps(row, ensure_ascii=True) + "\n" for row in rows)
        with writing(path), open(path, "ab+", opener=open_own) as file:
            if _torn(file):
                text = "\n" + text
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())

    def _rows(self, name: str) -> Iterator[dict[str, Any]]:
        path = self.folder / f"{name}.jsonl"
        if not path.is_file():
            return
        with path.open(encoding="utf-8", errors="replace") as file:
            for line in file:
                try:
                    row = json.loads(line)
                except (ValueError, RecursionError):
                    continue
                if isinstance(row, dict):
                    yield row

    @staticmethod
    def _take(row: dict[str, Any], into: dict[Key, Any], kind: type) -> None:
        try:
            key = Key(**{name: row.pop(name) for name in Key.__dataclass_fields__})
            into[key] = kind(**row)
        except (KeyError, TypeError):  # a line of another version: drawn or judged again
            return


def _torn(file: IO[bytes]) -> bool:
    """Whether the file ends in the middle of a line."""
    if file.seek(0, os.SEEK_END) == 0:
        return False
    file.seek(-1, os.SEEK_END)
    return file.read(1) != b"\n"
