from __future__ import annotations

import sys
from pathlib import Path

import pytest

from azr_population.errors import UserError
from azr_population.registry import Registry


def test_names_are_found_listed_and_unique() -> None:
    registry: Registry = Registry("task.colour")

    @registry.register("red", "Goethe 1810")
    def red() -> int:
        return 1

    assert registry.find("red").function is red
    assert [(entry.name, entry.reference) for entry in registry] == [("red", "Goethe 1810")]
    with pytest.raises(ValueError, match="twice"):
        registry.register("red", "again")(red)


@pytest.mark.parametrize("name", ["rde", "", "x", ["red"], None])
def test_an_unknown_name_names_the_key_and_the_choices(name: object) -> None:
    registry: Registry = Registry("task.colour")
    registry.register("red", "Goethe 1810")(lambda: 1)
    with pytest.raises(UserError, match=r"task\.colour=.*choose one of: red"):
        registry.find(name)  # type: ignore[arg-type]


def test_a_path_names_a_function_anywhere() -> None:
    registry: Registry = Registry("task.colour")
    assert registry.find("math.floor").function(2.5) == 2
    with pytest.raises(UserError, match=r"task\.colour=math\.flor cannot be imported: .*flor"):
        registry.find("math.flor")
    with pytest.raises(UserError, match=r"task\.colour=no\.module cannot be imported"):
        registry.find("no.module")


def test_a_path_is_looked_for_in_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As from a console script, which has its own folder in the place of the current one."""
    (tmp_path / "in_the_current_folder.py").write_text("def blue(): return 3\nworth = 3\n")
    (tmp_path / "that_does_not_run.py").write_text("def blue(): return 3\n1 / 0\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    registry: Registry = Registry("task.colour")
    assert registry.find("in_the_current_folder.blue").function() == 3
    with pytest.raises(UserError, match=r"in_the_current_folder\.worth is no function"):
        registry.find("in_the_current_folder.worth")
    with pytest.raises(UserError, match="cannot be imported: ZeroDivisionError: division by zero"):
        registry.find("that_does_not_run.blue")


def test_a_registry_of_made_things_says_what_makes_them() -> None:
    registry: Registry = Registry("task.colour", int, "@colour")
    with pytest.raises(UserError, match=r"math\.floor is no int; decorate it by @colour"):
        registry.find("math.floor")
