"""Checks of a local run before anything is started, beyond the bounds of fields, and its dry run
(`train --dry-run`)."""

from azr_population.config.schema import Config, TaskConfig
from azr_population.domains.known import find_domain
from azr_population.engines.assembly import check_engine, check_settings
from azr_population.errors import UserError
from azr_population.hosts.local.run_engine import (
    attempts,
    check_base,
    engine_settings,
    proposals,
    replays,
)
from azr_population.hosts.loggers import check_loggers
from azr_population.method.advantages import BASELINES
from azr_population.method.config_check import check_population, replacement_line
from azr_population.method.members import Roster
from azr_population.method.population import founder_sources
from azr_population.runs.directory import RunDirectory, next_folder


def check_config(config: Config) -> None:
    """Refuses a run before anything is loaded, and imports what its dotted names name. Raises
    UserError: naming the key, the value and what would be accepted."""
    check_playing(config)
    check_loggers(config.logger.names)
    BASELINES.find(config.population.student_advantage)
    check_population(config.population, config.matchmaking, config.evolution, config.base.lora.rank)


def check_playing(config: Config) -> None:
    """The part of it that also holds for members measured after their run: engine, prompts, tasks.
    Raises UserError: as `check_config`."""
    check_engine(config.engine.name, config.engine.workers)
    check_settings(engine_settings(config))
    domain = find_domain(config.task.domain)
    domain.format(config.base.prompt_format)
    domain.wanted(config.task.types)
    domain.check(config.task)


def fill_in(tasks: TaskConfig) -> None:
    """Writes out what a configuration leaves to its domain: all of its types, all of its rules."""
    domain = find_domain(tasks.domain)
    tasks.types = domain.wanted(tasks.types)
    tasks.reject = list(domain.rules) if tasks.reject is None else tasks.reject


def plan(config: Config) -> list[str]:
    """The run in lines: who plays, what a step is at most, what it needs of the memory. Raises
    UserError: what would also stop the run at its start, as far as it can be known here."""
    check_config(config)
    model, _, memory = check_base(config)
    population, evals = config.population, config.eval
    folder = config.run.dir or next_folder(population.name)
    roster = Roster.make(population.teachers, population.students)
    weights = sum(parameter.numel() for parameter in model.parameters())
    lines = [
        f"{population.name} on {config.base.name}: {', '.join(member.name for member in roster)}; "
        f"{weights / 1e6:,.1f} million weights in {config.base.dtype}",
        f"{config.run.steps} steps from seed {config.seed}, into {folder}, a checkpoint every "
        f"{config.run.checkpoint_every}",
        f"a step: {proposals(population)} proposals, at most {attempts(population)} attempts at "
        f"them and {replays(population)} at earlier tasks; at most "
        f"{population.batch_size * len(roster)} rows trained on ({population.batch_size} a member)",
        replacement_line(config.evolution, population.teachers, population.students),
        *(
            f"{name} starts from {source}"
            for name, source in founder_sources(population.init_from, roster).items()
        ),
    ]
    if evals.every:
        kinds = len(find_domain(config.task.domain).wanted(config.task.types))
        lines.append(
            f"eval: {evals.tasks_per_type * kinds} tasks for each of {len(roster.students)} "
            f"members after the first step, every {evals.every}, after the last"
        )
    lines.append(memory)
    try:
        RunDirectory(folder).refuse_unless_new()
    except UserError as error:  # the run needs another folder; the plan holds all the same
        lines.append(str(error))
    return lines
