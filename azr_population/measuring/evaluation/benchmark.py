"""A benchmark: one decorated function that makes a problem of a row of its file.

@benchmark(
    "my_set", title="My set", area="math", files=("my_set.jsonl",), prompt="boxed",
    source="https://...", licence="MIT", right="the last boxed answer equals the gold answer",
)
def my_set(row: BenchmarkRow) -> Problem:
    return MathProblem(row.id, row["question"], row["answer"])
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from azr_population.errors import UserError
from azr_population.measuring.evaluation.problem import Problem
from azr_population.registry import Registry

AREAS = {"code": "code", "math": "mathematics"}
"""The areas that figures are averaged over, by name; `extra` is in none of them."""


@dataclass(frozen=True)
class BenchmarkRow:
    """A line of a benchmark's file."""

    values: Mapping[str, Any]
    id: str
    """`<benchmark>/<line>`, lines counted from 0."""
    path: Path
    offset: int
    """Where the line begins in the file, in bytes."""

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def get(self, name: str, default: Any = None) -> Any:
        """The value under `name`, or the default."""
        return self.values.get(name, default)


@dataclass(frozen=True)
class Benchmark:
    """What is known about a benchmark before its data are read."""

    name: str
    title: str
    area: str
    """`code` or `math`, whose benchmarks make the table; `extra` is left out of averages."""
    row: Callable[[BenchmarkRow], Problem]
    files: tuple[str, ...]
    """Where its file may lie in a folder of data, as glob patterns; the first that fits counts."""
    source: str
    """Where to get it."""
    licence: str
    right: str
    """What counts as right, in a sentence."""
    prompt: str
    """Name of the prompt that published figures go by."""
    max_new_tokens: int = 4096
    variable: str = ""
    """Name of an environment variable that may hold the file's path."""
    hash: str = "sha256"
    known: Mapping[str, str] = field(default_factory=dict)
    """Hash of a file -> the release it is."""

    def __call__(self, row: BenchmarkRow) -> Problem:
        return self.row(row)


BENCHMARKS: Registry[Benchmark] = Registry("--benchmarks", Benchmark, "@benchmark")


def benchmark(name: str, **about: Any) -> Callable[[Callable[[BenchmarkRow], Problem]], Benchmark]:
    """Decorator: registers a benchmark; `about` are the fields of `Benchmark`. It can also be had
    by its path, `module.function`."""

    def file(function: Callable[[BenchmarkRow], Problem]) -> Benchmark:
        made = Benchmark(name=name, row=function, **about)
        return BENCHMARKS.register(name, made.source)(made)

    return file


def chosen(names: str) -> list[Benchmark]:
    """The benchmarks that a list with commas names: areas, names, or `all` (those of the table).
    Raises UserError for a name that there is not."""
    # Imported here, because the files of the benchmarks import this module.
    import azr_population.measuring.evaluation.benchmarks  # noqa: F401

    known = [entry.function for entry in BENCHMARKS]
    picked: dict[str, Benchmark] = {}
    for name in filter(None, (part.strip() for part in names.split(","))):
        areas = tuple(AREAS) if name == "all" else (name,)
        found = [one for one in known if one.area in areas] or [BENCHMARKS.find(name).function]
        picked.update({one.name: one for one in found})
    if not picked:
        raise UserError(f"--benchmarks={names} names no benchmark; see --list")
    return list(picked.values())
