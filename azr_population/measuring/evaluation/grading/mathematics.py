"""Whether two mathematical answers are the same, by math-verify."""

import math
import re
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from functools import lru_cache
from typing import Any

from azr_population.errors import UserError
from azr_population.measuring.evaluation.grading.spelling import (
    apart,
    has_split_digits,
    latex,
    verbatim,
)
from azr_population.measuring.evaluation.grading.units import based, measured, minutes
from azr_population.measuring.evaluation.grading.verdict import NO_ANSWER, PASSED, WRONG, Verdict
from azr_population.measuring.evaluation.grading.workers import Workers
from azr_population.measuring.evaluation.problem import MathProblem

_DECIMALS = 9
"""Digits to which a decimal agrees with what it is to be: 1.4142135624 is the root of 2."""
_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)")
_LONGEST_WHOLE = 60
"""Digits to which whole numbers are compared."""
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
    judged = workers.map(
        _both_rules, ((problem.gold, answer) for problem, answer in kept), lambda: None
    )
    for (_, answer), same in zip(kept, judged, strict=True):
        if not answer.strip():
            yield Verdict(False, NO_ANSWER, azr_passed=False)
        elif same is None:
            yield Verdict(False, "timeout", "the answer took too long to read", answer, None, False)
        else:
            ours, azr = same
            yield Verdict(ours, PASSED if ours else WRONG, "", answer, azr_passed=azr)


def _both_rules(gold: str, answer: str) -> tuple[bool, bool] | None:
    return equal(gold, answer), equal_to_azr(gold, answer)


def equal(gold: str, answer: str) -> bool:
    """Whether an answer equals the gold one. Not symmetric: see `math_verify.verify`.

    May run for hours on a hostile answer: call it through `Workers`.
    """
    if not answer.strip() or len(answer) > _LONGEST:
        return False
    if verbatim(gold) == verbatim(answer):
        return True
    times = minutes(gold), minutes(answer)
    if None not in times:
        return times[0] == times[1]
    gold, answer = latex(gold), latex(answer)
    if has_split_digits(gold) != has_split_digits(answer) or {_kind(gold), _kind(answer)} == _KINDS:
        return False
    (gold_value, gold_unit), (answer_value, answer_unit) = measured(gold), measured(answer)
    if gold_unit and answer_unit and gold_unit != answer_unit:
        if gold_unit.dimension != answer_unit.dimension:
            return False
        one, other = (_number(_parsed(normal(value))) for value in (gold_value, answer_value))
        if one is None or other is None:
            return False
        return _close(one * gold_unit.factor, other * answer_unit.factor)
    gold, answer = based(gold) or gold, based(answer) or answer
    gold_text, answer_text = apart(normal(gold), normal(answer))
    if _DECIMAL.fullmatch(gold_text) and _DECIMAL.fullmatch(answer_text):
        if Decimal(gold_text) == Decimal(answer_text):
            return True
    elif _same(_parsed(gold_text), _parsed(answer_text)):
        return True
    # A percentage equals the number that it is, too: 10% is 0.1.
    if _PERCENT.search(gold) or _PERCENT.search(answer):
        texts = [
            f"({text})/100" if _PERCENT.search(given) else text
            for given, text in ((gold, gold_text), (answer, answer_text))
        ]
        return _same(_parsed(texts[0]), _parsed(texts[1]))
    return False


def equal_to_azr(gold: str, answer: str) -> bool:
    """What AZR's grader says (new_math_equal_process in its evaluation/math_eval): math-verify on
    the two as they are. May run for hours, as `equal`."""
    if not answer.strip() or len(answer) > _LONGEST:
        return False
    _, verify = _library()
    return bool(verify(_parsed(gold), _parsed(answer), timeout_seconds=None))


_KINDS = {"set", "ordered"}
_BETWEEN = re.compile(r"[<>|:]|\\(?:l|g|n)eq?\b|\\mid|\\cup|\\cap")


def _kind(text: str) -> str:
    """Whether these are braces around things in no order, or brackets around two or more; ''."""
    bare = re.sub(r"\\(?:left|right|bigl?|bigr?)(?![A-Za-z])|\s|\$", "", text)
    if bare.startswith("\\pm"):
        return "set"
    if _BETWEEN.search(bare) or "," not in bare:
        return ""
    if bare.startswith("\\{") and bare.endswith("\\}"):
        return "set"
    return "ordered" if bare[0] in "([" and bare[-1] in ")]" and "),(" not in bare else ""


def _same(gold: Any, answer: Any) -> bool:
    """`math_verify.verify`, but for numbers: it rounds to six decimals, so 3e-19 is 5e-24."""
    if gold and answer and all(getattr(one[0], "is_integer", False) for one in (gold, answer)):
        return bool(gold[0].evalf(_LONGEST_WHOLE) == answer[0].evalf(_LONGEST_WHOLE))
    one, other = _number(gold), _number(answer)
    if one is not None and other is not None:
        return _close(one, other)
    _, verify = _library()
    # -1 <= x <= 1 is [-1, 1].
    return bool(
        verify(
            gold,
            answer,
            float_rounding=_DECIMALS,
            allow_set_relation_comp=True,
            timeout_seconds=None,
        )
    )


def _close(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=10**-_DECIMALS)


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
