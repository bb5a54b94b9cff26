"""`demo`, `train`, `resume`: play a population."""

from collections.abc import Sequence
from pathlib import Path

import rich_click as click

from azr_population.cli.app import FILE, app, flag, overrides_argument, run_argument
from azr_population.registry import trust

# An eval of three times the usual tasks, at the first step and the last, each sampled once: so few
# steps move its score by about as much as 60 tasks err.
DEMO = (
    "population=4t4s base=nano population.batch_size=48 run.steps=32 eval.every=32 "
    "eval.tasks_per_type=60 eval.samples=1 run.snapshot_every=8 run.dir=runs/demo seed=1"
)

TRAIN = """\
Start a run.

Co-evolves populations of LoRA adapters by self-play. Overrides are Hydra's; any field can be set
(population.batch_size=96), and --config prints them all.

\b
  azr-population train population=4t4s base=nano run.steps=20 seed=1
  azr-population train population=2t2s evolution=none matchmaking=uniform
  azr-population train base=hf base.path=/models/coder engine=torch_cuda

Several seeds:

\b
  for seed in 1 2 3; do azr-population train seed=$seed run.dir=runs/4t4s/seed_$seed; done

Groups of the configuration:

\b
"""


def _groups() -> str:
    """The groups of the configuration with their choices, from their files."""
    files: dict[str, list[str]] = {}
    for file in sorted((Path(__file__).parents[1] / "config").glob("*/*.yaml")):
        files.setdefault(file.parent.name, []).append(file.stem)
    return "".join(f"  {name:<12} {' '.join(choices)}\n" for name, choices in files.items())


@app.command()
@overrides_argument
def demo(overrides: Sequence[str]) -> int:
    """Co-evolve 4 teachers and 4 students for 32 steps on the CPU.

    Writes runs/demo; overrides are those of train.

    \b
      azr-population demo
      azr-population demo run.steps=100 run.dir=runs/long
    """
    return _start([*DEMO.split(), *overrides])


@app.command(help=TRAIN + _groups())
@overrides_argument
@flag("--config", help="print the configuration with its meaning, and stop")
@click.option(
    "--config-file", type=FILE, metavar="FILE", help="what --config printed, or a run's config.yaml"
)
@flag("--dry-run", help="print members, samples and memory, and stop")
def train(overrides: Sequence[str], config: bool, config_file: Path | None, dry_run: bool) -> int:
    return _start(overrides, config, config_file, dry_run)


def _start(
    overrides: Sequence[str],
    show_config: bool = False,
    config_file: Path | None = None,
    dry_run: bool = False,
) -> int:
    from azr_population.config.load import config_from_file, load_fork

    settings = config_from_file(config_file, overrides) if config_file else load_fork(overrides)
    if not (show_config or dry_run):
        from azr_population.hosts.local.run import train as play

        return play(settings, typed=overrides).exit_code
    from azr_population.hosts.local.check import check_config

    trust(settings)
    check_config(settings)
    if show_config:
        from azr_population.config.explained import explained

        print(explained(settings), end="")
    else:
        from azr_population.hosts.local.check import plan

        print(*plan(settings), "nothing was started; leave out --dry-run to play", sep="\n")
    return 0


@app.command()
@run_argument
@overrides_argument
def resume(path: str, overrides: Sequence[str]) -> int:
    """Continue a run from its last checkpoint.

    \b
      azr-population resume runs/demo
      azr-population resume runs/demo run.steps=64
    """
    from azr_population.hosts.local.run import resume as play

    return play(path, overrides).exit_code
