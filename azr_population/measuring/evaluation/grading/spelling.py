"""One spelling for what answers write in many: characters as LaTeX, words for numbers, letters."""

# ruff: noqa: RUF001

import re
import string

_CHARACTERS = {
    "−": "-", "–": "-", "×": r"\times ", "·": r"\cdot ", "÷": "/", "±": r"\pm ", "∞": r"\infty ",
    "≤": r"\le ", "≥": r"\ge ", "≠": r"\ne ", "∪": r"\cup ", "∩": r"\cap ", "∅": r"\emptyset ",
    "π": r"\pi ", "θ": r"\theta ", "α": r"\alpha ", "β": r"\beta ", "γ": r"\gamma ",
    "δ": r"\delta ", "λ": r"\lambda ", "μ": r"\mu ", "σ": r"\sigma ", "φ": r"\phi ",
    "ω": r"\omega ", "∈": r"\in ",
}  # fmt: skip
_HALVES = {"½": "1/2", "⅓": "1/3", "⅔": "2/3", "¼": "1/4", "¾": "3/4", "⅕": "1/5", "⅛": "1/8"}
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_POWERS = {"thousand": 3, "million": 6, "billion": 9, "trillion": 12}


def _fraction(found: re.Match[str]) -> str:
    whole, above, below = found.groups()
    return rf"{whole}\frac{{{above}}}{{{below}}}"


def _repeating(found: re.Match[str]) -> str:
    """0.1\\overline{6} is 1/6: all digits less those before the bar, over nines and zeros."""
    whole, before, bar = found.groups()
    above = int(whole + before + bar) - int(whole + before)
    return rf"\frac{{{above}}}{{{'9' * len(bar)}{'0' * len(before)}}}"


_REWRITTEN = (
    (re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+"), lambda m: f"^{{{m[0].translate(_RAISED)}}}"),
    (re.compile("(\\d*)([" + "".join(_HALVES) + "])"), lambda m: f"{m[1]} {_HALVES[m[2]]}".strip()),
    (re.compile(r"√\s*(?:\(([^()]*)\)|(\d+|[A-Za-z]))"), lambda m: rf"\sqrt{{{m[1] or m[2]}}}"),
    (re.compile(r"\\log\s*_\s*(?:\{\s*e\s*\}|e)"), lambda m: r"\ln "),
    # 1 1/2, but not 11/2.
    (re.compile(r"(?<![\d.])(\d+)\s+(\d+)\s*/\s*(\d+)(?![\d.])"), _fraction),
    (re.compile(r"(?<![\d.])(\d*)\.(\d*)\\(?:overline|bar)\s*\{?(\d+)\}?"), _repeating),
    (
        re.compile(
            r"(\d[\d.,]*)\s*(?:\\[,; ]|~)*\s*(\\text\s*\{\s*)?(" + "|".join(_POWERS) + r")s?\b\s*"
        ),
        lambda m: rf"{m[1]} \times 10^{{{_POWERS[m[3]]}}}{m[2] or ' '}",
    ),
    (re.compile(r"\\text\s*\{\s*\}"), lambda m: ""),
)


def latex(text: str) -> str:
    """The answer with LaTeX for characters, one number for a number and its words."""
    for pattern, instead in _REWRITTEN:
        text = pattern.sub(instead, text)
    return "".join(_CHARACTERS.get(character, character) for character in text)


_SPLIT_DIGITS = re.compile(r"\d(?:\s|~|\\[,;:! ]|\\q?quad)+\.?\d|\d\.\s+\d")
_INDEX = re.compile(r"[_^]\s*\d+")
_THOUSANDS = re.compile(r"\d{1,3}(?:(?:\s|~|\\[,;:! ])+\d{3})+(?![\d\s])")


def has_split_digits(text: str) -> bool:
    """Whether digits stand apart and are no groups of thousands: 2 0 4 is not 204."""
    return bool(_SPLIT_DIGITS.search(_THOUSANDS.sub("0", _INDEX.sub("", text))))


_LETTER = re.compile(
    r"\\(?:text|mathrm|textbf|mbox|begin|end)\s*\{[^{}]*\}|\\([A-Za-z]+)|([A-Za-z])"
)
_GREEK = (
    "gamma", "delta", "theta", "lambda", "xi", "pi", "sigma", "upsilon", "phi", "psi", "omega",
)  # fmt: skip


def apart(one: str, other: str) -> tuple[str, str]:
    """Both texts with a letter of its own for each capital whose small letter occurs as well.

    math-verify makes all letters small.
    """
    seen = _letters(one) | _letters(other)
    free = iter(sorted(set(string.ascii_lowercase) - {name.lower() for name in seen} - set("deio")))
    renamed = {
        name: next(free, name)
        for name in sorted(seen)
        if name[0].isupper() and name[0].lower() + name[1:] in seen
    }

    def rename(found: re.Match[str]) -> str:
        name = found[1] or found[2]
        return f" {renamed[name]} " if name in renamed else found[0]

    return _LETTER.sub(rename, one), _LETTER.sub(rename, other)


def _letters(text: str) -> set[str]:
    """Variables: single letters, and Greek ones by name."""
    return {
        found[1] or found[2]
        for found in _LETTER.finditer(text)
        if found[2] or (found[1] and found[1].lower() in _GREEK)
    }


_WORDS = re.compile(r"\\(?:text|mathrm|textbf|mbox)\s*\{([^{}]*)\}")
_BLANKS = re.compile(r"(?:\s|\\[,;! ])+")
_WORD = re.compile(r"[a-z]+|[A-Z]+|[A-Z][a-z]+")


def verbatim(text: str) -> str:
    """For answers in words: June 20 is \\text{June 20}, and Evelyn is evelyn; Nk is not nK."""
    inner = _BLANKS.sub(" ", _WORDS.sub(r"\1", text).replace("$", "")).strip(" .")
    words = re.split(r"[^A-Za-z]+", inner)
    small = "\\" not in inner and all(_WORD.fullmatch(word) for word in words if word)
    if small and max(map(len, words)) >= 2:
        inner = inner.lower()
    return re.sub(r"(?<![\d.]) | (?![\d.])", "", inner)
