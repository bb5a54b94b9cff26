"""Finding and reading a benchmark's file. Nothing is ever downloaded."""

import gzip
import hashlib
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from azr_population.errors import UserError
from azr_population.files import read_json
from azr_population.measuring.evaluation.benchmark import Benchmark, BenchmarkRow
from azr_population.measuring.evaluation.problem import Problem

_IN_AZR = ("evaluation/math_eval/eval/data", "evaluation/code_eval/data")


@dataclass(frozen=True)
class Data:
    """A benchmark's problems, and which file they are."""

    benchmark: Benchmark
    problems: list[Problem]
    digest: str
    release: str
    """What the file is known as; '' for one that is not known."""

    @property
    def identity(self) -> str:
        """The release, or that it is unknown, with the beginning of the hash."""
        return f"{self.release or 'unknown file'} ({self.digest[:12]})"


def locate(benchmark: Benchmark, folder: Path | None) -> list[Path]:
    """The files of a benchmark in the order that they are read; empty where there are none.

    Looked for, in this order: the benchmark's environment variable, `folder`, and what an AZR
    checkout (`AZR_HOME`) ships.

    Raises UserError for a variable that names no file.
    """
    named = os.environ.get(benchmark.variable, "") if benchmark.variable else ""
    if named:
        if not Path(named).is_file():
            raise UserError(f"{benchmark.variable}={named} is not a file")
        return [Path(named)]
    folders = [folder] if folder else []
    if os.environ.get("AZR_HOME"):
        folders += [Path(os.environ["AZR_HOME"]) / place for place in _IN_AZR]
    for place in folders:
        for pattern in benchmark.files:
            found = sorted(place.glob(pattern), key=_natural)
            if found:
                return found
    return []


def read(benchmark: Benchmark, folder: Path | None) -> Data:
    """The problems of a benchmark. Raises UserError where the data are missing (with how to get
    them) or damaged (with the line)."""
    paths = locate(benchmark, folder)
    if not paths:
        looked = f"in {folder}" if folder else "(no --data given)"
        raise UserError(
            f"{benchmark.name}: no {' or '.join(benchmark.files)} {looked}; get it from "
            f"{benchmark.source} and name its folder by --data"
        )
    problems = [problem for path in paths for problem in _problems(benchmark, path)]
    repeated = len(problems) - len({problem.id for problem in problems})
    if repeated:
        raise UserError(f"{paths[0]}: {repeated} problems have the id of another one")
    if not problems:
        raise UserError(f"{paths[0]} holds no problem")
    digest = file_digest(benchmark, paths)
    return Data(benchmark, problems, digest, benchmark.known.get(digest, ""))


def file_digest(benchmark: Benchmark, paths: list[Path]) -> str:
    """The hash of the files' contents, one after the other."""
    digest = hashlib.new(benchmark.hash)
    for path in paths:
        with _opened(path) as file:
            for block in iter(lambda: file.read(1 << 20), b""):
                digest.update(block)
    return digest.hexdigest()


def row_at(path: Path, offset: int) -> dict[str, Any]:
    """The row that begins there, read again: for what is too large to keep."""
    with path.open("rb") as file:
        file.seek(offset)
        row: dict[str, Any] = json.loads(file.readline())
    return row


def _problems(benchmark: Benchmark, path: Path) -> Iterator[Problem]:
    offset = 0
    try:
        for number, line in enumerate(_lines(path)):
            row_id = f"{benchmark.name}/{number}"
            if line.strip():
                yield _problem(benchmark, line, BenchmarkRow({}, row_id, path, offset), number + 1)
            offset += len(line)
    except (OSError, EOFError, gzip.BadGzipFile) as error:
        raise UserError(f"{path} cannot be read: {error}") from error


def _problem(benchmark: Benchmark, line: bytes, place: BenchmarkRow, number: int) -> Problem:
    try:
        values = json.loads(line)
        if not isinstance(values, dict):
            raise ValueError("not a JSON object")
        return benchmark(BenchmarkRow(values, place.id, place.path, place.offset))
    except KeyError as error:
        raise UserError(f"{place.path}, line {number}: it has no {error.args[0]!r}") from error
    except (ValueError, TypeError, IndexError, AttributeError) as error:
        raise UserError(
            f"{place.path}, line {number}: this is no row of {benchmark.title}: {error}"
        ) from error


def _lines(path: Path) -> Iterator[bytes]:
    """A row each, of a file of lines or of one JSON list."""
    if path.suffix == ".json":
        rows = read_json(path)
        if not isinstance(rows, list):
            raise UserError(f"{path} is no list of problems")
        yield from (json.dumps(row).encode() for row in rows)
    else:
        with _opened(path) as file:
            yield from file


def _opened(path: Path) -> Any:
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")


def _natural(path: Path) -> list[Any]:
    """test2 before test10."""
    parts = re.split(r"(\d+)", path.name.partition(".")[0])
    return [int(part) if part.isdigit() else part for part in parts]


@dataclass(frozen=True)
class Found:
    """What `--list` says of a benchmark's data."""

    paths: list[Path]
    state: str
    problems: str = "-"
    digest: str = "-"


def describe(benchmark: Benchmark, folder: Path | None) -> Found:
    """What is there of a benchmark; reads the files for their hash, not their problems."""
    paths = locate(benchmark, folder)
    if not paths:
        return Found([], "missing")
    count = 0
    for path in paths:
        count += sum(bool(line.strip()) for line in _lines(path))
    digest = file_digest(benchmark, paths)
    state = benchmark.known.get(digest, "unknown file")
    return Found(paths, state, str(count), digest[:12])
