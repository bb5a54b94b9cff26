"""Rewards of proposals and attempts."""

import inspect
from collections import Counter
from collections.abc import Callable, Container, Hashable, Iterable, Mapping, Sequence
from typing import Any

from azr_population.config.schema import MembersConfig, PopulationConfig
from azr_population.domains.task import Task
from azr_population.errors import UserError
from azr_population.method.proposals import Proposal, Replay
from azr_population.registry import Registry, finite_number

WRONG = -0.5
"""A wrong answer in the right format; AZR, equation 6."""
INVALID = -1.0
"""An answer in the wrong format (AZR, equation 6), and an invalid proposal, as in AZR's code; AZR's
paper gives -0.5 to one in the right format."""
SOLVED = 1.0

TEACHER_REWARDS: Registry[Callable[..., float]] = Registry(
    "population.teacher_reward", group="rewards"
)
"""Rewards of a valid task: functions of any of `ARGUMENTS`, by the names of their parameters."""

ARGUMENTS: Mapping[str, Callable[[Proposal, Container[Task]], Any]] = {
    "solve_rate": lambda proposal, buffer: proposal.solve_rate,
    "proposal": lambda proposal, buffer: proposal,
    "attempts": lambda proposal, buffer: tuple(proposal.attempts),
    "buffer": lambda proposal, buffer: buffer,
    "gold_probability": lambda proposal, buffer: proposal.gold_probability,
}
"""Arguments of a teacher's reward: the share of the matched student's attempts that solved the
task, the `Proposal`, the `Attempt`s at it, the buffer of earlier tasks, and the probability that
the student gives the task's answer, which is worked out only for rewards that take it. That is None
where the answer can be written in several ways."""


@TEACHER_REWARDS.register("learnability", "PopuLoRA as three readers report it; AZR, equation 4")
def learnability(solve_rate: float) -> float:
    """1 - solve rate, but 0 for a task that no attempt solved."""
    return 1.0 - solve_rate if solve_rate > 0 else 0.0


@TEACHER_REWARDS.register("adversarial", "zero-sum against the matched student; ours")
def adversarial(solve_rate: float) -> float:
    """1 - solve rate, also for tasks that nobody solves."""
    return 1.0 - solve_rate


@TEACHER_REWARDS.register("stock", "AZR's code, which departs from its equation 4 at both ends")
def stock(solve_rate: float) -> float:
    """1 - solve rate; -0.5 for a task that no attempt or every attempt solved."""
    return learnability(solve_rate) or WRONG


def student_reward(parsed: bool, solved: bool) -> float:
    """The reward of an attempt: 1 for a right answer, -0.5 for a wrong one, -1 for an unparsable
    one (AZR, equation 6)."""
    if not parsed:
        return INVALID
    return SOLVED if solved else WRONG


def count_copies(
    proposals: Sequence[Proposal],
    earlier: Iterable[Task],
    fingerprint: Callable[[str], Hashable],
) -> None:
    """Sets `copies`: the number of other proposals of the same type with the same program, by any
    teacher and with any input, plus one if the task itself is among `earlier`. Programs are the
    same if the domain's `fingerprint` says so."""

    def key(task: Task) -> tuple[str, Hashable]:
        return task.type, fingerprint(task.program) or task.program

    valid = [(proposal, proposal.task) for proposal in proposals if proposal.task is not None]
    keys = [key(task) for _, task in valid]
    counts = Counter(keys)
    asked = {(task.type, task.inputs) for _, task in valid}
    known = {(key(task), task.inputs) for task in earlier if (task.type, task.inputs) in asked}
    for (proposal, task), of_task in zip(valid, keys, strict=True):
        proposal.copies = counts[of_task] - 1 + ((of_task, task.inputs) in known)


def teacher_reward_of(config: MembersConfig) -> Callable[[Proposal, Container[Task]], float]:
    """The function (proposal, earlier tasks) -> reward that `population.teacher_reward` names.
    Raises UserError."""
    key = f"population.teacher_reward={config.teacher_reward}"
    function, names = TEACHER_REWARDS.find(config.teacher_reward), _arguments_of(config)
    if unknown := [name for name in names if name not in ARGUMENTS]:
        raise UserError(
            f"{key} takes {', '.join(unknown)}; a teacher's reward takes any of "
            f"{', '.join(ARGUMENTS)}",
            key="population.teacher_reward",
        )

    def reward(proposal: Proposal, buffer: Container[Task]) -> float:
        value = function(**{name: ARGUMENTS[name](proposal, buffer) for name in names})
        if (number := finite_number(value)) is None:  # NaN would spoil its group's advantages
            raise UserError(f"{key} gave {value!s:.60}, and a reward is a finite number", key=key)
        return number

    return reward


def _arguments_of(config: MembersConfig) -> list[str]:
    """The names of the parameters of the teachers' reward that have no default."""
    parameters = inspect.signature(TEACHER_REWARDS.find(config.teacher_reward)).parameters.values()
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [p.name for p in parameters if p.default is p.empty and p.kind not in several]


def takes_gold(config: MembersConfig) -> bool:
    """Whether the teachers' reward takes `gold_probability`."""
    return "gold_probability" in _arguments_of(config)


def reward_proposals(
    proposals: Sequence[Proposal], config: PopulationConfig, buffer: Container[Task] = ()
) -> None:
    """Sets the rewards of the proposals and of every attempt.

    Each copy (see `count_copies`) costs `duplicate_penalty`; a valid task is never worth less than
    an invalid proposal. The penalty is ours: without it teachers repeat the task that pays
    best.
    """
    reward_attempts(proposals)
    reward = teacher_reward_of(config)
    for proposal in proposals:
        if not proposal.judged:
            proposal.reward = 0.0
        elif proposal.solve_rate is None:
            proposal.reward = INVALID
        else:
            proposal.reward = reward(proposal, buffer) - config.duplicate_penalty * proposal.copies
            proposal.reward = max(INVALID, proposal.reward)


def reward_attempts(problems: Sequence[Proposal | Replay]) -> None:
    """Sets the rewards of every attempt."""
    for problem in problems:
        for attempt in problem.attempts:
            attempt.reward = student_reward(attempt.text is not None, attempt.solved)
