"""Which room imports which: the table of docs/design.md, held against every import there is."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = "azr_population"
BESIDE = ("patches", "recipes", "hydra_plugins")
"""Rooms that are folders beside the package's own."""


def table() -> dict[str, tuple[str, ...]]:
    """Room -> the beginnings of the modules that it may import: `runs`, `conf.schema`."""
    lines = (ROOT / "docs" / "design.md").read_text(encoding="utf-8").splitlines()
    rooms: dict[str, tuple[str, ...]] = {}
    shared: tuple[str, ...] = ()
    for line in lines[lines.index("| room | holds | may import |") + 2 :]:
        if not line.startswith("|"):
            break
        names, holds, allowed = (cell.strip() for cell in line.strip("|").split("|"))
        row = tuple(n.replace("/", ".") for n in re.findall(r"`([a-z_/]+?)(?:/|\.py)`", names))
        assert row, f"docs/design.md: no room is named in {line}"
        shared += row if holds.startswith("for every room") else ()
        listed = tuple(re.split(r",\s*", allowed)) if allowed != "-" else ()
        rooms |= {room: (*listed, *row) for room in row}
    every = tuple(room for room in rooms if room not in ("hosts", "hosts.azr"))
    return {room: (*shared, *(every if "all" in own else own)) for room, own in rooms.items()}


ALLOWED = table()


def places() -> Iterator[tuple[str, Path]]:
    """Every module of ours with its room: the deepest folder that has a row."""
    for path in sorted((ROOT / PACKAGE).rglob("*.py")):
        parts = path.relative_to(ROOT / PACKAGE).with_suffix("").parts
        names = [".".join(parts[:end]) for end in range(len(parts), 0, -1)]
        if names[-1] != "__init__":
            yield next((name for name in names if name in ALLOWED), names[-1]), path
    for room in BESIDE:
        yield from ((room, path) for path in sorted((ROOT / room).rglob("*.py")))


@cache
def imported(path: Path) -> list[tuple[int, str]]:
    """(line, what is imported, without the package's name) of every import of ours in a module,
    wherever it stands."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            package, _, rest = name.partition(".")
            if package == PACKAGE and rest and not rest.startswith("__"):
                found.append((node.lineno, rest))
    return found


def test_every_room_has_a_row_and_every_row_a_room() -> None:
    rooms = {room for room, _ in places()}
    assert sorted(rooms - set(ALLOWED)) == [], "add a row to the table of docs/design.md"
    assert sorted(set(ALLOWED) - rooms) == [], "no such room: mend the table of docs/design.md"
    beginnings = {name.split(".")[0] for allowed in ALLOWED.values() for name in allowed}
    assert sorted(beginnings - rooms - {"all"}) == []


@pytest.mark.parametrize("room", ALLOWED)
def test_a_room_imports_what_the_table_lets_it(room: str) -> None:
    broken = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for home, path in places()
        for line, name in imported(path)
        if home == room and not f"{name}.".startswith(tuple(f"{own}." for own in ALLOWED[room]))
    ]
    assert broken == [], f"the table of docs/design.md does not let {room} do this"


def test_the_table_is_read_and_refuses() -> None:
    assert "runs" in ALLOWED["analysis"] and "analysis" not in ALLOWED["runs"]
    assert not any(
        "hosts.azr" in ALLOWED[room] or "hosts" in ALLOWED[room] for room in ("cli", "runs")
    )
