"""A recipe: which arms, how long, and what is drawn of them. `recipes/<name>/recipe.yaml`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from azr_population.errors import UserError, did_you_mean
from azr_population.experiments.arms import Arms, Scale, build, read_yaml, recipes_folder

SUMMARIES = ("curves", "wallclock")
LEVEL = 0.05  # of a test that nothing is said of


@dataclass(frozen=True)
class Primary:
    """A hypothesis that decides: `arm` lies above `than` in `measure`, by more than `margin`."""

    hypothesis: str
    measure: str
    """The label of a row of the recipe's table."""
    arm: str
    than: str = ""
    """Empty: the measure itself lies above the margin."""
    margin: float = 0.0
    looks: Mapping[int, float] = field(default_factory=dict)
    """Level at each number of seeds at which it is looked at; without any, 0.05."""

    def level(self, seeds: int) -> float | None:
        """The level at so many seeds; None where no look was planned."""
        return self.looks.get(seeds) if self.looks else LEVEL


@dataclass(frozen=True)
class Figure:
    """Curves of one measure over the steps, a line per arm."""

    series: str
    title: str = ""
    """With `label`, of the axis: the measure's own when empty."""
    label: str = ""
    of: tuple[str, ...] = ("",)
    """Roles; one line per arm and role."""
    file: str = ""
    """Name of the files without their ending; the measure's when empty."""
    limits: tuple[float, float] | None = None
    note: str = ""

    @property
    def name(self) -> str:
        """Name of its files, without the ending."""
        return self.file or self.series

    @property
    def words(self) -> tuple[str, str]:
        """Title and label."""
        from azr_population.runs.diagnostics import find_measure  # late, as TAKES below

        measure = find_measure(self.series)
        return self.title or measure.title, self.label or measure.axis


@dataclass(frozen=True)
class TableRow:
    """One row of the table: a number per run, and its mean and interval per arm."""

    label: str
    series: str
    take: str = "late"
    of: str = ""
    paper: str = ""
    """What the paper has there, as far as our sources tell."""


@dataclass(frozen=True)
class Recipe:
    """What `recipe.yaml` says."""

    name: str
    title: str
    figure: str
    """The paper's table or figure."""
    shows: str = ""
    """What the paper shows there."""
    arms: tuple[str, ...] = ()
    baseline: str = ""
    """The arm that others are compared with; the first when empty."""
    steps: int | None = None
    seeds: int | str | None = None
    """How many, from 1; or which, as 11-22."""
    settings: str = "nano"
    """Whose steps, seeds and common overrides in `arms.yaml` hold at nano scale. Runs of other
    settings lie in a folder of their own and are shared by the recipes that name it."""
    primary: tuple[Primary, ...] = ()
    """What decides; written before anything is played."""
    together: bool = False
    """All primary hypotheses have to hold at once, so that none is corrected for the others
    (intersection-union test, Berger 1982); otherwise they are, by Holm."""
    decision: str = ""
    """What follows from the primary hypotheses."""
    paired: bool = False
    """Seeds are pairs: forks of one checkpoint."""
    crossplay: int = 0
    """After they are played, each run's snapshots of every so many steps play each other."""
    overrides: tuple[str, ...] = ()
    """Of all arms at nano scale, after the arm's own."""
    own_runs: bool = False
    """Its runs are not shared with other recipes, because what they measure is the time."""
    summary: str = "curves"
    figures: tuple[Figure, ...] = ()
    rows: tuple[TableRow, ...] = ()
    scripts: tuple[str, ...] = ()
    """Command lines of a recipe with a programme of its own; `{results}` is where it writes."""
    minutes: float = 0.0
    """Of the scripts, for the list."""
    scales: tuple[str, ...] = ("nano", "7b")
    at_7b: tuple[str, ...] = field(default_factory=tuple)
    """Lines that tell what more there is at 7B."""
    benchmarks: tuple[dict[str, Any], ...] = ()
    evaluation: Mapping[str, str] = field(default_factory=dict)
    """Options of `azr-population evaluate` for the members of its runs, by scale."""

    def scale(self, arms: Arms) -> Scale:
        """Steps, seeds and common overrides of its settings."""
        return arms.scales[self.settings]

    @property
    def folder(self) -> Path:
        """Where the recipe lies."""
        return recipes_folder() / self.name


def recipe_names(folder: Path | None = None) -> list[str]:
    """All recipes, in the order of the paper's tables and figures."""
    found = (folder or recipes_folder()).glob("*/recipe.yaml")
    return sorted((path.parent.name for path in found), key=_paper_order)


def read_recipe(name: str, arms: Arms, folder: Path | None = None) -> Recipe:
    """The recipe called `name`, in full: some play for hours. Raises UserError: there is none (the
    message lists those that are), or its file has a mistake."""
    from azr_population.runs.diagnostics.takes import (
        TAKES,  # late: every command has recipe's arguments
    )

    names = recipe_names(folder)
    if name not in names:
        near = [known for known in names if known.startswith(name)]
        hint = f" (did you mean {' or '.join(near)}?)" if near else did_you_mean(name, names)
        raise UserError(f"there is no recipe {name}{hint}; choose one of: {', '.join(names)}")
    path = (folder or recipes_folder()) / name / "recipe.yaml"
    content = read_yaml(path)
    for key in ("arms", "overrides", "scripts", "scales", "at_7b"):
        if key in content:
            content[key] = tuple(map(str, content[key]))
    content["benchmarks"] = tuple(content.get("benchmarks", ()))
    content["figures"] = tuple(_figure(path, one) for one in content.get("figures", ()))
    content["rows"] = tuple(build(path, TableRow, one) for one in content.get("rows", ()))
    content["primary"] = tuple(build(path, Primary, one) for one in content.get("primary", ()))
    recipe = build(path, Recipe, {"name": name, **content})
    for arm in recipe.arms:
        arms.find(arm)
    if recipe.settings not in arms.scales:
        raise UserError(f"{path}: settings={recipe.settings} is not in scales of arms.yaml")
    for primary in recipe.primary:
        _check_primary(path, primary, recipe)
    for row in recipe.rows:
        if row.take not in TAKES:
            raise UserError(f"{path}: take={row.take} is unknown; choose from {', '.join(TAKES)}")
    if recipe.summary not in SUMMARIES:
        raise UserError(f"{path}: summary={recipe.summary} is unknown; {', '.join(SUMMARIES)}")
    return recipe


def _check_primary(path: Path, primary: Primary, recipe: Recipe) -> None:
    labels = [row.label for row in recipe.rows]
    if primary.measure not in labels:
        raise UserError(f"{path}: primary measure {primary.measure} is not in rows")
    for arm in filter(None, (primary.arm, primary.than)):
        if arm not in recipe.arms:
            raise UserError(f"{path}: primary arm {arm} is not in arms")


def _figure(path: Path, content: str | dict[str, Any]) -> Figure:
    """A figure, or the measure alone."""
    content = {"series": content} if isinstance(content, str) else dict(content)
    of = content.get("of", "")
    content["of"] = tuple(of) if isinstance(of, list) else (of,)
    if content.get("limits") is not None:
        low, high = content["limits"]
        content["limits"] = (float(low), float(high))
    return build(path, Figure, content)


def _paper_order(name: str) -> tuple[int, int, str]:
    """Tables, then figures, then ablations; by their number. The former base's lines at the end."""
    kinds = {"table": 0, "fig": 1, "ablation": 2, "programme": 4}
    kind = next((place for start, place in kinds.items() if name.startswith(start)), 3)
    digits = "".join(c for c in name.split("_")[0] if c.isdigit())
    return kind, int(digits or 0), name
