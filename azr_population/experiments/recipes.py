"""Recipes, `recipes/<kind>/<name>/recipe.yaml`, and the arms that all recipes share."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, TypeVar

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError, model_validator

from azr_population.domains.metric import Reduce
from azr_population.errors import UserError, did_you_mean, first_line


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Arm(_Strict):
    """A condition of the experiment: a population and what it overrides."""

    title: str
    population: str
    settings: tuple[str, ...] = ()
    """Its other overrides."""
    seconds: float = 0.0
    """A step on one core, for estimates."""

    @property
    def overrides(self) -> tuple[str, ...]:
        return (f"population={self.population}", *self.settings)


class Protocol(_Strict):
    """Settings that all runs of one experiment share."""

    steps: int
    arm_steps: dict[Annotated[str, BeforeValidator(str)], int] = {}
    """Steps of the arms that are played for another number."""
    seeds: int | str
    """A number of seeds from 1, or which (11-22). Hypotheses are decided when all are there."""
    common: tuple[str, ...] = ()


class Arms(_Strict):
    """`arms.yaml`."""

    protocols: dict[str, Protocol]
    arms: dict[Annotated[str, BeforeValidator(str)], Arm]

    def find(self, name: str) -> Arm:
        """The arm called `name`. Raises UserError: there is none."""
        if name not in self.arms:
            hint = did_you_mean(name, self.arms)
            raise UserError(f"arm {name} does not exist{hint}; choose from: {', '.join(self.arms)}")
        return self.arms[name]


class Measure(_Strict):
    """One number per run: the curve of a metric, reduced."""

    metric: str
    """Name in docs/records.md, without the role: `solve_rate`, `eval/greedy`."""
    reduce: Reduce = "last_10pct"
    step: int | None = None
    """The number is that of a run which ends at this step; without, at its arm's last one."""
    role: str = ""
    """Empty: that of the metric's own roles (`metrics.py`). `mean` is the mean over roles."""
    ratio: bool = False
    """Over the first arm's value of the same seed."""
    paper: str = ""
    """The paper's result, in a table with its source."""


class TableRow(Measure):
    """A row of the table: the mean and interval of a measure per arm."""

    label: str


class Claim(_Strict):
    """A claim for the title of a chart, and by arms what bears it out: intervals above, below, and
    around no change, or differences to the first arm."""

    text: str
    up: tuple[str, ...] = ()
    down: tuple[str, ...] = ()
    level: tuple[str, ...] = ()

    def holds(self, signs: Mapping[str, int | None]) -> bool:
        """Whether the arms have these signs: 1, -1 and 0."""
        wanted = {1: self.up, -1: self.down, 0: self.level}
        return all(signs.get(arm) == sign for sign, arms in wanted.items() for arm in arms)


class Chart(Measure):
    """Curves over the steps, a line per arm, with the measure beside it, or the intervals of
    ratios; the title says what they show."""

    title: str
    """Name of the measure."""
    claim: Claim | None = None
    """The title in place of one that lists which arms moved."""
    unit: str = ""
    reduce: Reduce = "change"
    mark: float | None = None
    """A value to hold the arms against, drawn as a line."""
    mark_label: str = ""
    births: bool = False
    """Whether it shows children beside the other members of their role, by operator
    (`analysis/children.py`)."""
    note: str = ""

    @property
    def file(self) -> str:
        return self.metric.replace("/", "_")


class Hypothesis(_Strict):
    """A hypothesis, written before anything is played: `arm` is above `than` in a row of the table,
    by more than `margin`; without `than`, above `margin`."""

    claim: str
    row: str
    """The row's label."""
    arm: str
    than: str = ""
    margin: float = 0.0


class Recipe(_Strict):
    """`recipe.yaml`."""

    name: str
    title: str
    claim: str = ""
    """The paper's claim, in a few words; without, the title is the question."""
    figure: str
    """The paper's table or figure, or whose question it is."""
    paper: str = ""
    """The paper's result, with its source."""
    protocol: str = "defaults"
    arms: tuple[Annotated[str, BeforeValidator(str)], ...] = ()
    """The first is the baseline."""
    hypotheses: tuple[Hypothesis, ...] = ()
    decision: str = ""
    charts: tuple[Chart, ...] = ()
    drawn: tuple[str, ...] = ()
    """The arms in charts; all where it is empty."""
    table: tuple[TableRow, ...] = ()

    @model_validator(mode="after")
    def _hypotheses_are_about_its_table(self) -> Recipe:
        choices = {"", *self.arms, *(row.label for row in self.table)}
        named = {name for one in self.hypotheses for name in (one.row, one.arm, one.than)}
        if named - choices:
            raise ValueError(f"hypotheses name {', '.join(sorted(named - choices))}")
        return self

    @property
    def folder(self) -> Path:
        return _files()[self.name].parent

    @property
    def baseline(self) -> str:
        return next(iter(self.arms), "")

    @property
    def rows(self) -> dict[str, TableRow]:
        """The rows of the table by label."""
        return {row.label: row for row in self.table}


def seed_numbers(seeds: int | str) -> range:
    """`3` is 1, 2, 3, and `11-22` all from 11 to 22. Raises ValueError for anything else."""
    first, dash, last = str(seeds).partition("-")
    numbers = range(int(first), int(last) + 1) if dash else range(1, int(first) + 1)
    if not numbers or numbers[0] < 1:
        raise ValueError(f"{seeds} names no seed")
    return numbers


def recipes_folder() -> Path:
    """`recipes/` of a checkout, or a folder of the installed package."""
    return Path(str(files("azr_population.recipes")))


def read_arms() -> Arms:
    """`arms.yaml`. Raises UserError: it has a mistake."""
    return _read(recipes_folder() / "arms.yaml", Arms)


def recipe_names() -> list[str]:
    """All recipes: the paper's tables and figures first, then the questions."""
    return list(_files())


def _files() -> dict[str, Path]:
    paths = sorted(recipes_folder().glob("*/*/recipe.yaml"), key=_paper_order)
    return {path.parent.name: path for path in paths}


def read_recipe(name: str, arms: Arms) -> Recipe:
    """The recipe called `name`, spelled in full. Raises UserError: there is none, or its file has a
    mistake."""
    names = _files()
    if name not in names:
        near = [candidate for candidate in names if candidate.startswith(name)]
        hint = f" (did you mean {' or '.join(near)}?)" if near else did_you_mean(name, names)
        raise UserError(f"recipe {name} does not exist{hint}; choose from: {', '.join(names)}")
    path = names[name]
    recipe = _read(path, Recipe, name=name)
    for arm in recipe.arms:
        arms.find(arm)
    if recipe.protocol not in arms.protocols:
        raise UserError(f"{path}: protocol: {recipe.protocol} is not in arms.yaml")
    return recipe


T = TypeVar("T", bound=BaseModel)


def _read(path: Path, model: type[T], **more: Any) -> T:
    """A YAML file as a model; a mistake is one line with the place in the file."""
    try:
        return model.model_validate({**yaml.safe_load(path.read_text(encoding="utf-8")), **more})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(map(str, first["loc"]))
        raise UserError(f"{path}: {key}: {first['msg']}") from None
    except (OSError, yaml.YAMLError, TypeError) as error:
        raise UserError(f"{path} cannot be read: {first_line(error)}") from error


def _paper_order(path: Path) -> tuple[str, bool, int, str]:
    kind, name = path.parts[-3:-1]
    digits = "".join(c for c in name.split("_")[0] if c.isdigit())
    return kind, name.startswith("fig"), int(digits or 0), name
