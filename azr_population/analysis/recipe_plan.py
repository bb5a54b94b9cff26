"""The runs of a recipe: where they are, how far they are, and whether they are what the arm says.

A run is in `<out>/<arm>/seed_<n>` and serves every recipe that has this arm and seed; committed
results have the same layout in `recipes/runs/nano`.
"""

from __future__ import annotations

import gzip
import json
import shlex
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import yaml

from azr_population.analysis.derived import derived
from azr_population.analysis.recipes import Arm, Arms, Recipe, recipes_folder, seed_numbers
from azr_population.config.effects import REPEATED, flat, touches_only
from azr_population.config.load import load_config
from azr_population.config.schema import Config
from azr_population.errors import UserError
from azr_population.files import write_atomically
from azr_population.runs import RunDirectory
from azr_population.runs.records import ROLES, last_step, role_of, whole_config


@dataclass(frozen=True)
class RecipeOptions:
    """What is asked of a recipe, as `azr-population recipe --help` has it; where a field is None it
    is the recipe's own."""

    name: str
    from_results: bool = False
    plot_only: bool = False
    resume: bool = False
    dry_run: bool = False
    yes: bool = False
    seeds: str | None = None
    steps: int | None = None
    arms: str | None = None
    override: Sequence[str] = ()
    scale: str = "nano"
    out: Path | None = None
    results: Path | None = None
    save_results: bool = False
    jobs: int = 1


@dataclass(frozen=True)
class PlannedRun:
    """One arm with one seed."""

    arm_name: str
    arm: Arm
    seed: int
    steps: int
    path: Path
    overrides: tuple[str, ...]
    """Of the arm; not `seed`, `run.dir`, `run.steps` and what depends on folders."""
    base: Path | None = None
    """The nano base that is made for it."""
    init_from: str | None = None
    """RUN@STEP that it is forked from."""
    seconds: float = 0.0
    """An estimate of a step, on one core."""

    @property
    def name(self) -> str:
        """For people: `4t4s seed 2`."""
        return f"{self.arm_name} seed {self.seed}"

    @property
    def directory(self) -> RunDirectory:
        return _directory(self.path)

    @property
    def wanted(self) -> Config:
        """Its whole configuration."""
        config = load_config(self.overrides)
        config.seed = self.seed
        if self.base is not None:
            config.base.path = str(self.base)
        config.run.init_from = self.init_from
        return config

    @property
    def settings(self) -> dict[str, Any]:
        """The same by dotted key; None and [] are what is left to the domain or the defaults."""
        base = {"base.path": str(self.base)} if self.base is not None else {}
        return {
            **_settings(self.overrides),
            "seed": self.seed,
            "run.init_from": self.init_from,
        } | base

    @property
    def done(self) -> int:
        """Steps that are recorded; 0 if there is no run."""
        return last_step(self.directory)

    @property
    def seconds_left(self) -> float:
        """An estimate, on one core; a fork has the steps before it for nothing."""
        begin = self.arm.origin[1] if self.arm.origin else 0
        return self.seconds * max(0, self.steps - max(begin, self.done))

    @property
    def started(self) -> bool:
        return (self.path / "config.yaml").is_file()

    @property
    def finished(self) -> bool:
        """Whether all its steps are recorded; a longer run serves as well."""
        return self.started and self.done >= self.steps


@lru_cache(maxsize=1024)
def _directory(path: Path) -> RunDirectory:
    """One object per run, so that what is read of it is remembered by it."""
    return RunDirectory(path)


@lru_cache
def _settings(overrides: tuple[str, ...]) -> dict[str, Any]:
    """Composing takes half a second: once per arm."""
    return flat(load_config(overrides).model_dump())


class RecipePlan:
    """A recipe as it is asked for: its runs, and where its results go.

    Raises UserError: an arm does not exist, or cannot be played inside AZR at scale 7b.
    """

    def __init__(self, recipe: Recipe, arms: Arms, options: RecipeOptions) -> None:
        self.recipe, self.arms, self.options = recipe, arms, options
        self.in_azr = options.scale == "7b"
        self.scale = arms.scales["7b" if self.in_azr else recipe.settings]
        self.out = options.out or Path("runs/recipes") / options.scale
        self.arm_names = tuple(options.arms.split(",")) if options.arms else recipe.arms
        seeds = options.seeds or (not self.in_azr and recipe.seeds) or self.scale.seeds
        self.seeds = seed_numbers(seeds)

    @cached_property
    def origins(self) -> list[PlannedRun]:
        """Runs that others are forked from, if their arm is not one of the recipe's."""
        forks = dict.fromkeys(self.arms.find(name).origin for name in self.arm_names)
        wanted = [fork for fork in forks if fork and fork[0] not in self.arm_names]
        return [self._run(name, seed, step) for seed in self.seeds for name, step in wanted]

    @cached_property
    def runs(self) -> list[PlannedRun]:
        """The runs that are drawn, seed by seed."""
        return [self._run(name, seed) for seed in self.seeds for name in self.arm_names]

    @property
    def lengths(self) -> dict[str, int]:
        """By arm: the step up to which it is drawn; inside AZR one that all arms have."""
        shortest = min(run.steps for run in self.runs)
        return {run.arm_name: shortest if self.in_azr else run.steps for run in self.runs}

    @property
    def results(self) -> Path:
        """Never in what is committed, unless `--save-results` asks for it."""
        saved = self.recipe.folder.resolve() / "results" / self.options.scale
        elsewhere = self.options.results or self.out / "results" / self.recipe.name
        return saved if self.options.save_results and not self.options.results else elsewhere

    @property
    def committed(self) -> Path:
        """Where the committed runs of the recipe's settings are."""
        return self._of_settings(recipes_folder() / "runs" / "nano")

    def _of_settings(self, folder: Path) -> Path:
        return folder if self.recipe.settings == "nano" else folder / self.recipe.settings

    def _run(self, name: str, seed: int, steps: int | None = None) -> PlannedRun:
        arm, recipe, options = self.arms.find(name), self.recipe, self.options
        if self.in_azr:
            if arm.azr_overrides is None:
                raise UserError(f"arm {name} cannot be run inside AZR; leave it out with --arms")
            home = (self.out / recipe.name if recipe.own_runs else self.out).absolute()
            overrides = (*self.scale.common, *arm.azr_overrides, f"population.seed={seed}")
            steps = options.steps or arm.azr_steps or self.scale.steps
            return PlannedRun(name, arm, seed, steps, home / name / f"seed_{seed}", overrides)
        home = self.out / recipe.name if recipe.own_runs else self._of_settings(self.out)
        steps = steps or arm.times * (options.steps or recipe.steps or self.scale.steps)
        overrides = (*self.scale.common, *arm.overrides, *recipe.overrides, *options.override)
        place = Path(name, f"seed_{seed}")
        fork = arm.origin and f"{home / arm.origin[0] / place.name}@{arm.origin[1]}"
        base = self.out / "bases" / arm.base if arm.base else None
        seconds = arm.seconds * self.scale.slower

        def at(path: Path) -> PlannedRun:
            return PlannedRun(name, arm, seed, steps, path, overrides, base, fork, seconds)

        run, stored = at(home / place), at(self.committed / place)
        takes_stored = options.from_results and not recipe.own_runs and not run.finished
        return stored if takes_stored and stored.finished else run


def azr_script(plan: RecipePlan, missing: Sequence[PlannedRun]) -> str:
    """A shell script with AZR's command for every missing run; it needs AZR_HOME."""
    recipe = plan.recipe
    lines = [
        "#!/usr/bin/env bash",
        f"# {recipe.title} ({recipe.figure}) at 7B: stock AZR's command with one group added.",
        f"# Afterwards: azr-population recipe {recipe.name} --scale 7b --out {plan.out}",
        "set -euo pipefail",
    ]
    for run in missing:
        typed = [
            *shlex.split(plan.scale.command),
            f"trainer.total_training_steps={run.steps}",
            f"trainer.experiment_name={run.arm_name}_seed_{run.seed}",
            *run.overrides,
            f"population.run_dir={run.path}",
        ]
        lines.append(f'(cd "${{AZR_HOME:?name your AZR checkout}}" && {shlex.join(typed)})')
    if recipe.after_7b:
        folders = shlex.join(str(run.path) for run in missing)
        lines.append(recipe.after_7b.format(runs=folders, out=shlex.quote(str(plan.out))))
    return "\n".join(lines) + "\n"


def check_runs(runs: Iterable[PlannedRun], resume: bool) -> None:
    """Refuses what stands in the way, before anything is played. Raises UserError: a run with
    another configuration or base, or an unfinished one without `resume`."""
    bases: dict[str | None, tuple[str | None, Path]] = {}
    for run in (run for run in runs if run.started):
        if changed := other_values(run):
            way_out = "leave out --from-results" if run.directory.results_only else "move it away"
            raise UserError(f"{run.path} is another run: it has {changed}; {way_out}")
        if not run.finished and not resume:
            raise UserError(
                f"{run.path} is at step {run.done} of {run.steps}; continue it with --resume, or "
                "name another --out"
            )
        weights = run.directory.environment().get("base")
        first, other = bases.setdefault(run.arm.base, (weights, run.path))
        if weights != first:
            raise UserError(
                f"{run.path} was made on a base with the hash {weights}, {other} on one with "
                f"{first}: they cannot be compared; move one of them, or name another --out"
            )


def other_values(run: PlannedRun) -> str:
    """What the run's configuration has that its arm and seed have not; empty if it is theirs. A key
    that an older run lacks is passed over."""
    stored, wanted = flat(whole_config(run.directory)), run.settings
    only_names = run.directory.results_only
    for settings in (stored, wanted):
        settings["engine.threads"] = 0
        for key in ("base.path", "run.init_from"):
            if path := settings.get(key):
                settings[key] = Path(path).name if only_names else str(Path(path).resolve())
    differing = [
        f"{key}={value} instead of {wanted[key]}"
        for key, value in stored.items()
        if wanted.get(key) not in (value, None, []) and not touches_only(key, REPEATED)
    ]
    more = f" and {len(differing) - 6} more" if len(differing) > 6 else ""
    return ", ".join(differing[:6]) + more


def save_results(plan: RecipePlan) -> None:
    """Commits settings, versions and metrics of the finished runs: what `--from-results` finds.

    Numbers have six digits; members and the machine's paths are left out.
    """
    for run in [*plan.origins, *plan.runs]:
        if not run.finished or run.directory.results_only:
            continue
        lines = {line["step"]: _without_members(line) for line in run.directory.metrics()}
        for step, values in derived(run.directory).items():
            lines.setdefault(step, {"step": step}).update(values)
        config = run.directory.config()
        config["run"]["dir"] = ""
        if config["base"]["path"]:
            config["base"]["path"] = Path(config["base"]["path"]).name
        recorded = run.directory.environment()
        kept = {k: recorded[k] for k in ("python", "packages", "base", "commit") if k in recorded}
        folder = plan.committed / run.arm_name / f"seed_{run.seed}"
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / "config.yaml", yaml.safe_dump(config, sort_keys=False))
        write_atomically(folder / "environment.json", json.dumps(kept, indent=1) + "\n")
        text = "".join(_line(lines[step]) for step in sorted(lines))
        # Without the time, equal results are equal bytes.
        (folder / "metrics.jsonl.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


def _without_members(line: Mapping[str, Any]) -> dict[str, Any]:
    groups = {key: key.partition("/")[0] for key in line}
    return {k: v for k, v in line.items() if groups[k] in ROLES or not role_of(groups[k])}


def _line(line: Mapping[str, Any]) -> str:
    rounded = {k: float(f"{v:.6g}") if isinstance(v, float) else v for k, v in line.items()}
    return json.dumps(rounded, separators=(",", ":")) + "\n"


def commits_of(runs: Iterable[PlannedRun]) -> Counter[str]:
    """How many of the runs each commit played, by its first seven digits."""
    commits = (run.directory.environment().get("commit") for run in runs if run.started)
    return Counter(str(commit)[:7] for commit in commits if commit)


def command() -> str:
    """The command line as it was typed, without the place of the program."""
    return shlex.join([Path(sys.argv[0]).name.replace("cli.py", "azr-population"), *sys.argv[1:]])
