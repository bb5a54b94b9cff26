"""Arms: what is compared with what. `recipes/arms.yaml` names them once for all recipes."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

from azr_population.errors import UserError, did_you_mean, first_line

SCALES = ("nano", "7b")
T = TypeVar("T")


@dataclass(frozen=True)
class Arm:
    """One arm: the overrides that make it at each scale; None where a scale cannot express it."""

    name: str
    title: str
    nano: tuple[str, ...]
    azr: tuple[str, ...] | None = None
    """Overrides of AZR's own command (`7b` in the file)."""
    seconds: float = 0.0
    """Of a step at nano scale on one core, for the estimate of a recipe's time."""
    base: str | None = None
    """Name of a nano base of its own under `bases`; None takes the one that ships."""
    azr_steps: int | None = None
    """Steps at 7B where they differ from the scale's."""
    times: int = 1
    """Steps at nano scale, over those of the other arms."""
    fork: str = ""
    """ARM@STEP: every seed goes on from the checkpoint of that arm's run with the same seed."""

    @property
    def origin(self) -> tuple[str, int] | None:
        """(arm, step) that it is forked from."""
        name, _, step = self.fork.partition("@")
        return (name, int(step)) if name else None


@dataclass(frozen=True)
class Base:
    """A nano base that is made before the first run that needs it."""

    minutes: float
    seed: int = 1


@dataclass(frozen=True)
class Scale:
    """What all arms have at one scale."""

    steps: int
    seeds: int | str
    """How many, from 1; or which, as 11-22."""
    common: tuple[str, ...] = ()
    slower: float = 1.0
    """How many times an arm's `seconds` a step takes."""
    command: str = ""
    """AZR's own command, run in its checkout; empty at nano scale."""


@dataclass(frozen=True)
class Arms:
    """The whole of `arms.yaml`."""

    scales: Mapping[str, Scale]
    arms: Mapping[str, Arm]
    bases: Mapping[str, Base] = field(default_factory=dict)

    def find(self, name: str) -> Arm:
        """The arm called `name`. Raises UserError: there is none; the message lists those that
        are."""
        if name not in self.arms:
            known = ", ".join(sorted(self.arms))
            hint = did_you_mean(name, self.arms)
            raise UserError(f"there is no arm {name}{hint}; choose from: {known}")
        return self.arms[name]


def seed_numbers(seeds: int | str) -> range:
    """`3` is 1, 2, 3, and `11-22` all from 11 to 22; raises ValueError for anything else."""
    first, dash, last = str(seeds).partition("-")
    numbers = range(int(first), int(last) + 1) if dash else range(1, int(first) + 1)
    if not numbers or numbers[0] < 1:
        raise ValueError(f"{seeds} names no seed")
    return numbers


def recipes_folder() -> Path:
    """Where the recipes lie: `recipes/` of a checkout, or a folder of the installed package."""
    return Path(str(files("azr_population.recipes")))


def read_arms(folder: Path | None = None) -> Arms:
    """`arms.yaml` of a folder of recipes, by default the package's."""
    path = (folder or recipes_folder()) / "arms.yaml"
    content = read_yaml(path)
    reject_unknown_keys(path, content, ("scales", "arms", "bases"))
    scales = {
        name: build(path, Scale, _tuples(own, "common")) for name, own in content["scales"].items()
    }
    arms = {}
    for name, own in content["arms"].items():
        own = dict(own)
        renamed = {"7b": "azr", "7b_steps": "azr_steps"}
        own = {renamed.get(key, key): value for key, value in own.items()}
        if population := own.pop("population", None):
            own["nano"] = [f"population={population}", *own.get("nano", ())]
            if "azr" in own:
                own["azr"] = [f"+population={population}", *own["azr"]]
        arms[str(name)] = build(path, Arm, {"name": str(name), **_tuples(own, "nano", "azr")})
    bases = {name: build(path, Base, own) for name, own in content.get("bases", {}).items()}
    for arm in arms.values():
        if arm.base is not None and arm.base not in bases:
            raise UserError(f"{path}: arm {arm.name} wants base {arm.base}, which is not in bases")
    return Arms(scales, arms, bases)


def read_yaml(path: Path) -> dict[str, Any]:
    """A YAML mapping from a file; `UserError` names the file when it is none."""
    import yaml  # late: the command line's parser needs SCALES, and no recipe yet

    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise UserError(f"{path} cannot be read: {first_line(error)}") from error
    if not isinstance(content, dict):
        raise UserError(f"{path} is not a mapping")
    return content


def reject_unknown_keys(
    path: Path, given: Mapping[str, Any], allowed: tuple[str, ...]
) -> dict[str, Any]:
    """`given`, unless it has a key that means nothing here."""
    for key in given:
        if key not in allowed:
            raise UserError(f"{path}: {key} means nothing here; known: {', '.join(allowed)}")
    return dict(given)


def build(path: Path, kind: type[T], content: Mapping[str, Any]) -> T:
    """An instance of the dataclass `kind` from a mapping in a file. Raises UserError: a key means
    nothing there, or one is missing."""
    names = tuple(one.name for one in fields(kind))  # type: ignore[arg-type]
    try:
        return kind(**reject_unknown_keys(path, content, names))
    except TypeError as error:
        missing = str(error).partition("__init__() ")[2]
        raise UserError(f"{path}: {kind.__name__.lower()} in {dict(content)}: {missing}") from error


def _tuples(content: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """Lists of overrides as tuples."""
    return {
        key: tuple(map(str, value)) if key in keys and value is not None else value
        for key, value in content.items()
    }
