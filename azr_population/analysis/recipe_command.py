"""`azr-population recipe`: lists the recipes, or plays what is missing of one and draws it."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from azr_population.errors import UserError

if TYPE_CHECKING:
    from azr_population.analysis.recipes import Arms, Recipe

_LONG = 300.0
"""Seconds of one core that are played without a question."""


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


def run_recipe(arguments: RecipeOptions) -> int:
    """Returns the exit code: 0, or 128 + the signal that stopped the runs."""
    from azr_population.analysis.recipes import (
        read_arms,
        read_recipe,
        recipes_folder,
        seed_numbers,
    )

    arms = read_arms()
    try:
        seed_numbers(arguments.seeds or "1")
    except ValueError:
        raise UserError(f"--seeds {arguments.seeds} is not a number of seeds, nor A-B") from None
    recipe = read_recipe(arguments.name, arms)
    if arguments.scale not in recipe.scales:
        raise UserError(f"{recipe.name} has no {arguments.scale} scale")
    if arguments.override:
        if arguments.from_results or arguments.save_results or arguments.scale != "nano":
            raise UserError("--override makes separate runs: leave out --from-results, "
                            "--save-results and --scale")  # fmt: skip
        if arguments.out is None or recipe.scripts:
            raise UserError("--override needs --out, a folder for these runs alone")
        recipe = recipe.model_copy(update={"overrides": (*recipe.overrides, *arguments.override)})
    if arguments.save_results:
        if not (recipes_folder().resolve().parent / "pyproject.toml").is_file():
            raise UserError("--save-results writes into a checkout, and this is none; leave it out")
        if not is_whole(recipe, arms, arguments):
            raise UserError(
                "--save-results is for the whole recipe, or for the seeds of a planned test; leave "
                "out --results, --steps, --seeds and --arms"
            )
    if recipe.scripts:
        return _run_scripts(recipe, arguments)
    return (_run_7b if arguments.scale == "7b" else _run_nano)(recipe, arms, arguments)


def _run_nano(recipe: Recipe, arms: Arms, arguments: RecipeOptions) -> int:
    from azr_population.analysis.recipe_results import draw
    from azr_population.analysis.recipe_runner import build_base, play, play_each_other
    from azr_population.analysis.recipe_runs import check_runs, plan_runs, save_results

    out = arguments.out or Path("runs/recipes/nano")
    scale = arms.scales[recipe.settings]
    steps = arguments.steps or recipe.steps or scale.steps
    seeds = arguments.seeds or recipe.seeds or scale.seeds
    names = chosen_arms(recipe, arms, arguments.arms)
    committed = arguments.from_results
    planned = plan_runs(recipe, arms, names, seeds, steps, out, committed)
    lengths = {name: steps * arms.find(name).times for name in names}
    results = results_folder(recipe, arguments, out)
    todo = [one for one in planned if not one.finished]
    if not arguments.plot_only:
        if recipe.own_runs and arguments.jobs > 1:
            raise UserError(f"{recipe.name} measures time, so its runs go one by one: --jobs 1")
        check_runs(planned, arguments.resume)
        left = estimate(one.seconds_left for one in todo)
        if committed and todo:
            some = ", ".join(one.name for one in todo[:4]) + ", ..." * (len(todo) > 4)
            raise UserError(
                f"{len(todo)} runs of {recipe.name} are not among the committed results ({some}); "
                f"leave out --from-results to play them ({left} of one core), or draw what there "
                "is by --plot-only"
            )
        say(
            f"{recipe.name}: {len(planned)} runs of {steps} steps, {len(planned) - len(todo)} "
            f"finished, {sum(one.directory.results_only for one in planned)} of them committed; "
            f"about {left} of one core to go"
        )
        bases = {one.arm.base: one.base for one in todo if one.arm.base and one.base}
        if arguments.dry_run:
            for one in todo:
                say(f"would play {one.name} to step {one.steps} in {one.path}")
            say(f"results would be in {results}; nothing was started")
            return 0
        for one in {one.arm_name: one for one in todo}.values():
            one.check()
        missing = [name for name, path in bases.items() if not path.exists()]
        seconds = sum(one.seconds_left for one in todo)
        seconds += sum(60.0 * arms.bases[name].minutes for name in missing)
        confirm(recipe.name, seconds, arguments)
        for name, path in bases.items():
            build_base(path, arms.bases[name], say)
        for forked in (False, True):
            batch = [one for one in todo if bool(one.arm.fork) is forked]
            if code := play(batch, arguments.jobs, say):
                say(f"go on with: {resume_command(arguments)}")
                return code
        for one in planned if recipe.crossplay else ():
            play_each_other(one, recipe.crossplay, say)
    elif not any(one.started for one in planned):
        raise UserError(
            f"there is no run of {recipe.name} in {out}; leave out --plot-only to play them, or "
            "take the committed results by --from-results"
        )
    if arguments.save_results and not recipe.own_runs:
        save_results(planned, recipe)
    say(f"results: {draw(recipe, arms, planned, lengths, 'nano', results)}")
    return 0


def _run_7b(recipe: Recipe, arms: Arms, arguments: RecipeOptions) -> int:
    from azr_population.analysis.recipe_results import draw
    from azr_population.analysis.recipe_runs import azr_script, plan_azr_runs

    out = arguments.out or Path("runs/recipes/7b")
    names = chosen_arms(recipe, arms, arguments.arms)
    seeds = arguments.seeds or arms.scales["7b"].seeds
    planned = plan_azr_runs(recipe, arms, names, seeds, arguments.steps, out)
    missing = [one for one in planned if not one.finished]
    if arguments.dry_run:
        say(f"{len(missing)} of {len(planned)} runs are missing in {out}; nothing was written")
        return 0
    if missing and not arguments.plot_only:
        out.mkdir(parents=True, exist_ok=True)
        script = out / f"{recipe.name}.sh"
        text = azr_script(recipe, arms, missing, out)
        script.write_text(text, encoding="utf-8")
        print(text, end="")
        say(
            f"{len(missing)} runs are missing in {out}; nothing was run, because 7B needs an AZR "
            f"checkout and GPUs: AZR_HOME=... bash {script}"
        )
        return 0
    shortest = min(one.steps for one in planned)
    lengths = dict.fromkeys(names, shortest)  # compared at a step that all arms have
    results = results_folder(recipe, arguments, out)
    say(f"results: {draw(recipe, arms, planned, lengths, '7b', results)}")
    return 0


def _run_scripts(recipe: Recipe, arguments: RecipeOptions) -> int:
    """A recipe with programs of its own: its command lines, one after another; of them the last
    one draws."""
    results = results_folder(recipe, arguments, arguments.out or Path("runs/recipes/nano"))
    lines = recipe.scripts
    if arguments.from_results or arguments.plot_only:
        lines = lines[-1:]
        if arguments.from_results:
            results = recipe.folder / "results"
    if arguments.dry_run:
        for line in lines:
            say(f"would run {line.format(results=results)}")
        say(f"about {recipe.minutes:.0f} min; nothing was started")
        return 0
    if lines == recipe.scripts:
        confirm(recipe.name, 60.0 * recipe.minutes, arguments)
    results.mkdir(parents=True, exist_ok=True)
    for line in lines:
        typed = [part.format(results=results.absolute()) for part in shlex.split(line)]
        say(f"{recipe.name}: {shlex.join(typed)}")
        program = [sys.executable, str(recipe.folder / typed[0]), *typed[1:]]
        environment = {"OMP_NUM_THREADS": "1", **os.environ}
        if code := subprocess.run(program, env=environment, check=False).returncode:
            raise UserError(f"{typed[0]} of {recipe.name} failed (exit code {code})")
    say(f"results: {results}")
    return 0


def chosen_arms(recipe: Recipe, arms: Arms, wanted: str | None) -> tuple[str, ...]:
    """The recipe's arms, or those that `--arms` names."""
    names = tuple(name.strip() for name in wanted.split(",")) if wanted else recipe.arms
    for name in names:
        arms.find(name)
    return names


def results_folder(recipe: Recipe, arguments: RecipeOptions, out: Path) -> Path:
    """Where the results go: never into what is committed, unless `--save-results` asks for it."""
    if arguments.results:
        return Path(arguments.results)
    if arguments.save_results:
        return recipe.folder.resolve() / "results" / arguments.scale
    return out / "results" / recipe.name


def is_whole(recipe: Recipe, arms: Arms, arguments: RecipeOptions) -> bool:
    """Whether the whole recipe is asked for, or its first seeds, as many as every hypothesis has a
    planned test at."""
    from azr_population.analysis.recipes import seed_numbers

    if arguments.results or arguments.steps or arguments.arms:
        return False
    if not arguments.seeds:
        return True
    asked = list(seed_numbers(arguments.seeds))
    whole = list(seed_numbers(recipe.seeds or arms.scales[recipe.settings].seeds))
    planned = recipe.hypotheses and all(len(asked) in one.looks for one in recipe.hypotheses)
    return bool(planned) and asked == whole[: len(asked)]


def confirm(name: str, seconds: float, arguments: RecipeOptions) -> None:
    """Asks before the recipe plays for more than some minutes. Raises UserError: the answer is no,
    or nobody is there to be asked and `--yes` is not given."""
    if seconds <= _LONG or arguments.yes:
        return
    question = f"{name} plays for about {estimate([seconds])} of one core"
    if not sys.stdin.isatty():
        raise UserError(f"{question}; add --yes to play it, or --dry-run to see what it plays")
    if input(f"{question}. Play it? [y/N] ").strip().lower() not in ("y", "yes"):
        raise UserError(f"{name} was not started; --from-results draws the committed runs")


def resume_command(arguments: RecipeOptions) -> str:
    """The same command with --resume."""
    typed = ["azr-population", "recipe", arguments.name]
    typed += [word for pair in arguments.override for word in ("--override", pair)]
    for option in ("seeds", "steps", "arms", "out", "results"):
        if getattr(arguments, option) is not None:
            typed += [f"--{option}", str(getattr(arguments, option))]
    typed += ["--save-results"] * arguments.save_results
    return shlex.join([*typed, "--jobs", str(arguments.jobs), "--resume", "--yes"])


def print_list() -> None:
    """All recipes as a table."""
    from rich.console import Console
    from rich.table import Table

    from azr_population.analysis.recipes import read_arms, read_recipe, recipe_names

    arms = read_arms()
    table = Table(box=None, pad_edge=False)
    for heading in ("recipe", "paper", "arms", "one core, nano scale"):
        table.add_column(heading, overflow="fold")
    for name in recipe_names():
        recipe = read_recipe(name, arms)
        table.add_row(name, recipe.figure, " ".join(recipe.arms) or "-", recipe_time(recipe, arms))
    console = Console()
    if not console.is_terminal:
        console.width = 110
    console.print(table)
    console.print("runs are shared: an arm that one recipe has played is there for all others")


def recipe_time(recipe: Recipe, arms: Arms) -> str:
    """How long the recipe takes from nothing."""
    from azr_population.analysis.recipes import seed_numbers

    if "nano" not in recipe.scales:
        return "-"
    scale = arms.scales[recipe.settings]
    steps, seeds = recipe.steps or scale.steps, recipe.seeds or scale.seeds
    used = [arms.find(name) for name in recipe.arms]
    bases = {arm.base for arm in used if arm.base}
    played = sum(arm.seconds * (steps * arm.times - (arm.origin or ("", 0))[1]) for arm in used)
    origins = dict.fromkeys(arm.origin for arm in used if arm.origin)
    played += sum(arms.find(name).seconds * step for name, step in origins)
    seconds = played * scale.slower * len(seed_numbers(seeds)) + 60.0 * recipe.minutes
    return estimate([seconds, *(60.0 * arms.bases[name].minutes for name in bases)])


def estimate(seconds: Iterable[float]) -> str:
    """A sum of seconds as people say it: `40 min`, `2.5 h`."""
    total = sum(seconds)
    return f"{total / 60:.0f} min" if total < 5400 else f"{total / 3600:.1f} h"


def say(line: str) -> None:
    """Progress goes to standard error: what is asked for (tables, commands) can be piped."""
    print(line, file=sys.stderr, flush=True)
