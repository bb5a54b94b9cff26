"""Checks of settings that no run can work with, in either host, before anything is loaded."""

from azr_population.config.schema import EvolutionConfig, MatchmakingConfig, MembersConfig
from azr_population.errors import UserError
from azr_population.method.matchmaking import Matchmaker
from azr_population.method.members import Roster
from azr_population.method.population import founder_sources
from azr_population.method.replacement import FITNESS, number_replaced
from azr_population.method.rewards import student_reward_of, teacher_reward_of
from azr_population.weights.breeding import dry_run, get_operator, usable_operators
from azr_population.weights.founders import check_founders


def check_population(
    members: MembersConfig, matchmaking: MatchmakingConfig, evolution: EvolutionConfig, rank: int
) -> None:
    """Checks the settings of a population against each other; `rank` is the adapters'. Bounds of
    single fields are checked in `config/`. Raises UserError: it has the key of a local run, the
    value and what is accepted."""
    roster = Roster.make(members.teachers, members.students)
    check_founders(founder_sources(members.init_from, roster).values(), rank)
    teacher_reward_of(members)
    student_reward_of(members)(True, False)
    Matchmaker(matchmaking)
    FITNESS.find(evolution.fitness)
    weights = evolution.operators
    smallest = _smallest_replaced(evolution, members.teachers, members.students)
    for name in weights:
        get_operator(name)
    if not smallest:
        weights = dict.fromkeys(weights, 0.0)
    else:
        replaced = max(1, number_replaced(evolution, smallest))
        usable_operators(weights, max(smallest - replaced, evolution.elites))
    try:
        dry_run(weights, evolution.options, rank)
    except UserError as error:
        raise UserError(f"evolution: {error}", key="evolution.options") from error


def _smallest_replaced(evolution: EvolutionConfig, *sizes: int) -> int:
    """The size of the smallest sub-population in which members are replaced, which takes two; 0 if
    there is none."""
    return min((size for size in sizes if size > 1 and evolution.interval), default=0)


def evolution_note(evolution: EvolutionConfig, teachers: int, students: int) -> str | None:
    """A note if hyperparameters cannot evolve, or if at every replacement all members but one of a
    sub-population are protected newborns, so that fitness has no choice; otherwise None."""
    of_role = {"teacher": teachers, "student": students}
    for name, config in (evolution.hyperparameters or {}).items():
        if not _smallest_replaced(evolution, *(of_role[role] for role in config.roles)):
            return (
                f"evolution.hyperparameters.{name}: members keep the {name} they draw, because "
                f"no {' or '.join(config.roles)} is replaced"
            )
    smallest = _smallest_replaced(evolution, teachers, students)
    lifetimes = evolution.interval * smallest
    if not smallest or lifetimes > evolution.grace_period:
        return None
    return (
        f"evolution.grace_period={evolution.grace_period} leaves no choice of a victim: "
        f"with {smallest} members and evolution.interval={evolution.interval} it has "
        f"to be below {lifetimes}"
    )


def replacement_line(evolution: EvolutionConfig, teachers: int, students: int) -> str:
    """A sentence: when members are replaced, and how many."""
    if not _smallest_replaced(evolution, teachers, students):
        return "nobody is replaced"
    if note := evolution_note(evolution, teachers, students):
        return note
    counts = {"teachers": teachers, "students": students}
    replaced = " and ".join(
        f"{number_replaced(evolution, n)} of {n} {role}" for role, n in counts.items() if n > 1
    )
    mix = [name for name, weight in evolution.operators.items() if weight > 0]
    return f"every {evolution.interval} steps {replaced} replaced, by {len(mix)} operators"
