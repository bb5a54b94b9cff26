"""The runs of a recipe: where they are, how far they are, and whether they are what the arm says.

A run is in `<out>/<arm>/seed_<n>` and serves every recipe that has this arm and seed; committed
results have the same layout in `recipes/runs/nano`.
"""

from __future__ import annotations

import gzip
import json
import shlex
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
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
    """The nano base of its own that it plays on."""
    init_from: str = ""
    """RUN@STEP that it is forked from."""
    is_origin: bool = False
    """Whether it is only there for others to be forked from."""
    slower: float = 1.0

    @property
    def name(self) -> str:
        """For people: `4t4s seed 2`."""
        return f"{self.arm_name} seed {self.seed}"

    @property
    def directory(self) -> RunDirectory:
        return _directory(self.path)

    def check(self) -> None:
        """Raises UserError: nothing could play it, or its base has to be made first."""
        from azr_population.hosts.local.check import check_config  # it imports torch
        from azr_population.method.config_check import check_made

        check_config(self.wanted)
        check_made(self.wanted.base)

    @property
    def wanted(self) -> Config:
        """Its whole configuration."""
        config = load_config(self.overrides)
        config.seed = self.seed
        if self.base is not None:
            config.base.path = str(self.base)
        config.run.init_from = self.init_from or None
        return config

    @property
    def settings(self) -> dict[str, Any]:
        """The same by dotted key; None and [] are what is left to the domain or the defaults."""
        own = {"seed": self.seed, "run.init_from": self.init_from or None}
        base = {"base.path": str(self.base)} if self.base is not None else {}
        return {**_settings(self.overrides), **own, **base}

    @property
    def done(self) -> int:
        """Steps that are recorded; 0 if there is no run."""
        return last_step(self.directory)

    @property
    def seconds_left(self) -> float:
        """An estimate, on one core; a fork has the steps before it for nothing."""
        begin = self.arm.origin[1] if self.arm.origin else 0
        return self.arm.seconds * self.slower * (self.steps - max(begin, self.done))

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


def plan_runs(
    recipe: Recipe,
    arms: Arms,
    names: Sequence[str],
    seeds: int | str,
    steps: int,
    out: Path,
    committed: bool = False,
) -> list[PlannedRun]:
    """All local runs, seed by seed, after those that others are forked from. With `committed`, a
    run that is not finished in `out` is taken from the committed results, if it is there."""
    home = out / recipe.name if recipe.own_runs else settings_folder(out, recipe)
    scale = arms.scales[recipe.settings]
    origins = dict.fromkeys(origin for name in names if (origin := arms.find(name).origin))
    wanted = [
        (name, step, True, seed)
        for seed in seed_numbers(seeds)
        for name, step in origins
        if name not in names  # whose own run serves, if its checkpoint of that step stays
    ]
    wanted += [
        (name, steps * arms.find(name).times, False, seed)
        for seed in seed_numbers(seeds)
        for name in names
    ]
    planned = []
    for name, length, is_origin, seed in wanted:
        arm = arms.find(name)
        origin = arm.origin
        run = PlannedRun(
            name,
            arm,
            seed,
            length,
            home / name / f"seed_{seed}",
            (*scale.common, *arm.overrides, *recipe.overrides),
            out / "bases" / arm.base if arm.base else None,
            f"{home / origin[0] / f'seed_{seed}'}@{origin[1]}" if origin else "",
            is_origin,
            scale.slower,
        )
        if committed and not recipe.own_runs and not run.finished:
            stored = replace(run, path=committed_folder(recipe) / name / f"seed_{seed}")
            run = stored if stored.finished else run
        planned.append(run)
    return planned


def plan_azr_runs(
    recipe: Recipe, arms: Arms, names: Sequence[str], seeds: int | str, steps: int | None, out: Path
) -> list[PlannedRun]:
    """As `plan_runs`, inside AZR; `steps` None takes the arm's number, else the scale's. Raises
    UserError: AZR cannot play an arm."""
    scale = arms.scales["7b"]
    home = (out / recipe.name if recipe.own_runs else out).absolute()
    planned = []
    for seed in seed_numbers(seeds):
        for name in names:
            arm = arms.find(name)
            if arm.azr_overrides is None:
                raise UserError(f"arm {name} cannot be played inside AZR; leave it out by --arms")
            count = steps or arm.azr_steps or scale.steps
            path = home / name / f"seed_{seed}"
            overrides = (*scale.common, *arm.azr_overrides, f"population.seed={seed}")
            planned.append(PlannedRun(name, arm, seed, count, path, overrides))
    return planned


def azr_script(recipe: Recipe, arms: Arms, missing: Sequence[PlannedRun], out: Path) -> str:
    """A shell script with AZR's command for every missing run; it needs AZR_HOME."""
    lines = [
        "#!/usr/bin/env bash",
        f"# {recipe.title} ({recipe.figure}) at 7B: stock AZR's command with one group added.",
        f"# Afterwards: azr-population recipe {recipe.name} --scale 7b --out {out}",
        "set -euo pipefail",
    ]
    for run in missing:
        typed = [
            *shlex.split(arms.scales["7b"].command),
            f"trainer.total_training_steps={run.steps}",
            f"trainer.experiment_name={run.arm_name}_seed_{run.seed}",
            *run.overrides,
            f"population.run_dir={run.path}",
        ]
        lines.append(f'(cd "${{AZR_HOME:?name your AZR checkout}}" && {shlex.join(typed)})')
    if recipe.after_7b:
        folders = shlex.join(str(run.path) for run in missing)
        lines.append(recipe.after_7b.format(runs=folders, out=shlex.quote(str(out))))
    return "\n".join(lines) + "\n"


def settings_folder(folder: Path, recipe: Recipe) -> Path:
    """Where in `folder` the runs of the recipe's settings are, which other recipes share."""
    return folder if recipe.settings == "nano" else folder / recipe.settings


def committed_folder(recipe: Recipe) -> Path:
    return settings_folder(recipes_folder() / "runs" / "nano", recipe)


def check_runs(planned: Sequence[PlannedRun], resume: bool) -> None:
    """Refuses what stands in the way, before anything is played. Raises UserError: a run with
    another configuration or base, or an unfinished one without `resume`."""
    bases: dict[str | None, tuple[str | None, Path]] = {}
    for run in planned:
        if not run.started:
            if run.path.is_dir() and any(run.path.iterdir()):
                _clear_half_made(run.path)
            continue
        if changed := other_values(run):
            way_out = "leave out --from-results" if run.directory.results_only else "move it away"
            raise UserError(f"{run.path} is another run: it has {changed}; {way_out}")
        if not run.finished and not resume:
            raise UserError(
                f"{run.path} is at step {run.done} of {run.steps}; go on with it by --resume, or "
                "name another --out"
            )
        weights = run.directory.environment().get("base")
        first, other = bases.setdefault(run.arm.base, (weights, run.path))
        if weights != first:
            raise UserError(
                f"{run.path} was played on a base with the hash {weights}, {other} on one with "
                f"{first}: they cannot be compared; move one of them, or name another --out"
            )


def other_values(run: PlannedRun) -> str:
    """What the run's configuration has that its arm and seed have not; empty if it is theirs. A key
    that an older run lacks is passed over."""
    stored, wanted = flat(whole_config(run.directory)), run.settings
    for settings in (stored, wanted):
        settings["engine.threads"] = 0
        for key in ("base.path", "run.init_from"):
            if settings.get(key):
                path = Path(settings[key])
                only_name = run.directory.results_only
                settings[key] = path.name if only_name else str(path.resolve())
    found = [
        f"{key}={value} instead of {wanted[key]}"
        for key, value in stored.items()
        if key in wanted
        and wanted[key] not in (value, None, [])
        and not touches_only(key, REPEATED)
    ]
    return ", ".join(found[:6]) + (f" and {len(found) - 6} more" if len(found) > 6 else "")


def _clear_half_made(path: Path) -> None:
    """Removes what a run leaves that was killed before its first record: nothing was played."""
    if list(path.glob("*.jsonl")) or not {one.name for one in path.iterdir()} <= {
        "members",
        "checkpoints",
        "environment.json",
        ".environment.json.tmp",
        ".config.yaml.tmp",
    }:
        raise UserError(f"{path} is not empty and not a run; move it away, or name another --out")
    shutil.rmtree(path)


def save_results(planned: Sequence[PlannedRun], recipe: Recipe) -> None:
    """Commits settings, versions and metrics of the finished runs: what `plan_runs` finds there.

    Numbers have six digits; members and the machine's paths are left out.
    """
    for run in planned:
        if not run.finished or run.directory.results_only:
            continue
        lines = {
            line["step"]: {
                key: value
                for key, value in line.items()
                if not role_of(key.partition("/")[0]) or key.partition("/")[0] in ROLES
            }
            for line in run.directory.metrics()
        }
        for step, values in derived(run.directory).items():
            lines.setdefault(step, {"step": step}).update(values)
        config = run.directory.config()
        config["run"]["dir"] = ""
        if config["base"]["path"]:
            config["base"]["path"] = Path(config["base"]["path"]).name
        known = run.directory.environment()
        versions = {k: known[k] for k in ("python", "packages", "base", "commit") if k in known}
        folder = committed_folder(recipe) / run.arm_name / f"seed_{run.seed}"
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / "config.yaml", yaml.safe_dump(config, sort_keys=False))
        write_atomically(folder / "environment.json", json.dumps(versions, indent=1) + "\n")
        text = "".join(_line(lines[step]) for step in sorted(lines))
        # Without the time, equal results are equal bytes.
        (folder / "metrics.jsonl.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


def _line(line: dict[str, Any]) -> str:
    rounded = {k: float(f"{v:.6g}") if isinstance(v, float) else v for k, v in line.items()}
    return json.dumps(rounded, separators=(",", ":")) + "\n"


def commits_of(planned: Sequence[PlannedRun]) -> Counter[str]:
    """How many of the runs each commit played, by its first seven digits."""
    commits = (run.directory.environment().get("commit") for run in planned if run.started)
    return Counter(str(commit)[:7] for commit in commits if commit)
