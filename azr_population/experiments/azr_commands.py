"""The 7B scale: AZR's own command for every arm and seed, with one override group added.

We never run these: they want an AZR checkout and GPUs. What they record lies where a recipe looks
for it, so that the same command draws the results once the runs are there.
"""

import shlex
from collections.abc import Sequence
from pathlib import Path

from azr_population.errors import UserError
from azr_population.experiments.arms import Arms, seed_numbers
from azr_population.experiments.evaluations import shell_line
from azr_population.experiments.recipe import Recipe
from azr_population.experiments.runs import PlannedRun

SCALE = "7b"


def plan_azr_runs(
    recipe: Recipe, arms: Arms, names: Sequence[str], seeds: int | str, steps: int | None, out: Path
) -> list[PlannedRun]:
    """As `plan_runs`, with AZR's overrides; an arm that AZR cannot express is refused.

    `steps` None takes the arm's own number, else the scale's.

    Raises UserError: the recipe or an arm has no form at 7B.
    """
    if SCALE not in recipe.scales:
        raise UserError(f"{recipe.name} has no {SCALE} scale; run it by --scale nano")
    scale = arms.scales[SCALE]
    home = (out / recipe.name if recipe.own_runs else out).absolute()
    planned = []
    for seed in seed_numbers(seeds):
        for name in names:
            arm = arms.find(name)
            if arm.azr is None:
                raise UserError(f"arm {name} cannot be made inside AZR; leave it out by --arms")
            count = steps or arm.azr_steps or scale.steps
            path = home / name / f"seed_{seed}"
            overrides = (*scale.common, *arm.azr, f"population.seed={seed}")
            planned.append(PlannedRun(arm, seed, count, path, overrides))
    return planned


def azr_command(recipe: Recipe, arms: Arms, run: PlannedRun) -> str:
    """The shell command of one run; it wants AZR_HOME."""
    typed = [
        *shlex.split(arms.scales[SCALE].command),
        f"trainer.total_training_steps={run.steps}",
        f"trainer.experiment_name={run.arm.name}_seed_{run.seed}",
        *run.overrides,
        f"population.run_dir={run.path}",
    ]
    return f'(cd "${{AZR_HOME:?name your AZR checkout}}" && {shlex.join(typed)})'


def write_commands(recipe: Recipe, arms: Arms, missing: Sequence[PlannedRun], out: Path) -> Path:
    """`<out>/<recipe>.sh` with the commands of the runs that are missing."""
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{recipe.name}.sh"
    lines = [
        "#!/usr/bin/env bash",
        f"# {recipe.title} ({recipe.figure}) at 7B: stock AZR's command with one group added.",
        f"# Afterwards: azr-population recipe {recipe.name} --scale {SCALE} --out {out}",
        "set -euo pipefail",
        *(azr_command(recipe, arms, run) for run in missing),
        *filter(None, [shell_line(recipe, SCALE, missing, out)]),
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
