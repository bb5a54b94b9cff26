"""What no run could work with, local or inside AZR: refused before anything is loaded."""

from pathlib import Path

from azr_population.config.schema import (
    BaseConfig,
    EvolutionConfig,
    MatchmakingConfig,
    MembersConfig,
)
from azr_population.errors import UserError
from azr_population.method.advantages import ADVANTAGES
from azr_population.method.matchmaking import Matchmaker
from azr_population.method.members import Roster
from azr_population.method.population import founder_sources
from azr_population.method.replacement import PopulationBasedTraining
from azr_population.method.rewards import student_reward_of, teacher_reward_of
from azr_population.weights.breeding import dry_run, get_operator
from azr_population.weights.founders import check_founders


def check_population(
    members: MembersConfig, matchmaking: MatchmakingConfig, evolution: EvolutionConfig, rank: int
) -> None:
    """Checks what a population is made from; `rank` is that of its adapters. Bounds are not looked
    at: see `setting.check_fields`. Raises UserError: naming the key as a local run has it, the
    value and what would be accepted."""
    roster = Roster.make(members.teachers, members.students)
    check_founders(founder_sources(members.init_from, roster).values(), rank)
    teacher_reward_of(members)
    student_reward_of(members)(True, False)
    ADVANTAGES.find(members.advantage)
    Matchmaker(matchmaking)
    check_evolution(evolution, min(members.teachers, members.students), rank)


def check_evolution(evolution: EvolutionConfig, smallest: int, rank: int) -> None:
    """Checks the `evolution` group; `smallest` counts the members of the smaller sub-population,
    and those of one are never replaced. Raises UserError."""
    step = PopulationBasedTraining(evolution)
    weights = evolution.operators
    for name in weights:
        get_operator(name)
    if evolution.interval == 0 or smallest < 2:
        dry_run(dict.fromkeys(weights, 0.0), evolution.options, rank)
        return
    used = [get_operator(name) for name, weight in weights.items() if weight > 0]
    if not used:
        raise UserError(
            "evolution.operators are all 0; weigh one, or set evolution.interval=0",
            key="evolution.operators",
        )
    survivors = max(smallest - max(1, step.replaced(smallest)), evolution.elites)
    if all(operator.parents > survivors for operator in used):
        raise UserError(
            f"evolution.operators: all of {', '.join(operator.name for operator in used)} need two "
            f"parents, but of {smallest} members only {survivors} survive; weigh a mutation",
            key="evolution.operators",
        )
    try:
        dry_run(weights, evolution.options, rank)
    except UserError as error:
        raise UserError(f"evolution: {error}", key="evolution.options") from error


def all_protected_note(evolution: EvolutionConfig, smallest: int) -> str | None:
    """A line for a run in which fitness chooses no victim, because at every replacement all members
    but one are too young to go. None for any other run. Arguments: see `check_evolution`."""
    lifetimes = evolution.interval * smallest
    if not evolution.interval or smallest < 2 or lifetimes > evolution.grace_period:
        return None
    return (
        f"evolution.grace_period={evolution.grace_period} leaves no choice of a victim: "
        f"with {smallest} members and evolution.interval={evolution.interval} it has "
        f"to be below {lifetimes}"
    )


def replacement_line(evolution: EvolutionConfig, teachers: int, students: int) -> str:
    """When how many are replaced, in words."""
    smallest = min(teachers, students)
    if not evolution.interval or smallest < 2:
        return "nobody is replaced"
    if note := all_protected_note(evolution, smallest):
        return note
    step = PopulationBasedTraining(evolution)
    counts = {"teachers": teachers, "students": students}
    replaced = " and ".join(f"{step.replaced(n)} of {n} {role}" for role, n in counts.items())
    mix = [name for name, weight in evolution.operators.items() if weight > 0]
    return f"every {evolution.interval} steps {replaced} replaced, by {len(mix)} operators"


def check_made(base: BaseConfig) -> None:
    """Refuses the base of `base=smollm2` where nobody has made it; of others, see `base_folder`.
    Raises UserError: with the command that makes it."""
    path = base.path or ""
    if base.name == "smollm2" and path.startswith(".") and not Path(path).is_dir():
        raise UserError(
            f"base.path={path} is not there yet; make it by `azr-population base smollm2`, or give "
            "its folder",
            key="base.path",
        )
