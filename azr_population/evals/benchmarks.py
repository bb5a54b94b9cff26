"""The benchmarks: their files, and a problem from each row. Nothing is downloaded."""

import base64
import gzip
import hashlib
import io
import json
import os
import pickle
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from azr_population.errors import UserError
from azr_population.files import read_json

AREAS = {"code": "code", "math": "mathematics"}
"""The areas that figures are averaged over; `extra` is in none of them."""
_IN_AZR = ("evaluation/math_eval/eval/data", "evaluation/code_eval/data")


@dataclass(frozen=True)
class MathProblem:
    """A question; its answer is a mathematical object, `gold` in LaTeX without `\\boxed`."""

    id: str
    question: str
    gold: str


@dataclass(frozen=True)
class FunctionProblem:
    """A function to be written; the canonical solution's outputs are right."""

    id: str
    prompt: str
    """Signature and docstring, or a docstring with examples."""
    entry_point: str
    canonical: str
    """A right program, complete."""
    base_inputs: list[Any] = field(default_factory=list)
    """Argument lists of the original benchmark."""
    plus_inputs: list[Any] = field(default_factory=list)
    """Those that the + set adds."""
    atol: float = 0.0
    """How far floats may be off."""
    dataset: str = ""
    """evalplus's name of the benchmark, by which its special rules go: `humaneval`, `mbpp`."""

    @property
    def inputs(self) -> tuple[list[Any], list[Any]]:
        """Base and plus."""
        return self.base_inputs, self.plus_inputs


Tests = tuple[tuple[str, str], ...]
"""(input, output) of each test of a contest problem."""


@dataclass(frozen=True)
class ContestProblem:
    """A contest's task (LiveCodeBench). With a `function`, a test's input is its arguments, a JSON
    value a line, and the output a JSON value; without, they are standard input and output."""

    id: str
    question: str
    starter_code: str
    function: str
    read_tests: Callable[[], Tests]
    """Reads the tests, which are too large to stay in memory."""


@dataclass(frozen=True)
class PuzzleProblem:
    """A function `sat`; whatever it returns True for is right (P3)."""

    id: str
    program: str


Problem = MathProblem | FunctionProblem | ContestProblem | PuzzleProblem


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
    """Name of the prompt that published figures go by."""
    source: str
    """Where to get the file."""
    licence: str
    digest: str = ""
    """SHA-256 (evalplus: MD5) of the known release."""
    release: str = "AZR a82124e"
    max_tokens: int = 4096
    hub: str = ""
    """Its data set on the Hugging Face Hub."""


@dataclass(frozen=True)
class Data:
    """A benchmark's problems, and which file they are."""

    benchmark: Benchmark
    problems: list[Problem]
    identity: str
    """The release, or `unknown file`, with the beginning of the file's hash."""


def find_benchmarks(names: str) -> list[Benchmark]:
    """The benchmarks in a comma-separated list of names and areas; `all` is code and math. Raises
    UserError for an unknown name."""
    chosen: dict[str, Benchmark] = {}
    for name in filter(None, (part.strip() for part in names.split(","))):
        areas = tuple(AREAS) if name == "all" else (name,)
        matches = [b for b in BENCHMARKS.values() if b.area in areas or b.name == name]
        if not matches:
            choices = ", ".join(["all", *AREAS, *BENCHMARKS])
            raise UserError(f"benchmarks={name} is unknown; choose from {choices}")
        chosen.update({benchmark.name: benchmark for benchmark in matches})
    if not chosen:
        raise UserError(f"benchmarks={names!r} names no benchmark")
    return list(chosen.values())


def locate(benchmark: Benchmark, folder: str = "") -> list[Path]:
    """The files of a benchmark, in reading order, in the folder or the AZR checkout at `AZR_HOME`;
    empty if there are none."""
    azr = os.environ.get("AZR_HOME")
    folders = [folder] if folder else []
    folders += [str(Path(azr) / place) for place in _IN_AZR] if azr else []
    for place in folders:
        for pattern in benchmark.files:
            if files := sorted(Path(place).glob(pattern), key=_natural):
                return files
    return []


@lru_cache(maxsize=16)
def read_benchmark(name: str, folder: str = "") -> Data:
    """A benchmark's problems. Raises UserError where the file is missing (with its source) or
    damaged (with the line)."""
    benchmark = BENCHMARKS[name]
    paths = locate(benchmark, folder)
    if not paths:
        where = f"in {folder}" if folder else "(no data folder given)"
        raise UserError(
            f"{name}: no {' or '.join(benchmark.files)} {where}; get it from {benchmark.source} "
            "and name its folder as data"
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
            for block in iter(lambda: file.read(1 << 20), b""):
                digest.update(block)
    hexdigest = digest.hexdigest()
    release = benchmark.release if hexdigest == benchmark.digest else "unknown file"
    return Data(benchmark, problems, f"{release} ({hexdigest[:12]})")


def _problems(benchmark: Benchmark, path: Path) -> Iterator[Problem]:
    offset = number = 0
    try:
        for number, line in enumerate(_lines(path), 1):
            if line.strip():
                place = {"_id": f"{benchmark.name}/{number - 1}", "_path": path, "_offset": offset}
                yield benchmark.problem({**json.loads(line), **place})
            offset += len(line)
    except KeyError as error:
        raise UserError(f"{path}, line {number}: it has no {error.args[0]!r}") from error
    except (OSError, EOFError) as error:
        raise UserError(f"{path} cannot be read: {error}") from error
    except (ValueError, TypeError, IndexError, AttributeError) as error:
        what = f"not a row of {benchmark.title}"
        raise UserError(f"{path}, line {number}: {what}: {error}") from error


def _lines(path: Path) -> Iterator[bytes]:
    """The rows of a file of lines, or of one JSON list."""
    if path.suffix != ".json":
        with _open(path) as file:
            yield from file
        return
    rows = read_json(path)
    if not isinstance(rows, list):
        raise UserError(f"{path} is not a list of problems")
    yield from (json.dumps(row).encode() for row in rows)


def _open(path: Path) -> Any:
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")


def _natural(path: Path) -> list[Any]:
    """test2 before test10."""
    parts = re.split(r"(\d+)", path.name.partition(".")[0])
    return [int(part) if part.isdigit() else part for part in parts]


def last_boxed(text: str) -> str:
    """The content of the last `\\boxed{...}` or `\\fbox{...}`; '' if there is none, or no end."""
    start = max(text.rfind("\\boxed"), text.rfind("\\fbox"))
    opening = re.match(r"\\f?box(?:ed)?\s*", text[start:]) if start >= 0 else None
    if opening is None:
        return ""
    rest = text[start + opening.end() :]
    if not rest.startswith("{"):
        return re.split(r"[\s$.,]", rest, maxsplit=1)[0]  # `\boxed 7`
    depth = 0
    for position, character in enumerate(rest):
        depth += (character == "{") - (character == "}")
        if depth == 0:
            return rest[1:position].strip()
    return ""


def _evalplus(dataset: str, row: Row) -> FunctionProblem:
    # Imported here: evalplus is of the extra, and the list of benchmarks is not.
    from azr_population.evals.grading.rules import deserialize_inputs

    inputs = [
        deserialize_inputs(dataset, row["task_id"], row[k]) for k in ("base_input", "plus_input")
    ]
    return FunctionProblem(
        id=row["task_id"],
        prompt=row["prompt"],
        entry_point=row["entry_point"],
        canonical=row["prompt"] + row["canonical_solution"],
        base_inputs=inputs[0],
        plus_inputs=inputs[1],
        atol=float(row["atol"]),
        dataset=dataset,
    )


def _livecodebench(row: Row) -> ContestProblem:
    function = json.loads(row["metadata"]).get("func_name") or ""
    tests = partial(_contest_tests, row["_path"], row["_offset"])
    about = row["question_id"], row["question_content"], row["starter_code"]
    return ContestProblem(*about, function, tests)


def _contest_tests(path: Path, offset: int) -> Tests:
    """Public and private tests of the row that begins there: files of 0.1 to 1.2 GB are read again
    when they are needed."""
    with path.open("rb") as file:
        file.seek(offset)
        row = json.loads(file.readline())
    try:
        cases = json.loads(row["public_test_cases"]) + _private(row["private_test_cases"])
        return tuple((case["input"], case["output"]) for case in cases)
    except (ValueError, KeyError, TypeError, zlib.error, pickle.UnpicklingError) as error:
        raise UserError(f"{path}: the tests of {row.get('question_id')} are damaged") from error


def _private(text: str) -> list[dict[str, str]]:
    """Plain JSON, or JSON that was pickled, compressed and written in base 64."""
    try:
        return list(json.loads(text))
    except ValueError:
        packed = zlib.decompress(base64.b64decode(text))
        return list(json.loads(_OnlyText(io.BytesIO(packed)).load()))


class _OnlyText(pickle.Unpickler):
    """Unpickles texts: a pickle that asks for anything else could run code."""

    def find_class(self, module: str, name: str) -> Any:
        raise ValueError(f"a pickle that asks for {module}.{name}")


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


_AZR = "https://github.com/LeapLabTHU/Absolute-Zero-Reasoner, evaluation/math_eval/eval/data"
_MAA = "problems by the MAA; data file MIT"


def _puzzle(row: Row) -> PuzzleProblem:
    """With the import that annotations of `sat` need; the file leaves it out."""
    sat = str(row["sat"])
    header = "from typing import List\n\n\n" if "List" in sat else ""
    return PuzzleProblem(row["name"], header + sat)


def _in_azr(
    name: str, title: str, problem: Callable[[Row], Problem], licence: str, digest: str,
    hub: str, folder: str = "", max_tokens: int = 4096,
) -> Benchmark:  # fmt: skip
    files = (f"{folder or name}/test.jsonl", f"{name}/test.jsonl", f"{name}.jsonl")
    return Benchmark(
        name, title, "math", files, problem, "azr_boxed", _AZR, licence, digest,
        max_tokens=max_tokens, hub=hub,
    )  # fmt: skip


_ALL = (
    Benchmark(
        "humaneval_plus", "HumanEval+", "code",
        ("humaneval_plus/HumanEvalPlus*.jsonl*", "HumanEvalPlus*.jsonl*"),
        partial(_evalplus, "humaneval"), "evalplus",
        "https://github.com/evalplus/humanevalplus_release/releases (v0.1.10)",
        "Apache-2.0 (problems MIT)", "fe585eb4df8c88d844eeb463ea4d0302", "v0.1.10", 768,
        "evalplus/humanevalplus",
    ),
    Benchmark(
        "mbpp_plus", "MBPP+", "code", ("mbpp_plus/MbppPlus*.jsonl*", "MbppPlus*.jsonl*"),
        partial(_evalplus, "mbpp"), "evalplus",
        "https://github.com/evalplus/mbppplus_release/releases (v0.2.0)",
        "Apache-2.0 (problems CC BY 4.0)", "ee43ecabebf20deef4bb776a405ac5b1", "v0.2.0", 768,
        "evalplus/mbppplus",
    ),
    Benchmark(
        "livecodebench", "LiveCodeBench", "code",
        ("livecodebench/*.jsonl", "code_generation_lite/*.jsonl"), _livecodebench,
        "livecodebench_azr", "https://huggingface.co/datasets/livecodebench/code_generation_lite",
        "CC (of each contest's site)", hub="livecodebench/code_generation_lite",
    ),
    _in_azr(
        "aime24", "AIME 24", _math(_answer), _MAA,
        "af2b8bd2aa911b6333ad0df32f3ca05c7ae8ed10f1731f4372c8ae26990bf7ac", "math-ai/aime24",
    ),
    _in_azr(
        "aime25", "AIME 25", _math(_answer), _MAA,
        "20c1ca392758d96bd1e28af15d9f30df5660257927cacc9eac7301c29f677d1a", "math-ai/aime25",
    ),
    _in_azr(
        "amc23", "AMC 23", _math(_answer, "question"), _MAA,
        "43707e1ca784602d8479de24ee8ce36609dbebc46dd152b0b12a46611aa898a4", "math-ai/amc23",
    ),
    _in_azr(
        "math500", "MATH-500", _math(_answer), "MIT",
        "35dc41080a3680858b27fa7e0533d2d547825316fc5dafe5d316f4ccc5a06132",
        "HuggingFaceH4/MATH-500",
    ),
    _in_azr(
        "minerva", "Minerva", _math(_boxed), "CC BY-NC-SA 4.0 (MIT OpenCourseWare)",
        "0e656b430d3a0a1dab6aa853f453ba3805e28e2cabe4fc72486a897cc09d8ba2",
        "math-ai/minervamath", "minerva_math",
    ),
    _in_azr(
        "gsm8k", "GSM8K", _math(lambda row: row["answer"].split("####")[1].strip(), "question"),
        "MIT", "9f098df7ff4522078d6ccec27a5c38a454790fdb51131bedfaa0e490070d5394",
        "openai/gsm8k", max_tokens=1024,
    ),
    _in_azr(
        "olympiadbench", "OlympiadBench",
        _math(lambda row: row["final_answer"][0].strip("$"), "question"), "Apache-2.0",
        "bb8c1e38a16ea9eacb77530315a674d883f267fbff79183effc53681b4fcc416", "Hothan/OlympiadBench",
    ),
    Benchmark(
        "p3", "P3", "extra", ("p3/puzzles.json", "puzzles.json"),
        _puzzle, "puzzle",
        "https://github.com/microsoft/PythonProgrammingPuzzles, puzzles/puzzles.json", "MIT",
        max_tokens=2048,
    ),
)  # fmt: skip
BENCHMARKS = {benchmark.name: benchmark for benchmark in _ALL}
"""By name. The first ten are the paper's Table 1."""
