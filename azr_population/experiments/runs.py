"""The runs that a recipe needs: where they lie, how far they are, and whether they fit.

A run lies in `<out>/<arm>/seed_<n>` and serves every recipe that wants this arm and seed. What is
kept of runs that were played elsewhere lies in the same way in `recipes/runs/<scale>`.
"""

import shutil
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from omegaconf import OmegaConf

from azr_population.config.differences import REPEATED, differences, flat, touches_only
from azr_population.config.load import config_from_file, load_config
from azr_population.config.schema import Config
from azr_population.errors import UserError
from azr_population.experiments.arms import Arm, Arms, seed_numbers
from azr_population.experiments.recipe import Recipe
from azr_population.hosts.local.check import check_config, fill_in
from azr_population.method.check import check_made
from azr_population.runs import RunDirectory
from azr_population.runs.diagnostics import (
    consumption,
    is_kept,
    keep,
    last_step,
    readings,
)
from azr_population.runs.diagnostics.measures import measures_for
from azr_population.runs.records import domain_of


@dataclass(frozen=True)
class PlannedRun:
    """One arm with one seed."""

    arm: Arm
    seed: int
    steps: int
    path: Path
    overrides: tuple[str, ...]
    """All but `run.dir` and `run.steps`."""
    base: Path | None = None
    """A nano base that has to be there first."""
    is_origin: bool = False
    """Whether it is only there for others to be forked from."""
    slower: float = 1.0
    """See `Scale`."""

    @property
    def name(self) -> str:
        """For people: `4t4s seed 2`."""
        return f"{self.arm.name} seed {self.seed}"

    @cached_property
    def wanted(self) -> Config:
        """What its overrides compose, once: that takes a while. Not to be changed."""
        config = load_config(self.overrides)
        check_config(config)
        return config

    @property
    def done(self) -> int:
        """Steps that are recorded; 0 where there is no run."""
        return last_step(RunDirectory(self.path))

    @property
    def left(self) -> int:
        """Steps that are to be played; a fork has those before it for nothing."""
        begin = self.arm.origin[1] if self.arm.origin else 0
        return self.steps - max(begin, self.done)

    @property
    def seconds_left(self) -> float:
        """An estimate, on one core."""
        return self.arm.seconds * self.slower * self.left

    @property
    def started(self) -> bool:
        """Whether there is a run."""
        return (self.path / "config.yaml").is_file()

    @property
    def is_kept(self) -> bool:
        """Whether only its curves are there."""
        return is_kept(RunDirectory(self.path))

    @property
    def finished(self) -> bool:
        """Whether the steps that are wanted are there; a longer run serves as well."""
        return self.started and self.done >= self.steps


def plan_runs(
    recipe: Recipe,
    arms: Arms,
    names: Sequence[str],
    seeds: int | str,
    steps: int,
    out: Path,
    kept: Path | None = None,
) -> list[PlannedRun]:
    """All runs at nano scale, seed by seed: after the first seed every arm has been seen. Runs that
    others are forked from come first.

    A run that is not finished in `out` is taken from the folder `kept` if it is there.
    """
    home = out / recipe.name if recipe.own_runs else settings_folder(out, recipe)
    chosen = [arms.find(name) for name in names]
    origins = dict.fromkeys(arm.origin for arm in chosen if arm.origin)
    wanted = [
        (arms.find(name), step, True, seed)
        for seed in seed_numbers(seeds)
        for name, step in origins
        if name not in names  # whose own run serves, if its checkpoint of that step stays
    ]
    wanted += [
        (arm, steps * arm.times, False, seed) for seed in seed_numbers(seeds) for arm in chosen
    ]
    planned = []
    for arm, length, is_origin, seed in wanted:
        base = out / "bases" / arm.base if arm.base else None
        scale = recipe.scale(arms)
        overrides = (*scale.common, *arm.nano, *recipe.overrides, f"seed={seed}")
        if base is not None:
            overrides += (f"base.path={base}",)
        if arm.origin:
            other, step = arm.origin
            overrides += (f"run.fork={home / other / f'seed_{seed}'}@{step}",)
        place = Path(arm.name) / f"seed_{seed}"
        run = PlannedRun(arm, seed, length, home / place, overrides, base, is_origin, scale.slower)
        if kept is not None and not recipe.own_runs and not run.finished:
            elsewhere = replace(run, path=kept / place)
            run = elsewhere if elsewhere.finished else run
        planned.append(run)
    return planned


def settings_folder(folder: Path, recipe: Recipe) -> Path:
    """Where in `folder` the runs of the recipe's settings lie, which other recipes share."""
    return folder if recipe.settings == "nano" else folder / recipe.settings


def check_runs(planned: Sequence[PlannedRun], resume: bool) -> None:
    """Refuses what stands in the way, before anything is run. Raises UserError: a run with another
    configuration, or an unfinished one without `resume`."""
    for run in planned:
        if run.started:
            _check_same(run)
            if not run.finished and not resume:
                raise UserError(
                    f"{run.path} stands at step {run.done} of {run.steps}; go on with it by "
                    "--resume, or name another --out"
                )
        elif run.path.is_dir() and any(run.path.iterdir()):
            _clear_half_made(run.path)
    _check_alike(planned)


def _check_alike(planned: Sequence[PlannedRun]) -> None:
    """Refuses runs of one base's name that were played on different weights: they cannot stand in
    one table, and a configuration does not tell them apart."""
    seen: dict[str | None, tuple[str, Path]] = {}
    for run in planned:
        weights = RunDirectory(run.path).environment().get("base") if run.started else None
        if weights:
            first, other = seen.setdefault(run.arm.base, (weights, run.path))
            if first != weights:
                raise UserError(
                    f"{run.path} was played on a base with the hash {weights}, {other} on one with "
                    f"{first}: they cannot be compared; move one of them, or name another --out"
                )


def check_bases(planned: Sequence[PlannedRun]) -> None:
    """Refuses a base that somebody has to make first, before any run is played (`UserError`)."""
    for run in {run.arm.name: run for run in planned}.values():
        check_made(run.wanted.base)


def _check_same(run: PlannedRun) -> None:
    way_out = "leave out --kept to play it" if run.is_kept else "name another --out, or move it"
    try:
        told = other_values(run)
    except UserError as error:
        raise UserError(f"{run.path} cannot be reused: {error}; {way_out}") from error
    if told:
        raise UserError(f"{run.path} holds another run: it has {told}; {way_out}")


def other_values(run: PlannedRun) -> str:
    """What the run's configuration has that its arm and seed have not; empty when it is theirs.
    Raises UserError: its configuration cannot be read."""
    wanted, stored = deepcopy(run.wanted), config_from_file(run.path / "config.yaml")
    # Folders are the same however they are written; of what is kept there is the last name only.
    for config in (wanted, stored):
        fill_in(config)
        if config.base.path:
            path = Path(config.base.path)
            config.base.path = path.name if run.is_kept else str(path.resolve())
        if config.run.fork:
            path = Path(config.run.fork)
            config.run.fork = path.name if run.is_kept else str(path.resolve())
    found = differences(stored, wanted, REPEATED)
    told = ", ".join(f"{key}={one} instead of {other}" for key, one, other in found[:6])
    return f"{told} and {len(found) - 6} more" if len(found) > 6 else told


def keys_without_value(run: PlannedRun) -> list[str]:
    """Keys that the run's own configuration lacks: it is from an older version, and what they say
    today may not be what it did."""
    stored = flat(RunDirectory(run.path).config())
    wanted = flat(OmegaConf.to_container(OmegaConf.structured(run.wanted)))
    return [key for key in wanted if key not in stored and not touches_only(key, REPEATED)]


def _clear_half_made(path: Path) -> None:
    """Removes what a run leaves that was killed before its first record: nothing was played."""
    if list(path.glob("*.jsonl")) or not {one.name for one in path.iterdir()} <= {
        "members",
        "checkpoints",
        "environment.json",
        ".environment.json.tmp",
        ".config.yaml.tmp",
    }:
        raise UserError(f"{path} is not empty and no run; move it away, or name another --out")
    shutil.rmtree(path)


def runs_there(planned: Sequence[PlannedRun]) -> dict[str, list[RunDirectory]]:
    """The runs that have records, by arm, in order of their seeds; without those that are only
    there for others to be forked from."""
    found: dict[str, list[RunDirectory]] = {}
    for run in planned:
        if run.started and run.done and not run.is_origin:
            found.setdefault(run.arm.name, []).append(RunDirectory(run.path))
    return found


def keep_runs(planned: Sequence[PlannedRun], folder: Path) -> None:
    """Writes the curves of the finished ones into `folder`, from which `plan_runs` takes them."""
    for run in planned:
        if run.finished and not run.is_kept:
            one = RunDirectory(run.path)
            curves = ((m.name, readings(one, m.name)) for m in measures_for([domain_of(one)]))
            place = folder / run.arm.name / f"seed_{run.seed}"
            keep(one, curves, consumption(one)["all"], run.done, place)
