import sys

import pytest
from refusals import refuses

from azr_population import registry as registry_module
from azr_population.config.schema import Config
from azr_population.errors import UserError
from azr_population.registry import EVERYTHING, Registry, trust


@pytest.fixture(autouse=True)
def nothing_trusted(monkeypatch):
    monkeypatch.setattr(registry_module, "_trusted", set())


def test_names_are_found_listed_and_unique():
    registry = Registry("task.colour")

    @registry.register("red", "Goethe 1810")
    def red():
        return 1

    assert registry.find("red") is red
    assert list(registry) == ["red"]
    with pytest.raises(ValueError):
        registry.register("red", "again")(red)


@pytest.mark.parametrize("name", ["rde", "", "x", ["red"], None])
def test_an_unknown_name_names_the_key_and_the_choices(name):
    registry = Registry("task.colour")
    registry.register("red", "Goethe 1810")(lambda: 1)
    with refuses("task.colour"):
        registry.find(name)


def test_a_path_names_a_function_anywhere():
    registry = Registry("task.colour")
    trust(EVERYTHING)
    assert registry.find("math.floor")(2.5) == 2
    with refuses("task.colour"):
        registry.find("math.flor")
    with refuses("task.colour"):
        registry.find("no.module")


def test_a_path_is_looked_for_in_the_current_folder(tmp_path, monkeypatch):
    """As from a console script, which has its own folder in the place of the current one."""
    (tmp_path / "in_the_current_folder.py").write_text("def blue(): return 3\nworth = 3\n")
    (tmp_path / "that_does_not_run.py").write_text("def blue(): return 3\n1 / 0\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    registry = Registry("task.colour")
    trust(EVERYTHING)
    assert registry.find("in_the_current_folder.blue")() == 3
    with refuses("task.colour"):
        registry.find("in_the_current_folder.worth")
    with refuses("task.colour"):
        registry.find("that_does_not_run.blue")


def test_a_registry_of_made_things_says_what_makes_them():
    registry = Registry("task.colour", int, "@colour")
    trust("math.floor")
    with refuses("task.colour"):
        registry.find("math.floor")


def test_only_what_the_user_typed_is_imported(tmp_path, monkeypatch):
    mark = f"from pathlib import Path\nPath({str(tmp_path / 'was_run')!r}).touch()\n"
    (tmp_path / "typed_by_nobody.py").write_text(f"{mark}def blue(): return 3\n")
    monkeypatch.chdir(tmp_path)
    registry = Registry("task.colour")
    for typed in ("", "typed_by_nobody", "typed_by_nobody.red", {"a": ["typed_by_nobody.blu"]}):
        trust(typed)
        with pytest.raises(UserError) as refused:
            registry.find("typed_by_nobody.blue")
        assert refused.value.key == "task.colour" and "--trust" in str(refused.value)
    assert not (tmp_path / "was_run").exists()
    config = Config()
    config.evolution.operators = {"full_gaussian+typed_by_nobody.blue": 1.0}
    trust(config)
    assert registry.find("typed_by_nobody.blue")() == 3


def test_a_failing_function_of_ones_own_is_named(tmp_path, monkeypatch):
    (tmp_path / "own_colours.py").write_text(
        "def green(shade=2):\n    return 1 / (shade - shade)\n"
    )
    monkeypatch.chdir(tmp_path)
    trust(EVERYTHING)
    green = Registry("task.colour").find("own_colours.green")
    with pytest.raises(UserError) as failed:
        green()
    assert failed.value.key == "task.colour" and "own_colours.py" in str(failed.value)


def test_an_installed_package_offers_names_that_need_no_trust(tmp_path, monkeypatch):
    facts = tmp_path / "colours-1.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: colours\nVersion: 1\n")
    (facts / "entry_points.txt").write_text(
        "[azr_population.colours]\n"
        "violet = installed_colours:violet\nred = installed_colours:violet\n"
        "broken = installed_colours:nowhere\nfive = installed_colours:five\n"
    )
    (tmp_path / "installed_colours.py").write_text("five = 5\ndef violet(): return 1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    registry = Registry("task.colour", group="colours")
    registry.register("red", "Goethe 1810")(lambda: 1)
    assert registry.find("red")() == 1, "an installed package replaces none of ours"
    with pytest.raises(
        UserError, match=r"task.colour=violet failed in .*installed_colours.py, line"
    ):
        registry.find("violet")()
    for name, about in (
        ("broken", "nowhere"),
        ("five", "neither"),
        ("viole", "did you mean violet"),
    ):
        with pytest.raises(UserError, match=about) as refused:
            registry.find(name)
        assert refused.value.key == "task.colour"
    with pytest.raises(UserError, match="unknown"):
        Registry("task.shape").find("violet")
