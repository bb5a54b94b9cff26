"""The runs of a recipe: where they are, how far they are, and whether they are what the arm says.

A run is in `<out>/<protocol>/<arm>/seed_<n>` and serves every recipe of that protocol which has
this arm and seed; committed results have the same layout in `recipes/runs`.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import yaml

from azr_population.config.effects import REPEATED, differing_keys, flat
from azr_population.config.load import load_config
from azr_population.config.schema import Config
from azr_population.errors import UserError
from azr_population.experiments.recipes import Arms, Recipe, recipes_folder, seed_numbers
from azr_population.files import read_json, write_atomically
from azr_population.reading.run_data import RunData
from azr_population.runs import RunDirectory
from azr_population.runs.records import ROLES, role_of


@dataclass(frozen=True)
class PlannedRun:
    """One arm with one seed."""

    arm_name: str
    seed: int
    steps: int
    path: Path
    overrides: tuple[str, ...]
    """The arm's; `seed`, `run.dir` and `run.steps` are not among them."""
    seconds: float = 0.0
    """A step on one core, estimated."""

    @property
    def name(self) -> str:
        """For people: `4t4s seed 2`."""
        return f"{self.arm_name} seed {self.seed}"

    @property
    def directory(self) -> RunDirectory:
        return RunDirectory(self.path)

    @cached_property
    def config(self) -> Config:
        """The whole configuration of this arm and seed."""
        return _compose(self.overrides).model_copy(update={"seed": self.seed})

    @property
    def done(self) -> int:
        """Steps up to which it is stored, members and all (a run that was killed has records behind
        them); 0 if there is no run."""
        return RunData(self.path).stored_step if self.started else 0

    @property
    def seconds_left(self) -> float:
        """An estimate, on one core."""
        return self.seconds * max(0, self.steps - self.done)

    @property
    def started(self) -> bool:
        return self.directory.exists

    @property
    def finished(self) -> bool:
        """Whether all its steps are `done`; a longer run serves as well."""
        return self.done >= self.steps


@lru_cache
def _compose(overrides: tuple[str, ...]) -> Config:
    """Composing takes half a second: once per arm."""
    return load_config(overrides)


class RecipePlan:
    """A recipe as it is asked for: its runs, and where its results go. Options are those of
    `azr-population recipe`, whose help has their meanings; None is the recipe's own.

    Raises UserError: an arm does not exist; `seeds` is neither a number nor a range.
    """

    def __init__(
        self,
        recipe: Recipe,
        all_arms: Arms,
        *,
        from_results: bool = False,
        save_results: bool = False,
        seeds: str | None = None,
        steps: int | None = None,
        arms: str | None = None,
        out: Path | None = None,
    ) -> None:
        self.recipe, self.arms = recipe, all_arms
        self.from_results, self.save_results = from_results, save_results
        self.protocol = all_arms.protocols[recipe.protocol]
        self.out = out or Path("runs/recipes")
        self.seeds, usual = _seeds(seeds, self.protocol.seeds), seed_numbers(self.protocol.seeds)
        names = arms.split(",") if arms else recipe.arms
        self.runs = [self._run(name, seed, steps) for seed in self.seeds for name in names]
        """Seed by seed."""
        as_planned = all(run.steps == self._steps(run.arm_name) for run in self.runs)
        self.planned = len(usual) if as_planned and {*self.seeds} <= {*usual} else None
        """Seeds of each arm at which hypotheses are decided; None for other seeds or steps, which
        decide nothing."""

    @property
    def missing(self) -> list[PlannedRun]:
        return [run for run in self.runs if not run.finished]

    @property
    def seconds_left(self) -> float:
        """The seconds of one core that the missing steps take, estimated."""
        return sum(run.seconds_left for run in self.runs)

    @property
    def lengths(self) -> dict[str, int]:
        """The step up to which each arm is drawn."""
        return {run.arm_name: run.steps for run in self.runs}

    @property
    def results(self) -> Path:
        """Never in what is committed, unless `--save-results` asks for it."""
        if self.save_results:
            return self.recipe.folder.resolve() / "results"
        return self.out / "results" / self.recipe.name

    @property
    def committed(self) -> Path:
        """The folder of the committed runs of the recipe's protocol."""
        return recipes_folder() / "runs" / self.recipe.protocol

    def _steps(self, name: str) -> int:
        """The arm's steps in the protocol."""
        return self.protocol.arm_steps.get(name, self.protocol.steps)

    def _run(self, name: str, seed: int, steps: int | None) -> PlannedRun:
        arm = self.arms.find(name)
        steps = steps or self._steps(name)
        overrides = (*self.protocol.common, *arm.overrides)
        run, committed = (
            PlannedRun(name, seed, steps, folder / name / f"seed_{seed}", overrides, arm.seconds)
            for folder in (self.out / self.recipe.protocol, self.committed)
        )
        takes_committed = self.from_results and committed.finished and not run.finished
        return committed if takes_committed else run


def _seeds(typed: str | None, planned: int | str) -> range:
    """The seeds as typed, or the protocol's. Raises UserError: neither a number nor a range, or a
    number that is rather the name of one seed."""
    usual = seed_numbers(planned)
    try:
        seeds = seed_numbers(typed or planned)
    except ValueError:
        raise UserError(f"--seeds {typed} is not a number of seeds, nor A-B") from None
    count = len(seeds)
    if (
        typed
        and typed.isdecimal()
        and count > len(usual)
        and (count in usual or count > 4 * len(usual))
    ):
        raise UserError(
            f"--seeds {typed} is {count} seeds, 1 to {count}, where the recipe has {len(usual)} "
            f"({usual[0]} to {usual[-1]}); write --seeds {count}-{count} for seed {count}, or "
            f"--seeds 1-{count} for all of them"
        )
    return seeds


def check_runs(runs: Iterable[PlannedRun]) -> None:
    """Refuses what stands in the way, before anything is played or drawn. Raises UserError: a run
    with another configuration, or with another base than the first one."""
    bases: dict[str | None, tuple[str | None, Path]] = {}
    for run in (run for run in runs if run.started):
        if changed := other_values(run):
            way_out = "leave out --from-results" if run.directory.results_only else "move it away"
            raise UserError(f"{run.path} is another run: it has {changed}; {way_out}")
        weights = run.directory.environment().get("base")
        first, other = bases.setdefault(run.config.base.path, (weights, run.path))
        if weights != first:
            raise UserError(
                f"{run.path} was made on a base with the hash {weights}, {other} on one with "
                f"{first}: they cannot be compared; move one of them, or name another --out"
            )


def check_saving(plan: RecipePlan) -> None:
    """Raises UserError where `--save-results` would put a part in the place of committed results,
    or there is no checkout to commit from."""
    if not (recipes_folder().resolve().parent / "pyproject.toml").is_file():
        raise UserError("--save-results writes into a checkout, and this is none; leave it out")
    versions = plan.results / "versions.json"
    committed = read_json(versions)["runs"] if versions.is_file() else {}
    steps = {
        run.name: run.done if plan.from_results else max(run.done, run.steps) for run in plan.runs
    }
    if lost := [name for name, done in committed.items() if steps.get(name, 0) < done]:
        raise UserError(
            f"--save-results would write results without {len(lost)} of the {len(committed)} runs "
            f"of {versions.parent} ({', '.join(lost[:4])}); take all seeds, arms and steps, or "
            "leave out --save-results"
        )


def other_values(run: PlannedRun) -> str:
    """The settings in which the run differs from its arm and seed; empty without any. A key
    that an older run lacks is passed over."""
    stored, wanted = flat(run.directory.config()), flat(run.config.model_dump())
    for settings in (stored, wanted):
        if path := settings.get("base.path"):
            short = Path(path).name if run.directory.results_only else str(Path(path).resolve())
            settings["base.path"] = short
    differing = [
        f"{key}={stored.get(key)} instead of {wanted.get(key)}"
        for key in differing_keys(stored, wanted, REPEATED)
        # None and [] are left to the domain or the defaults.
        if not (key.startswith(("task.", "base.")) and wanted[key] in (None, []))
    ]
    more = f" and {len(differing) - 6} more" if len(differing) > 6 else ""
    return ", ".join(differing[:6]) + more


def save_runs(plan: RecipePlan) -> None:
    """Commits settings, versions, metrics and births of the finished runs: what `--from-results`
    finds.

    Numbers have six digits; weights and the machine's paths are left out.
    """
    for run in plan.runs:
        if not run.finished or run.directory.results_only:
            continue
        stored = RunData(run.path)
        config = deepcopy(dict(stored.config))
        config["run"]["dir"] = ""
        if config["base"]["path"]:
            config["base"]["path"] = Path(config["base"]["path"]).name
        keys = ("python", "packages", "base", "commit")
        environment = {key: stored.environment[key] for key in keys if key in stored.environment}
        folder = plan.committed / run.arm_name / f"seed_{run.seed}"
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / "config.yaml", yaml.safe_dump(config, sort_keys=False))
        write_atomically(folder / "environment.json", json.dumps(environment, indent=1) + "\n")
        text = "".join(map(_line, stored.complete_lines))
        births = "".join(json.dumps(birth) + "\n" for birth in stored.read("lineage"))
        write_atomically(folder / "lineage.jsonl", births)
        # Without the time, equal results are equal bytes.
        write_atomically(folder / "metrics.jsonl.gz", gzip.compress(text.encode(), mtime=0))


def _line(line: Mapping[str, Any]) -> str:
    """A line of metrics with those of members that figures draw."""
    rounded = {
        key: float(f"{value:.6g}") if isinstance(value, float) else value
        for key, value in line.items()
        if (parts := key.partition("/"))[0] in ROLES
        or not role_of(parts[0])
        or parts[2] in ("solve_rate", "reward")
    }
    return json.dumps(rounded, separators=(",", ":")) + "\n"
