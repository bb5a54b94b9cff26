"""What a recipe is: `recipes/<name>/recipe.yaml`, and the arms that all recipes share."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import yaml
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from azr_population.errors import UserError, did_you_mean, first_line

Reducer = Literal[
    "first_10pct", "last_10pct", "change", "last", "delta", "area",
    "lowest_10pct", "highest_10pct", "autocorrelation", "median",
]  # fmt: skip


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Arm(_Strict):
    """A condition of the experiment: a population and what it overrides."""

    title: str
    population: str
    nano: tuple[str, ...] | None = ()
    """Overrides of a local run."""
    azr: tuple[str, ...] | None = Field(None, alias="7b")
    """Overrides of AZR's own command; None: the arm cannot be played there."""
    seconds: float = 0.0
    """A step on one core, for estimates."""
    azr_steps: int | None = Field(None, alias="7b_steps")
    times: int = 1
    """Steps, over those of the other arms."""

    @property
    def overrides(self) -> tuple[str, ...]:
        return (f"population={self.population}", *(self.nano or ()))

    @property
    def azr_overrides(self) -> tuple[str, ...] | None:
        return None if self.azr is None else (f"+population={self.population}", *self.azr)


class Scale(_Strict):
    """What all runs of one experiment have in common."""

    steps: int
    seeds: int | str
    """How many, from 1; or which, as 11-22."""
    common: tuple[str, ...] = ()
    slower: float = 1.0
    """Factor on an arm's `seconds`."""
    command: str = ""
    """AZR's own command; empty for local runs."""
    note: str = ""
    """Stands over the results of every recipe with these settings."""


class Arms(_Strict):
    """`arms.yaml`."""

    local: tuple[str, ...] = ()
    """Overrides of all local runs, before those of their scale."""
    scales: dict[str, Scale]
    arms: dict[Annotated[str, BeforeValidator(str)], Arm]

    def find(self, name: str) -> Arm:
        """The arm called `name`. Raises UserError: there is none."""
        if name not in self.arms:
            hint = did_you_mean(name, self.arms)
            raise UserError(f"arm {name} does not exist{hint}; choose from: {', '.join(self.arms)}")
        return self.arms[name]


class TableRow(_Strict):
    """A row of the table: one number per run, its mean and interval per arm."""

    label: str
    metric: str
    """As in docs/records.md, without the role: `solve_rate`, `eval/greedy`."""
    reduce: Reducer = "last_10pct"
    role: str = ""
    """Empty: that of the metric's own roles (`metrics.py`). `mean` is the mean over roles."""
    ratio: bool = False
    """Over the first arm's value of the same seed."""
    paper: str = ""
    """What the paper has there, with its source."""


class Chart(_Strict):
    """Curves over the steps, a line per arm (and role)."""

    metric: str
    title: str
    unit: str = ""
    roles: tuple[str, ...] = ("",)
    note: str = ""

    @property
    def file(self) -> str:
        return self.metric.replace("/", "_")


class Hypothesis(_Strict):
    """What decides, written before anything is played: `arm` is above `than` in a row of the table,
    by more than `margin`; without `than`, above `margin`."""

    claim: str
    row: str
    """The row's label."""
    arm: str
    than: str = ""
    margin: float = 0.0
    looks: dict[Annotated[int, Field(ge=2)], Annotated[float, Field(gt=0, lt=1)]] = {}
    """Level at each number of seeds at which it is tested; without any, 0.05. A test after 4 seeds
    and again after 12 has two chances of a false positive."""

    @field_validator("looks")
    @classmethod
    def _spend_no_more_than_the_level(cls, looks: dict[int, float]) -> dict[int, float]:
        # Imported late: SciPy takes a second, and recipes are listed without it.
        from azr_population.analysis.statistics import LEVEL, spent_level

        if looks and (spent := spent_level(looks)) > 1.01 * LEVEL:  # published bounds are rounded
            raise ValueError(f"the looks spend {spent:.3g} of a level of {LEVEL:g}")
        return looks


class Recipe(_Strict):
    """`recipe.yaml`."""

    name: str
    title: str
    figure: str
    """The paper's table or figure, or whose question it is."""
    paper: str = ""
    """What the paper shows there, with its source."""
    settings: str = "nano"
    arms: tuple[Annotated[str, BeforeValidator(str)], ...] = ()
    """The first is the baseline."""
    steps: int | None = None
    seeds: int | str | None = None
    hypotheses: tuple[Hypothesis, ...] = ()
    together: bool = False
    """All hypotheses have to hold at once, so each is tested at its full level (intersection-union
    test, Berger 1982); otherwise their number is corrected for."""
    decision: str = ""
    crossplay: int = 0
    """After a run, its snapshots of every so many steps play each other."""
    charts: tuple[Chart, ...] = ()
    table: tuple[TableRow, ...] = ()
    scripts: tuple[str, ...] = ()
    """Command lines of a recipe with programs of its own; `{results}` is where they write."""
    minutes: float = 0.0
    """Of the scripts."""
    scales: tuple[str, ...] = ("nano", "7b")
    after_7b: str = ""
    """The last line of the script at 7B; `{runs}` are the run directories."""

    @model_validator(mode="after")
    def _hypotheses_are_about_its_table(self) -> Recipe:
        known = {"", *self.arms, *(row.label for row in self.table)}
        named = {name for one in self.hypotheses for name in (one.row, one.arm, one.than)}
        if named - known:
            raise ValueError(f"hypotheses name {', '.join(sorted(named - known))}")
        return self

    @property
    def folder(self) -> Path:
        return recipes_folder() / self.name

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
    """All recipes: the paper's tables and figures first, the former base's experiments last."""
    paths = recipes_folder().glob("*/recipe.yaml")
    return sorted((path.parent.name for path in paths), key=_paper_order)


def read_recipe(name: str, arms: Arms) -> Recipe:
    """The recipe called `name`, spelled in full. Raises UserError: there is none, or its file has a
    mistake."""
    names = recipe_names()
    if name not in names:
        near = [candidate for candidate in names if candidate.startswith(name)]
        hint = f" (did you mean {' or '.join(near)}?)" if near else did_you_mean(name, names)
        raise UserError(f"recipe {name} does not exist{hint}; choose from: {', '.join(names)}")
    path = recipes_folder() / name / "recipe.yaml"
    recipe = _read(path, Recipe, name=name)
    for arm in recipe.arms:
        arms.find(arm)
    if recipe.settings not in arms.scales:
        raise UserError(f"{path}: settings: {recipe.settings} is not in the scales of arms.yaml")
    return recipe


T = TypeVar("T", bound=BaseModel)


def _read(path: Path, model: type[T], **more: Any) -> T:
    """A YAML file as a model; a mistake is one line with the place in the file."""
    try:
        return model.model_validate({**yaml.safe_load(path.read_text(encoding="utf-8")), **more})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise UserError(f"{path}: {place}: {first['msg']}") from None
    except (OSError, yaml.YAMLError, TypeError) as error:
        raise UserError(f"{path} cannot be read: {first_line(error)}") from error


def _paper_order(name: str) -> tuple[int, int, str]:
    kinds = {"table": 0, "fig": 1, "line": 2, "programme": 4}
    kind = next((place for start, place in kinds.items() if name.startswith(start)), 3)
    digits = "".join(c for c in name.split("_")[0] if c.isdigit())
    return kind, int(digits or 0), name
