"""LiveCodeBench (Jain et al. 2024), code generation: contest problems by date, hidden tests.

Its release files are 0.1 to 1.2 GB each, so tests are read again when they are needed. The files
test.jsonl to test5.jsonl together are release_v5, which AZR's figures go by.
"""

import base64
import io
import json
import pickle
import zlib
from functools import partial
from typing import Any

from azr_population.errors import UserError
from azr_population.measuring.evaluation.benchmark import BenchmarkRow, benchmark
from azr_population.measuring.evaluation.data import row_at
from azr_population.measuring.evaluation.problem import ContestProblem


@benchmark(
    "livecodebench",
    title="LiveCodeBench",
    area="code",
    files=("livecodebench/*.jsonl", "code_generation_lite/*.jsonl"),
    source="https://huggingface.co/datasets/livecodebench/code_generation_lite",
    licence="CC (of each contest's site)",
    right="passes all public and private tests; printed numbers are compared as decimals",
    prompt="livecodebench_azr",
)
def livecodebench(row: BenchmarkRow) -> ContestProblem:
    metadata = json.loads(row["metadata"])
    return ContestProblem(
        id=row["question_id"],
        question=row["question_content"],
        starter_code=row["starter_code"],
        function=metadata.get("func_name") or "",
        read_tests=partial(_tests, row.path, row.offset),
    )


def _tests(path: Any, offset: int) -> tuple[tuple[str, str], ...]:
    """Public and private tests of the row that begins there."""
    row = row_at(path, offset)
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
