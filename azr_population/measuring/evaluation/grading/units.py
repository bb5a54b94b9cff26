"""Units, clock times and bases of numbers: what math-verify drops before it compares."""

import re
from typing import NamedTuple


class Unit(NamedTuple):
    """`dimension` tells what is measured, with its power; `factor` is how many of the first unit of
    that dimension this one is."""

    dimension: str
    factor: float


_TABLE = {
    "length": "m meter metre:1 mm millimeter millimetre:.001 cm centimeter centimetre:.01 "
    "km kilometer kilometre:1000 in inch inche:.0254 ft foot feet:.3048 yd yard:.9144 "
    "mi mile:1609.344",
    "mass": "g gram:1 mg milligram:.001 kg kilogram:1000 lb pound:453.59237 oz ounce:28.349523125",
    "time": "s sec second:1 min minute:60 h hr hour:3600 day:86400 week:604800",
    "calendar": "month:1 year yr:12 decade:120 century centurie:1200",
    "volume": "L l liter litre:1 mL ml milliliter millilitre:.001 gallon gal:3.785411784 "
    "quart qt:.946352946 pint pt:.473176473 cup:.2365882365",
    "money": r"dollar \$ $:1 cent ¢:.01",
    "euros": "euro €:1",
    "angle": r"radian rad:1 degree ^\circ ^{\circ} \circ °:.017453292519943295",
    "Celsius": r"°C \circ C:1",
    "Fahrenheit": r"°F \circ F:1",
    "ratio": r"percent \% % percentage pct:.01 ‰ permille:.001",
}
_UNITS = {
    name: Unit(dimension, float(factor))
    for dimension, line in _TABLE.items()
    for names, factor in (part.rsplit(":", 1) for part in re.findall(r"[^:]+:[\d.]+", line))
    for name in (names.split() if dimension not in ("Celsius", "Fahrenheit") else [names])
}
_SPACE = r"(?:\\[,!;: ]|~|\s)*"
_AT_END = re.compile(
    rf"(?P<value>.*?){_SPACE}(?:"
    r"\\(?:text|mathrm|textrm|textbf|mbox|rm)\s*\{(?P<wrapped>[^{}]*)\}"
    r"|(?<![\\A-Za-z_{^])(?P<bare>(?:square|cubic|sq)?\s*[A-Za-z]{2,}(?:(?:\s*/\s*|\s+per\s+)[A-Za-z]+)?)"
    r"|(?P<sign>\^\s*\{?\s*\\circ\s*\}?|°\s*[CF]?|¢|‰|€|\\?%|\\\$))"
    rf"{_SPACE}(?:\^\s*\{{?(?P<power>[23])\}}?)?{_SPACE}\.?$",
    re.DOTALL,
)
_AT_START = re.compile(rf"(?P<sign>\\?\$|€){_SPACE}(?P<value>.+)", re.DOTALL)


def measured(text: str) -> tuple[str, Unit | None]:
    """The value without its unit, and the unit where it is one that is known."""
    begun = _AT_START.fullmatch(text)
    if begun and not text.endswith("$"):
        return begun["value"], _unit(begun["sign"], 1)
    ended = _AT_END.fullmatch(text)
    if not ended or not ended["value"].strip():
        return text, None
    words = next(ended[name] for name in ("wrapped", "bare", "sign") if ended[name] is not None)
    unit = _unit(words, int(ended["power"] or 1))
    return (ended["value"], unit) if unit else (text, None)


def _unit(words: str, power: int) -> Unit | None:
    """The unit of such words as cm, square meters, miles per hour."""
    name = re.sub(r"~|\\[,;! ]|\s+", " ", words).strip()
    if name in ("mph", "MPH"):
        name = "miles per hour"
    above, _, below = (part.strip() for part in re.sub(r"\s*/\s*| per ", "/", name).partition("/"))
    for word, times in (("square ", 2), ("sq ", 2), ("cubic ", 3)):
        if above.startswith(word):
            above, power = above.removeprefix(word), times
    top, bottom = _named(above), _named(below) if below else Unit("", 1.0)
    if top is None or bottom is None:
        return None
    return Unit(f"{top.dimension}^{power}/{bottom.dimension}", top.factor**power / bottom.factor)


def _named(name: str) -> Unit | None:
    name = re.sub(r"[{}^\s]", "", name) if "circ" in name else name
    for known in (name, name.lower(), name.lower().removesuffix("s")):
        found = _UNITS.get(known) or _UNITS.get("\\" + known)
        if found:
            return found
    return None


_CLOCK = re.compile(r"(\d{1,2})(?::(\d\d))?\s*(?:([ap])\.?\s*m\.?|(noon|midnight))", re.IGNORECASE)
_TEXT = re.compile(r"\\(?:text|mathrm|textrm|mbox)\s*\{([^{}]*)\}|~|\\[,;! ]")


def minutes(text: str) -> int | None:
    """The time of day in minutes; None for what is none, or does not tell its half of the day."""
    said = _CLOCK.fullmatch(_TEXT.sub(lambda found: found[1] or " ", text).strip().strip("$"))
    if said is None or not 1 <= int(said[1]) <= 12:
        return None
    late = said[3].lower() == "p" if said[3] else said[4].lower() == "noon"
    return (int(said[1]) % 12 + 12 * late) * 60 + int(said[2] or 0)


_BASED = re.compile(r"([0-9A-Z]+)\s*_\s*(?:\{?(\d{1,2})\}?|\{\s*\\(?:text|mathrm)\{(\w+)\}\s*\})")
_BASES = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve", "thirteen", "fourteen", "fifteen", "sixteen",
)  # fmt: skip


def based(text: str) -> str | None:
    """A number with its base, such as 2516_8, in decimal digits; None where the text is none."""
    said = _BASED.fullmatch(text.strip())
    if said is None:
        return None
    base = int(said[2]) if said[2] else _BASES.index(said[3]) if said[3] in _BASES else 0
    if not 2 <= base <= 36:
        return None
    try:
        return str(int(said[1], base))
    except ValueError:  # a digit that the base does not have
        return None
