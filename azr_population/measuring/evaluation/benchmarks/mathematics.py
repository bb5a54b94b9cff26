"""The mathematics of Table 1, AZR's files: all are asked and judged alike.

AIME 2024 and 2025 (30 problems each, answers 0 to 999); AMC 2023, 12A and 12B (40, asked without
their choices); MATH-500, the 500 of MATH's test problems (Hendrycks et al. 2021) that Lightman et
al. 2023 chose; Minerva's OCWCourses (272 questions, MIT); GSM8K's test set (Cobbe et al. 2021,
1,319); OlympiadBench (He et al. 2024, 675 open-ended problems, English, no images).
"""

from collections.abc import Callable
from typing import Any

from azr_population.measuring.evaluation.benchmark import BenchmarkRow, benchmark
from azr_population.measuring.evaluation.grading.extraction import last_boxed
from azr_population.measuring.evaluation.problem import MathProblem

_MAA = "problems by the MAA; data file MIT"


def _answer(row: BenchmarkRow) -> str:
    """A gold answer that may be stored as a number: 27.0 is the answer 27."""
    value = row["answer"]
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


def _boxed(row: BenchmarkRow) -> str:
    gold = last_boxed(row["solution"])
    if not gold:
        raise ValueError("no boxed answer in its solution")
    return gold


def _mathematics(
    name: str, title: str, question: str, gold: Callable[[BenchmarkRow], str], licence: str,
    digest: str, *folders: str, **about: Any,
) -> None:  # fmt: skip
    """Registers one: `question` is the row's field, `folders` where its file may lie."""
    benchmark(
        name,
        title=title,
        area="math",
        files=(*(f"{folder}/test.jsonl" for folder in (*folders, name)), f"{name}.jsonl"),
        source="https://github.com/LeapLabTHU/Absolute-Zero-Reasoner, "
        "evaluation/math_eval/eval/data",
        licence=licence,
        right="the answer equals the gold answer (math-verify)",
        prompt="azr_boxed",
        known={digest: "AZR a82124e"},
        **about,
    )(lambda row: MathProblem(row.id, row[question], gold(row)))


_mathematics(
    "aime24", "AIME 24", "problem", _answer, _MAA,
    "af2b8bd2aa911b6333ad0df32f3ca05c7ae8ed10f1731f4372c8ae26990bf7ac",
)  # fmt: skip
_mathematics(
    "aime25", "AIME 25", "problem", _answer, _MAA,
    "20c1ca392758d96bd1e28af15d9f30df5660257927cacc9eac7301c29f677d1a",
)  # fmt: skip
_mathematics(
    "amc23", "AMC 23", "question", _answer, _MAA,
    "43707e1ca784602d8479de24ee8ce36609dbebc46dd152b0b12a46611aa898a4",
)  # fmt: skip
_mathematics(
    "math500", "MATH-500", "problem", _answer, "MIT",
    "35dc41080a3680858b27fa7e0533d2d547825316fc5dafe5d316f4ccc5a06132",
)  # fmt: skip
_mathematics(
    "minerva", "Minerva", "problem", _boxed, "CC BY-NC-SA 4.0 (MIT OpenCourseWare)",
    "0e656b430d3a0a1dab6aa853f453ba3805e28e2cabe4fc72486a897cc09d8ba2", "minerva_math",
)  # fmt: skip
_mathematics(
    "gsm8k", "GSM8K", "question", lambda row: row["answer"].split("####")[1].strip(), "MIT",
    "9f098df7ff4522078d6ccec27a5c38a454790fdb51131bedfaa0e490070d5394", max_new_tokens=1024,
)  # fmt: skip
_mathematics(
    "olympiadbench", "OlympiadBench", "question", lambda row: row["final_answer"][0].strip("$"),
    "Apache-2.0", "bb8c1e38a16ea9eacb77530315a674d883f267fbff79183effc53681b4fcc416",
)  # fmt: skip
