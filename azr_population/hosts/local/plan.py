"""What a local run is going to be, told before anything is started: `train --dry-run`."""

from azr_population.config.schema import Config
from azr_population.domains.known import find_domain
from azr_population.engines.base_folder import context_of
from azr_population.engines.memory import size
from azr_population.errors import UserError
from azr_population.hosts.local.check import check_config
from azr_population.hosts.local.run_engine import (
    attempts,
    check_base,
    longest_row,
    memory,
    proposals,
)
from azr_population.method.config_check import replacement_line
from azr_population.method.members import Roster
from azr_population.method.population import founder_sources
from azr_population.runs.directory import RunDirectory, next_folder


def plan(config: Config) -> list[str]:
    """The run in lines: who plays, what a step is at most, what it needs of the memory. Raises
    UserError: what would also stop the run at its start, as far as it can be known here."""
    check_config(config)
    model, tokenizer = check_base(config)
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
        f"them; at most {population.batch_size * len(roster)} rows trained on "
        f"({population.batch_size} a member)",
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
    context, longest = context_of(model), longest_row(config, tokenizer)
    if context is not None and longest > context:
        lines.append(
            f"a row with {config.task.example_tasks} references of the greatest length would have "
            f"{longest} tokens, the base's context is {context}: fewer task.example_tasks are safer"
        )
    parts = memory(config, model, longest)
    listed = ", ".join(f"{name} {size(amount)}" for name, amount in parts.items() if amount)
    each = f" in each of {config.engine.workers} processes" if config.engine.workers > 1 else ""
    lines.append(
        f"memory on {config.engine.device}{each}: at most {size(sum(parts.values()))} beside "
        f"Python and its libraries ({listed})"
    )
    try:
        RunDirectory(folder).refuse_unless_new()
    except UserError as error:  # the run needs another folder; the plan holds all the same
        lines.append(str(error))
    return lines
