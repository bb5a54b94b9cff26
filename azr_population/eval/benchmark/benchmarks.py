"""The benchmarks: their files, and a problem from each row. Nothing is downloaded."""

import gzip
import hashlib
import json
import os
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from azr_population.errors import UserError
from azr_population.eval.benchmark.contests import livecodebench_problem
from azr_population.eval.benchmark.functions import evalplus_problem
from azr_population.eval.benchmark.mathematics import MathProblem, last_boxed
from azr_population.eval.benchmark.problem import Problem
from azr_population.files import read_json, refuse_irregular
from azr_population.runs.jsonl import bounded

AREAS = {"code": "code", "math": "mathematics"}
"""The areas that figures are averaged over."""
_IN_AZR = ("evaluation/math_eval/eval/data", "evaluation/code_eval/data")
_LONGEST_ROW = 1 << 28
"""Bytes of a row; the tests of a contest's problem have millions."""
Row = dict[str, Any]
"""A line of a benchmark's file; `_id` is made from its number, `_path` and `_offset` (in bytes) say
where it begins."""


@dataclass(frozen=True)
class Benchmark:
    """A benchmark, before its data are read."""

    name: str
    title: str
    area: str
    files: tuple[str, ...]
    """Glob patterns within the data folder; the first that matches counts."""
    problem: Callable[[Row], Problem]
    prompt: str
    """Name of the prompt, as published figures call it."""
    source: str
    """The address of the file."""
    digest: str = ""
    """SHA-256 (evalplus: MD5) of the known release."""
    release: str = "AZR a82124e"
    max_tokens: int = 4096
    hub: str = ""
    """Its data set on the Hugging Face Hub."""


@dataclass(frozen=True)
class Data:
    """A benchmark's problems, and which file they are."""

    problems: list[Problem]
    identity: str
    """The release, or `unknown file`, with the beginning of the file's hash."""


def find_benchmarks(names: str) -> list[Benchmark]:
    """The benchmarks in a comma-separated list of names and areas; `all` is code and math. Raises
    UserError for an unknown name."""
    chosen: dict[str, Benchmark] = {}
    for name in map(str.strip, names.split(",")):
        areas = tuple(AREAS) if name == "all" else (name,)
        matches = {b.name: b for b in BENCHMARKS.values() if b.area in areas or b.name == name}
        if not matches:
            choices = ", ".join(["all", *AREAS, *BENCHMARKS])
            raise UserError(f"benchmarks={name} is unknown; choose from {choices}")
        chosen |= matches
    return list(chosen.values())


def locate(benchmark: Benchmark, folder: str = "") -> list[Path]:
    """The files of a benchmark, in reading order, in the folder or the AZR checkout at `AZR_HOME`;
    empty if there are none."""
    azr = os.environ.get("AZR_HOME")
    folders = [folder] if folder else []
    folders += [str(Path(azr) / root) for root in _IN_AZR] if azr else []
    for root in folders:
        for pattern in benchmark.files:
            if files := sorted(Path(root).glob(pattern)):
                return files
    return []


@lru_cache(maxsize=16)
def read_benchmark(name: str, folder: str = "") -> Data:
    """A benchmark's problems. Raises UserError where the file is missing (with its source) or
    damaged (with the line)."""
    benchmark = BENCHMARKS[name]
    paths = locate(benchmark, folder)
    if not paths:
        raise UserError(
            f"{name}: no {' or '.join(benchmark.files)} in data={folder}; get it from "
            f"{benchmark.source}"
        )
    problems = [problem for path in paths for problem in _problems(benchmark, path)]
    if not problems:
        raise UserError(f"{paths[0]} holds no problem")
    repeated = len(problems) - len({problem.id for problem in problems})
    if repeated:
        raise UserError(f"{paths[0]}: {repeated} problems have the id of another one")
    digest = hashlib.new("md5" if len(benchmark.digest) == 32 else "sha256")
    for path in paths:
        with _open(path) as file:
            while block := file.read(1 << 20):
                digest.update(block)
    release = benchmark.release if digest.hexdigest() == benchmark.digest else "unknown file"
    return Data(problems, f"{release} ({digest.hexdigest()[:12]})")


def _problems(benchmark: Benchmark, path: Path) -> Iterator[Problem]:
    offset = number = 0
    try:
        for number, line in enumerate(_lines(path), 1):
            if line.strip():
                where = {"_id": f"{benchmark.name}/{number - 1}", "_path": path, "_offset": offset}
                row = json.loads(line)
                if b"\\ud" in line:
                    json.dumps(row, ensure_ascii=False).encode()  # raises for a lone surrogate
                yield benchmark.problem({**row, **where})
            offset += len(line)
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"{path} cannot be read: {error}") from error
    except (LookupError, ValueError, TypeError, AttributeError, RecursionError) as error:
        expected = f"not a row of {benchmark.title}"
        raise UserError(f"{path}, line {number}: {expected}: {error!r}") from error


def _lines(path: Path) -> Iterator[bytes]:
    """The rows of a file of lines, or of one JSON list."""
    if path.suffix == ".json":
        yield from (json.dumps(row).encode() for row in read_json(path))
    else:
        with _open(path) as file:
            yield from bounded(file, _LONGEST_ROW)


def _open(path: Path) -> Any:
    refuse_irregular(path)  # a pipe waits for ever
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")


def _math(gold: Callable[[Row], str], question: str = "problem") -> Callable[[Row], MathProblem]:
    return lambda row: MathProblem(row["_id"], row[question], gold(row))


def _answer(row: Row) -> str:
    """A gold answer that may be stored as a number: 27.0 is the answer 27."""
    value = row["answer"]
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


def _boxed(row: Row) -> str:
    gold = last_boxed(row["solution"])
    if not gold:
        raise ValueError("no boxed answer in its solution")
    return gold


def _in_azr(
    name: str, title: str, problem: Callable[[Row], Problem], digest: str, hub: str,
    folder: str = "", max_tokens: int = 4096,
) -> Benchmark:  # fmt: skip
    files = (f"{folder or name}/test.jsonl", f"{name}/test.jsonl", f"{name}.jsonl")
    source = "https://github.com/LeapLabTHU/Absolute-Zero-Reasoner, evaluation/math_eval/eval/data"
    return Benchmark(
        name, title, "math", files, problem, "azr_boxed", source, digest,
        max_tokens=max_tokens, hub=hub,
    )  # fmt: skip


def _evalplus_files(folder: str, name: str) -> tuple[str, ...]:
    """Plain or packed; not `.jsonl.gz.part`, a download that is not at its end."""
    endings = ("jsonl", "jsonl.gz")
    return tuple(f"{place}{name}*.{end}" for place in (f"{folder}/", "") for end in endings)


_ALL = (
    Benchmark(
        "humaneval_plus", "HumanEval+", "code",
        _evalplus_files("humaneval_plus", "HumanEvalPlus"),
        partial(evalplus_problem, "humaneval"), "evalplus",
        "https://github.com/evalplus/humanevalplus_release/releases (v0.1.10)",
        "fe585eb4df8c88d844eeb463ea4d0302", "v0.1.10", 768, "evalplus/humanevalplus",
    ),
    Benchmark(
        "mbpp_plus", "MBPP+", "code", _evalplus_files("mbpp_plus", "MbppPlus"),
        partial(evalplus_problem, "mbpp"), "evalplus",
        "https://github.com/evalplus/mbppplus_release/releases (v0.2.0)",
        "ee43ecabebf20deef4bb776a405ac5b1", "v0.2.0", 768, "evalplus/mbppplus",
    ),
    Benchmark(
        "livecodebench", "LiveCodeBench", "code",
        ("livecodebench/*.jsonl", "code_generation_lite/*.jsonl"), livecodebench_problem,
        "livecodebench_azr", "https://huggingface.co/datasets/livecodebench/code_generation_lite",
        hub="livecodebench/code_generation_lite",
    ),
    _in_azr(
        "aime24", "AIME 24", _math(_answer),
        "af2b8bd2aa911b6333ad0df32f3ca05c7ae8ed10f1731f4372c8ae26990bf7ac", "math-ai/aime24",
    ),
    _in_azr(
        "aime25", "AIME 25", _math(_answer),
        "20c1ca392758d96bd1e28af15d9f30df5660257927cacc9eac7301c29f677d1a", "math-ai/aime25",
    ),
    _in_azr(
        "amc23", "AMC 23", _math(_answer, "question"),
        "43707e1ca784602d8479de24ee8ce36609dbebc46dd152b0b12a46611aa898a4", "math-ai/amc23",
    ),
    _in_azr(
        "math500", "MATH-500", _math(_answer),
        "35dc41080a3680858b27fa7e0533d2d547825316fc5dafe5d316f4ccc5a06132",
        "HuggingFaceH4/MATH-500",
    ),
    _in_azr(
        "minerva", "Minerva", _math(_boxed),
        "0e656b430d3a0a1dab6aa853f453ba3805e28e2cabe4fc72486a897cc09d8ba2",
        "math-ai/minervamath", "minerva_math",
    ),
    _in_azr(
        "gsm8k", "GSM8K", _math(lambda row: row["answer"].split("####")[1].strip(), "question"),
        "9f098df7ff4522078d6ccec27a5c38a454790fdb51131bedfaa0e490070d5394", "openai/gsm8k",
        max_tokens=1024,
    ),
    _in_azr(
        "olympiadbench", "OlympiadBench",
        _math(lambda row: row["final_answer"][0].strip("$"), "question"),
        "bb8c1e38a16ea9eacb77530315a674d883f267fbff79183effc53681b4fcc416", "Hothan/OlympiadBench",
    ),
)  # fmt: skip
BENCHMARKS = {benchmark.name: benchmark for benchmark in _ALL}
"""The benchmarks by name. The first ten are the paper's Table 1."""
