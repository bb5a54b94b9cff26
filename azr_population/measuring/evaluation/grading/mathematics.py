"""Whether two mathematical answers are the same, by math-verify."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any

from azr_population.errors import UserError
from azr_population.measuring.evaluation.grading.verdict import NO_ANSWER, PASSED, WRONG, Verdict
from azr_population.measuring.evaluation.grading.workers import Workers
from azr_population.measuring.evaluation.problem import MathProblem

_SMALL = 1e-3
_LONGEST = 4000
"""Characters of an answer; what is longer is no answer to these questions."""


def grade_answers(
    answers: Iterable[tuple[MathProblem, str]], workers: Workers
) -> Iterator[Verdict]:
    """Verdicts in order."""
    try:
        import math_verify  # noqa: F401
    except ImportError as error:
        raise UserError("math-verify is needed: pip install 'math-verify[antlr4_9_3]'") from error
    kept = list(answers)
    judged = workers.map(equal, ((problem.gold, answer) for problem, answer in kept), lambda: None)
    for (_, answer), same in zip(kept, judged, strict=True):
        if not answer.strip():
            yield Verdict(False, NO_ANSWER)
        elif same is None:
            yield Verdict(False, "timeout", "the answer took too long to read", answer)
        else:
            yield Verdict(same, PASSED if same else WRONG, "", answer)


def equal(gold: str, answer: str) -> bool | None:
    """Whether an answer equals the gold one. Not symmetric: see `math_verify.verify`.

    May run for hours on a hostile answer: call it through `Workers`.
    """
    if not answer.strip() or len(answer) > _LONGEST:
        return False
    gold_text, answer_text = normal(gold), normal(answer)
    if _plain(gold_text) == _plain(answer_text):
        return True
    if _same(_parsed(gold_text), _parsed(answer_text)):
        return True
    # A percentage equals the number that it is, too: 10% is 0.1.
    if _PERCENT.search(gold) or _PERCENT.search(answer):
        texts = [
            f"({text})/100" if _PERCENT.search(given) else text
            for given, text in ((gold, gold_text), (answer, answer_text))
        ]
        return _same(_parsed(texts[0]), _parsed(texts[1]))
    return False


def _same(gold: Any, answer: Any) -> bool:
    """`math_verify.verify`, but for small numbers: it rounds to six decimals, so 3e-19 is 5e-24."""
    read = [number for number in map(_number, (gold, answer)) if number is not None]
    if len(read) == 2 and any(0 < abs(number) < _SMALL for number in read):
        return math.isclose(read[0], read[1], rel_tol=1e-6)
    _, verify = _library()
    # -1 <= x <= 1 is [-1, 1].
    return bool(verify(gold, answer, allow_set_relation_comp=True, timeout_seconds=None))


def _number(parsed: Any) -> float | None:
    """The real number that was read; None where it was something else."""
    try:
        return float(parsed[0]) if parsed[0].is_number else None
    except (IndexError, AttributeError, TypeError, ValueError, OverflowError):
        return None


_PERCENT = re.compile(r"\\?\s*%|\b(?:percent|percentage|pct)\b")
_REWRITTEN = (
    # What says nothing of the value: signs and words that sets write or leave out as they please.
    (_PERCENT, ""),
    (re.compile(r"°|\\degree\b|\bdegrees?\b"), ""),
    (re.compile(r"\b(?:dollars?|cents)\b"), ""),
    (re.compile(r"\.\s*$"), ""),
    (re.compile(r"\\varnothing\b"), r"\\emptyset"),
    # Blanks between groups of three digits.
    (re.compile(r"(?<=\d)(?:\\[,!; ]|~|\s)+(?=\d{3}(?!\d))"), ""),
    # 4.5e33, as Minerva writes it, and the same in the wording of a calculator.
    (re.compile(r"(?<=[\d.])\s*[eE]\s*\{?([+-]?\d+)\}?(?![\w.])"), r" \\times 10^{\1}"),
)


def normal(text: str) -> str:
    """The answer without what the sets write or leave out as they please; for both sides alike."""
    for pattern, instead in _REWRITTEN:
        text = pattern.sub(instead, text)
    return text.strip()


def _plain(text: str) -> str:
    """For answers in words: June 20 is \\text{June 20}."""
    inner = re.sub(r"\\(?:text|mathrm|textbf|mbox)\s*\{([^{}]*)\}", r"\1", text)
    return re.sub(r"[\s$]|\\[,!; ]", "", inner).lower()


@lru_cache(maxsize=4096)
def _parsed(text: str) -> Any:
    parse, _ = _library()
    return parse("\\boxed{" + text + "}", parsing_timeout=None)


@lru_cache(maxsize=1)
def _library() -> tuple[Callable[..., Any], Callable[..., Any]]:
    import logging

    from math_verify import parse, verify

    # It warns that nobody ends it; `Workers` does.
    logging.getLogger("math_verify").setLevel(logging.ERROR)
    return parse, verify
