from __future__ import annotations

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
