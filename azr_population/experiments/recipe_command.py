"""`azr-population recipe`: lists the recipes, or runs one and draws it."""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from azr_population.arguments import positive
from azr_population.errors import UserError
from azr_population.experiments.arms import (
    SCALES,
    Arm,
    Arms,
    read_arms,
    recipes_folder,
    seed_numbers,
)
from azr_population.experiments.recipe import Recipe, read_recipe, recipe_names

if TYPE_CHECKING:
    from azr_population.experiments.runs import PlannedRun


_LONG = 300.0
"""Seconds of one core that are played without a question."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("name", metavar="NAME", nargs="?", help="see --list")
    parser.add_argument("--list", action="store_true", help="all recipes, and how long they take")
    parser.add_argument(
        "--scale", choices=SCALES, default="nano", help="of the runs: on a CPU, or AZR's on GPUs"
    )
    parser.add_argument(
        "--seeds", type=_seeds, metavar="N|A-B", help="how many or which; default: the recipe's"
    )
    parser.add_argument("--steps", type=positive, metavar="N", help="default: the recipe's")
    parser.add_argument(
        "--arms", metavar="A,B", help="other arms than the recipe's, of recipes/arms.yaml"
    )
    parser.add_argument(
        "--with",
        nargs="+",
        default=[],
        metavar="KEY=VALUE",
        help="overrides of all arms, e.g. task.domain=puzzles; wants --out, a folder for such runs",
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="the runs' place (default runs/recipes/SCALE)"
    )
    parser.add_argument(
        "--results",
        type=Path,
        metavar="DIR",
        help="tables and figures (default OUT/results/NAME)",
    )
    parser.add_argument(
        "--record",
        action="store_true",
        help="write the recipe's own results/SCALE and keep the runs in recipes/runs, for a commit",
    )
    parser.add_argument(
        "--kept",
        action="store_true",
        help="play nothing: draw the runs that are finished in OUT or kept in recipes/runs",
    )
    parser.add_argument("--resume", action="store_true", help="go on with unfinished runs")
    parser.add_argument("--draw", action="store_true", help="run nothing, draw what there is")
    parser.add_argument(
        "--dry-run", action="store_true", help="print runs, time and folders, and stop"
    )
    parser.add_argument(
        "--yes", action="store_true", help=f"play also what takes more than {_LONG / 60:.0f} min"
    )
    parser.add_argument(
        "--jobs", type=positive, default=1, metavar="N", help="runs at a time (default 1)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Returns the exit code: 0, or 128 + the signal that stopped the runs."""
    arms = read_arms()
    if arguments.list or arguments.name is None:
        print_list(arms)
        return 0
    recipe = _with(read_recipe(arguments.name, arms), arguments)
    if arguments.record and not (recipes_folder().resolve().parent / "setup.py").is_file():
        raise UserError("--record writes into a checkout, and this is none; leave it out")
    if arguments.record and is_trial(arguments, is_planned_look(recipe, arms, arguments)):
        raise UserError(
            "--record is of the whole recipe, or of the seeds of a look that was planned; leave "
            "out --results, --steps, --seeds, --arms, --draw and --kept"
        )
    if arguments.scale not in recipe.scales:
        raise UserError(f"{recipe.name} has no {arguments.scale} scale")
    if recipe.scripts:
        return _run_scripts(recipe, arguments)
    if arguments.scale == "7b":
        return _run_7b(recipe, arms, arguments)
    return _run_nano(recipe, arms, arguments)


def _with(recipe: Recipe, arguments: argparse.Namespace) -> Recipe:
    """The recipe with what `--with` adds. Raises UserError where that would mix runs."""
    added = getattr(arguments, "with")
    if added and (arguments.kept or arguments.record or arguments.scale != "nano"):
        raise UserError("--with plays runs of its own at nano scale; no --kept, --record, --scale")
    if added and (arguments.out is None or recipe.scripts):
        raise UserError(
            "--with wants --out, and a recipe that plays runs: name a folder of its own"
        )
    return replace(recipe, overrides=(*recipe.overrides, *added))


def _run_nano(recipe: Recipe, arms: Arms, arguments: argparse.Namespace) -> int:
    from azr_population.experiments.evaluations import evaluate
    from azr_population.experiments.results import draw
    from azr_population.experiments.runner import Runner, build_base, play_each_other
    from azr_population.experiments.runs import (
        check_bases,
        check_runs,
        keep_runs,
        plan_runs,
        settings_folder,
    )

    out = arguments.out or Path("runs/recipes/nano")
    scale = recipe.scale(arms)
    steps = arguments.steps or recipe.steps or scale.steps
    seeds = arguments.seeds or recipe.seeds or scale.seeds
    chosen = chosen_arms(recipe, arms, arguments.arms)
    kept = settings_folder(recipes_folder() / "runs" / "nano", recipe)
    planned = plan_runs(recipe, arms, chosen, seeds, steps, out, kept if arguments.kept else None)
    results = results_folder(recipe, arguments, out)
    if not arguments.draw:
        if recipe.own_runs and arguments.jobs > 1:
            raise UserError(f"{recipe.name} measures time, so its runs go one by one: --jobs 1")
        check_runs(planned, arguments.resume)
        todo = [one for one in planned if not one.finished]
        if arguments.kept and todo:
            _refuse_to_play(recipe, todo)
        if arguments.dry_run:
            for one in todo:
                say(f"would play {one.name} to step {one.steps} in {one.path}")
        else:
            check_bases(todo)
        say(
            f"{recipe.name}: {len(planned)} runs of {steps} steps, "
            f"{len(planned) - len(todo)} of them finished already "
            f"({sum(one.is_kept for one in planned)} kept in recipes/runs); "
            f"about {estimate(one.seconds_left for one in todo)} of one "
            "core to go"
        )
        bases = dict.fromkeys(one.base for one in todo if one.base and not one.base.exists())
        seconds = sum(one.seconds_left for one in todo)
        seconds += sum(60.0 * arms.bases[base.name].minutes for base in bases)
        if arguments.dry_run:
            say(f"results would be in {results}; nothing was started")
            return 0
        confirm(recipe.name, seconds, arguments)
        for base in dict.fromkeys(one.base for one in todo if one.base):
            made = arms.bases[base.name]
            build_base(base, made.minutes, made.seed, say)
        for batch in (
            [one for one in todo if not one.arm.fork],
            [one for one in todo if one.arm.fork],
        ):
            code = Runner(arguments.jobs, say).play(batch)
            if code:
                say(f"go on with: {resume_command(arguments)}")
                return code
        if recipe.crossplay:
            for one in planned:
                play_each_other(one, recipe.crossplay, say)
    elif not any(one.started for one in planned):
        raise UserError(
            f"there is no run of {recipe.name} in {out}; leave out --draw to play them, or "
            "draw those of recipes/runs by --kept"
        )
    if arguments.record and not recipe.own_runs:
        keep_runs(planned, kept)
    say(f"results: {draw(recipe, arms, planned, steps, 'nano', results)}")
    evaluate(recipe, "nano", planned, results, say)
    return 0


def _refuse_to_play(recipe: Recipe, missing: Sequence[PlannedRun]) -> None:
    """`--kept` promises to take minutes, so it never plays a run."""
    if recipe.own_runs:
        reason = "because it measures the time on the machine at hand"
    else:
        names = [run.name for run in missing]
        reason = f"at {missing[0].steps} steps: {', '.join(names[:4])}{', ...' * (len(names) > 4)}"
    raise UserError(
        f"{len(missing)} runs of {recipe.name} are not kept, {reason}; leave out --kept to play "
        f"them ({estimate(run.seconds_left for run in missing)} of one "
        "core), or draw what there is by --draw"
    )


def _run_7b(recipe: Recipe, arms: Arms, arguments: argparse.Namespace) -> int:
    from azr_population.experiments.azr_commands import plan_azr_runs, write_commands
    from azr_population.experiments.evaluations import evaluate
    from azr_population.experiments.results import draw

    out = arguments.out or Path("runs/recipes/7b")
    seeds = arguments.seeds or arms.scales["7b"].seeds
    names = chosen_arms(recipe, arms, arguments.arms)
    planned = plan_azr_runs(recipe, arms, names, seeds, arguments.steps, out)
    missing = [one for one in planned if not one.finished]
    for line in recipe.at_7b:
        say(line)
    for benchmark in recipe.benchmarks:
        say("  " + ", ".join(f"{key} {value}" for key, value in benchmark.items()))
    if arguments.dry_run:
        say(f"{len(missing)} of {len(planned)} runs are missing in {out}; nothing was written")
        return 0
    if missing and not arguments.draw:
        path = write_commands(recipe, arms, missing, out)
        print(path.read_text(encoding="utf-8"), end="")
        say(
            f"{len(missing)} runs are missing in {out}; nothing was run, because 7B wants an AZR "
            f"checkout and GPUs: AZR_HOME=... bash {path}"
        )
        return 0
    steps = min(one.steps for one in planned)  # compared at what all arms are to have
    results = results_folder(recipe, arguments, out)
    say(f"results: {draw(recipe, arms, planned, steps, '7b', results)}")
    evaluate(recipe, "7b", planned, results, say)
    return 0


def _run_scripts(recipe: Recipe, arguments: argparse.Namespace) -> int:
    """A recipe with a programme of its own: its command lines, one after another."""
    if arguments.scale == "7b":
        for line in recipe.at_7b:
            say(line)
        return 0
    out = arguments.out or Path("runs/recipes/nano")
    results = results_folder(recipe, arguments, out)
    if arguments.dry_run:
        for line in recipe.scripts:
            say(f"would run {line.format(results=results)}")
        say(f"about {recipe.minutes:.0f} min; nothing was started")
        return 0
    confirm(recipe.name, 60.0 * recipe.minutes, arguments)
    results.mkdir(parents=True, exist_ok=True)
    for line in recipe.scripts:
        typed = [part.format(results=results.absolute()) for part in shlex.split(line)]
        say(f"{recipe.name}: {shlex.join(typed)}")
        program = [sys.executable, str(recipe.folder / typed[0]), *typed[1:]]
        environment = {"OMP_NUM_THREADS": "1", **os.environ}
        code = subprocess.run(program, env=environment, check=False).returncode
        if code:
            raise UserError(f"{typed[0]} of {recipe.name} failed (exit code {code})")
    say(f"results: {results}")
    return 0


def chosen_arms(recipe: Recipe, arms: Arms, wanted: str | None) -> tuple[str, ...]:
    """The recipe's arms, or those that `--arms` names."""
    if not wanted:
        return recipe.arms
    return tuple(arms.find(name.strip()).name for name in wanted.split(","))


def results_folder(recipe: Recipe, arguments: argparse.Namespace, out: Path) -> Path:
    """Where the results go: never into what is committed, unless `--record` says so."""
    if arguments.results:
        return Path(arguments.results)
    if arguments.record:
        return recipe.folder.resolve() / "results" / arguments.scale
    return out / "results" / recipe.name


def is_trial(arguments: argparse.Namespace, planned_look: bool = False) -> bool:
    """Whether less or other than the whole recipe is played; the seeds of a planned look are its
    own."""
    options = ("results", "steps", "arms", "draw", "kept", *(() if planned_look else ("seeds",)))
    return any(getattr(arguments, option) for option in options)


def is_planned_look(recipe: Recipe, arms: Arms, arguments: argparse.Namespace) -> bool:
    """Whether `--seeds` are the recipe's first ones, as many as every hypothesis has a look at."""
    if not arguments.seeds or not recipe.primary:
        return False
    asked = seed_numbers(arguments.seeds)
    whole = seed_numbers(recipe.seeds or recipe.scale(arms).seeds)
    first = list(asked) == list(whole)[: len(asked)]
    return first and all(len(asked) in primary.looks for primary in recipe.primary)


def confirm(name: str, seconds: float, arguments: argparse.Namespace) -> None:
    """Asks before the recipe plays for more than some minutes. Raises UserError: the answer is no,
    or nobody is there to be asked and `--yes` is not given."""
    if seconds <= _LONG or arguments.yes:
        return
    told = f"{name} plays for about {estimate([seconds])} of one core"
    if not sys.stdin.isatty():
        raise UserError(f"{told}; add --yes to play it, or --dry-run to see what it plays")
    if input(f"{told}. Play it? [y/N] ").strip().lower() not in ("y", "yes"):
        raise UserError(f"{name} was not started; --kept draws from the runs that are committed")


def resume_command(arguments: argparse.Namespace) -> str:
    """The same command with --resume."""
    typed = ["azr-population", "recipe", arguments.name]
    added = getattr(arguments, "with")
    typed += ["--with", *added] * bool(added)
    for option in ("seeds", "steps", "arms", "out", "results"):
        if getattr(arguments, option) is not None:
            typed += [f"--{option}", str(getattr(arguments, option))]
    typed += ["--record"] * arguments.record
    return shlex.join([*typed, "--jobs", str(arguments.jobs), "--resume", "--yes"])


def print_list(arms: Arms) -> None:
    """All recipes as a table."""
    # Imported late: every command of the command line has this module's arguments.
    from rich.console import Console
    from rich.table import Table

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
    if "nano" not in recipe.scales:
        return "-"
    scale = recipe.scale(arms)
    steps, seeds = recipe.steps or scale.steps, recipe.seeds or scale.seeds
    used: list[Arm] = [arms.find(name) for name in recipe.arms]
    bases = {arm.base for arm in used if arm.base}
    played = sum(arm.seconds * (steps * arm.times - (arm.origin or ("", 0))[1]) for arm in used)
    origins = dict.fromkeys(arm.origin for arm in used if arm.origin)
    played += sum(arms.find(name).seconds * step for name, step in origins)
    seconds = played * scale.slower * len(seed_numbers(seeds)) + 60.0 * recipe.minutes
    return estimate([seconds, 60.0 * sum(arms.bases[name].minutes for name in bases)])


def estimate(seconds: Iterable[float]) -> str:
    """A sum of seconds as people say it: `40 min`, `2.5 h`."""
    total = sum(seconds)
    return f"{total / 60:.0f} min" if total < 5400 else f"{total / 3600:.1f} h"


def say(line: str) -> None:
    """Progress goes to standard error: what is asked for (the list, commands) can be piped."""
    print(line, file=sys.stderr, flush=True)


def _seeds(text: str) -> str:
    try:
        seed_numbers(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is no number of seeds, nor A-B") from None
    return text
