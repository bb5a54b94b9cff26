"""What changed in a run, in words: what rose or fell, what is within noise, what nobody can tell.

The words and the tiles show the same numbers.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from azr_population.runs.diagnostics.takes import tenth
from azr_population.runs.formatting import figure

Tile = Mapping[str, Any]

SHORT = 40
"""Steps up to which a run is called short: a tenth of them are four steps at most."""


def changed(roles: Sequence[str], steps: int, tiles: Sequence[Tile]) -> list[str]:
    """Sentences on what changed; empty if no tile tells of it.

    Args:
        roles: the members' roles, one item per member.
        steps: the last recorded step.
        tiles: as `charts.headline_tiles` gives them.
    """
    told = [(_subject(tile, roles), tile) for tile in tiles if _is_told(tile)]
    if not told or steps < 2:
        return ["One step is recorded: nothing can have changed yet."] if steps == 1 else []
    width = tenth(steps)
    early, late = ("step", "") if width == 1 else (f"{width} steps", f" {width}")
    span = f"From the first {early} to the last{late}"
    sure = [f"{who} {_moved(tile)}" for who, tile in told if noise(tile) is False]
    within = [f"{who} ({_difference(tile)})" for who, tile in told if noise(tile)]
    unknown = [f"{who} ({_pair(tile)})" for who, tile in told if noise(tile) is None]
    sentences = []
    if sure:
        sentences.append(f"{span}, {listed(sure)}.")
    if within and sure:
        sentences.append(f"Within noise: {listed(within)}.")
    elif within:
        sentences.append(f"{span}, every change is within noise: {listed(within)}.")
    if unknown:
        sentences.append(f"{span}, with no interval for lack of records: {listed(unknown)}.")
    if sure or within:
        sentences.append(_how_to_read([tile for _, tile in told]))
    return [" ".join(sentences), *_short(steps, tiles)]


def noise(tile: Tile) -> bool | None:
    """Whether the interval of the change holds zero; None without an interval."""
    if tile.get("low") is None or tile.get("high") is None:
        return None
    return bool(tile["low"] <= 0.0 <= tile["high"])


def listed(parts: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


_SUBJECTS = {
    "solve_rate": "the {whose} solve rate",
    "exam_mean": "the {mean}score at the exam",
    "validity": "the share of valid proposals",
}
"""The changes told, by the measure; beside them that of the size, whose tile has a unit."""


def _is_told(tile: Tile) -> bool:
    return tile["name"] in _SUBJECTS or bool(tile.get("unit"))


def _subject(tile: Tile, roles: Sequence[str]) -> str:
    role = str(tile["line"])
    whose = f"{role}s'" if roles.count(role) > 1 else f"{role}'s"
    mean = "mean " if role == "mean" else ""
    return _SUBJECTS.get(str(tile["name"]), "the size of a program").format(whose=whose, mean=mean)


def _moved(tile: Tile) -> str:
    """`rose from 30% to 42% (+12.0 points [8.1, 15.9])`."""
    way = "rose" if tile["last"] > tile["first"] else "fell"
    first, last = (figure(tile[key], tile["format"]) for key in ("first", "last"))
    return f"{way} from {first} to {last} ({_difference(tile)})"


def _pair(tile: Tile) -> str:
    first, last = (figure(tile[key], tile["format"]) for key in ("first", "last"))
    return f"{first}, then {last}"


def _difference(tile: Tile) -> str:
    scale, unit = (100.0, "points") if tile["format"] == "percent" else (1.0, tile["unit"])
    change, low, high = (
        scale * value for value in (tile["last"] - tile["first"], tile["low"], tile["high"])
    )
    return f"{change:+.1f} {unit} [{low:+.1f}, {high:+.1f}]"


def _how_to_read(tiles: Sequence[Tile]) -> str:
    sittings = any(tile["name"] == "exam_mean" for tile in tiles)
    exam = " (exam: its first sitting against its last)" if sittings else ""
    return f"In brackets are 95% intervals over the tasks of this run{exam}."


def _short(steps: int, tiles: Sequence[Tile]) -> list[str]:
    """What a short run can show."""
    if steps > SHORT:
        return []
    solving = next((tile for tile in tiles if tile["name"] == "solve_rate"), None)
    least = ""
    if solving and noise(solving) is not None:
        half = 100.0 * (solving["high"] - solving["low"]) / 2.0
        least = f", and of the solve rate only changes of more than about {half:.0f} points"
    return [
        f"{steps} steps are few: they show that all parts work together{least}. Only runs with "
        "other seeds can tell whether a change comes back."
    ]
