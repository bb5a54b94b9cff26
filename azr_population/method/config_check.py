"""Checks of a plan, and its lines in a dry run, in both hosts, before anything is loaded."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from azr_population.config.schema import EvolutionConfig, MembersConfig
from azr_population.domains.format import Format
from azr_population.domains.known import DOMAINS
from azr_population.domains.task import ParsedProposal, Task
from azr_population.engines.engine import Completion
from azr_population.engines.optimizers import moments
from azr_population.errors import UserError
from azr_population.method.callbacks import call_own, own_callbacks
from azr_population.method.evolution import number_replaced
from azr_population.method.matchmaking import Match
from azr_population.method.members import Roster
from azr_population.method.population import Population, founder_sources
from azr_population.method.proposals import Attempt, Proposal
from azr_population.method.record import StepRecords
from azr_population.method.rewards import (
    INVALID,
    takes_gold,
    teacher_reward_of,
)
from azr_population.method.run_plan import RunPlan
from azr_population.registry import own_code
from azr_population.weights.breeding import dry_run, get_operator, usable_operators
from azr_population.weights.founders import check_founders

Check = Callable[[RunPlan], None]
"""Raises UserError for what a run cannot work with: the key, the value and what is accepted."""


def faults(plan: RunPlan, *more: Check) -> Iterator[UserError]:
    """The first fault of each of `CHECKS` and of the host's checks, with keys of a local run."""
    for check in (*CHECKS, *more):
        try:
            check(plan)
        except UserError as error:
            yield error


def check_domain(plan: RunPlan) -> None:
    """Asks a domain of the user's, and its format, for what a run asks them, once."""
    key, domain, format = plan.config.task.domain, plan.domain, plan.format
    if key in DOMAINS:  # ours have tests
        return
    with own_code("task.domain", key):
        for type in domain.types:
            prompt = format.propose_prompt(type)
            lengths = [format.max_new_tokens(type, phase) for phase in ("propose", "solve")]
            if not isinstance(prompt, str) or min(lengths) < 1:
                raise TypeError(f"prompt and lengths of {type} are {prompt!r:.40} and {lengths}")
            format.parse_proposal(type, "")
            format.parse_answer(type, "")
        evaluated = bool(plan.config.eval.every)
        for task in domain.eval_tasks(1, 1, list(domain.types)) if evaluated else ():
            format.solve_prompt(task)
            format.parse_answer(task.type, format.write_answer(task))
            domain.measure(task.program)
            domain.fingerprint(task.program)


def check_population(plan: RunPlan) -> None:
    """Checks the settings of a population against each other. Bounds of single fields are checked
    in `config/`."""
    members, evolution = plan.config.population, plan.config.evolution
    rank = plan.engine.lora.rank
    check_founders(founder_sources(members.init_from, plan.roster).values(), rank)
    # A reward may be the user's own; a mistake in it is found before the run, not after hours.
    reward = teacher_reward_of(members)
    for solved in (0, 1, 2):
        proposal = _made_up(solved)
        for proposal.gold_probability in (None, 0.5):
            reward(proposal, ())
    weights = evolution.operators
    smallest = _smallest_replaced(evolution, members.teachers, members.students)
    for name in weights:
        get_operator(name)
    if not smallest:
        weights = dict.fromkeys(weights, 0.0)
    else:
        usable_operators(weights, smallest - number_replaced(evolution, smallest))
    try:
        dry_run(weights, evolution.options, rank)
    except UserError as error:
        raise UserError(f"evolution: {error}", key="evolution.options") from error


def _made_up(solved: int) -> Proposal:
    """A valid proposal with two attempts."""
    match, done = Match(*Roster.make(1, 1)), Completion(1, (1,), (2,), (-1.0,), True)
    task = Task("code_o", "def f(x):\n    return x", ("1",), ("1",))
    parsed = ParsedProposal(task.type, task.program, task.inputs)
    attempts = [Attempt(done, "1", number < solved, type=task.type) for number in range(2)]
    return Proposal(match, task.type, done, parsed, task, "ok", attempts=attempts)


def check_callbacks(plan: RunPlan) -> None:
    """Makes the user's own callbacks and calls each once on a step that nobody played."""
    callbacks = own_callbacks(plan.config.callbacks)
    if not callbacks:
        return
    population, proposals = Population(plan.config, plan.domain), [_made_up(1)]
    for callback in callbacks:
        call_own(callback, "updated", population, proposals, ())
        records = StepRecords({"step": 1}, [], [], [], [])
        call_own(callback, "recorded", population, proposals, records)


def check_reward(members: MembersConfig, format: Format) -> None:
    """Raises UserError: the teachers' reward takes what prompts of this format do not give."""
    name = members.teacher_reward
    if takes_gold(members) and type(format).gold_answer is Format.gold_answer:
        raise UserError(
            f"population.teacher_reward={name} takes gold_probability, and an answer to these "
            f"prompts ({type(format).__name__}) has a chain of thought before it, so its "
            "probability is unknown; take solve_rate, or in a local run base.prompt_format=nano",
            key="population.teacher_reward",
        )


CHECKS: tuple[Check, ...] = (
    check_domain,
    check_population,
    lambda plan: check_reward(plan.config.population, plan.format),
    check_callbacks,
)
"""The checks of both hosts, in their order."""


def reward_line(members: MembersConfig) -> str:
    """A sentence: what the teachers' reward pays."""
    reward = teacher_reward_of(members)
    unsolved, half, solved = (reward(_made_up(attempts), ()) for attempts in range(3))
    return (
        f"population.teacher_reward={members.teacher_reward}: a valid task earns {unsolved:g} if "
        f"no attempt solves it, {half:g} if half of them do, {solved:g} if all do; an invalid "
        f"proposal {INVALID:g}"
    )


def _smallest_replaced(evolution: EvolutionConfig, *sizes: int) -> int:
    """The size of the smallest sub-population in which members are replaced, which takes two; 0 if
    there is none."""
    replaces = evolution.interval and evolution.replace_fraction
    return min((size for size in sizes if size > 1 and replaces), default=0)


def evolution_note(evolution: EvolutionConfig, teachers: int, students: int) -> str | None:
    """A note if hyperparameters cannot evolve, or if at every replacement all members but one of a
    sub-population are protected newborns, so that fitness has no choice; otherwise None."""
    sizes = {"teacher": teachers, "student": students}
    for name, config in (evolution.hyperparameters or {}).items():
        if not _smallest_replaced(evolution, *(sizes[role] for role in config.roles)):
            return (
                f"evolution.hyperparameters.{name}: members keep the {name} they draw, because "
                f"no {' or '.join(config.roles)} is replaced"
            )
    smallest = _smallest_replaced(evolution, teachers, students)
    if not smallest:
        return None
    lifetimes = evolution.interval * smallest / number_replaced(evolution, smallest)
    if lifetimes > evolution.grace_period:
        return None
    return (
        f"evolution.grace_period={evolution.grace_period} leaves no choice of a victim: "
        f"with {smallest} members and evolution.interval={evolution.interval} it has "
        f"to be below {lifetimes:g}"
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


def population_lines(plan: RunPlan, base: str) -> Iterator[str]:
    """The first lines of the dry runs of both hosts: members on their `base`, their evolution,
    rewards and learning rates."""
    config, engine = plan.config, plan.engine
    members, population = config.population, Population(config, plan.domain)
    weights = plan.layout.architecture.weights / 1e6 if plan.layout else None
    size = f"; {weights:,.1f} million weights in {engine.dtype}" if weights else ""
    yield f"{members.name} on {base}: {', '.join(engine.names)}{size}"
    yield replacement_line(config.evolution, members.teachers, members.students)
    yield reward_line(members)
    for name, source in founder_sources(members.init_from, plan.roster).items():
        yield f"{name} starts from {source}"
    rates: dict[str, set[float]] = {}
    settings_by_slot = population.hyperparameters()
    for member in population.roster:
        rates.setdefault(f"{member.role}s", set()).add(settings_by_slot[member.slot].lr)
    optimizer, _ = moments(engine.learner.optimizer)
    listed = ", ".join(
        f"{role} " + " to ".join(f"{rate:.3g}" for rate in sorted({min(each), max(each)}))
        for role, each in rates.items()
    )
    cap = engine.importance_sampling_cap
    weighted = f"importance weights truncated at {cap:g}" if cap else "no importance weights"
    yield (
        f"{optimizer}'s steps: {listed}; rank {engine.lora.rank}, alpha {engine.lora.alpha:g}, "
        f"{weighted}, seed {config.seed}"
    )


def plan_page(lines: Iterable[str], refused: Sequence[str], option: str) -> list[str]:
    """A dry run's page: the lines of the plan and reasons why it cannot start; `option` is the one
    that asked for the page."""
    last = (
        "nothing was started, and nothing would be before that is mended"
        if refused
        else f"nothing was started; leave out {option} to play"
    )
    return [*lines, *(f"refused: {reason}" for reason in refused), last]
