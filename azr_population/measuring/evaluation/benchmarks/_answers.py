"""What several mathematics benchmarks have in common."""

AZR_DATA = "https://github.com/LeapLabTHU/Absolute-Zero-Reasoner, evaluation/math_eval/eval/data"
RIGHT = "the answer equals the gold answer (math-verify)"


def number(value: object) -> str:
    """A gold answer that may be stored as a number: 27.0 is the answer 27."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()
