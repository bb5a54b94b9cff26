"""One proposal and the attempts at it, judged and rewarded by the functions of a run: an episode of
the environments for other libraries."""

from collections.abc import Iterable
from functools import cache
from typing import Any, cast

from azr_population.config.load import load_config
from azr_population.config.schema import PopulationConfig, TaskConfig
from azr_population.domains.code.domain import Code
from azr_population.domains.code.formats import ChatFormat
from azr_population.domains.task import Task
from azr_population.engines.engine import Completion
from azr_population.engines.text import TextEngine
from azr_population.method.config_check import check_reward
from azr_population.method.matchmaking import Match
from azr_population.method.members import Roster
from azr_population.method.phases import StepContext, grade, judge_proposal, read_attempts
from azr_population.method.rewards import count_copies, reward_proposals
from azr_population.referee import Referee, RefereeSettings


@cache
def judge() -> StepContext:
    """The referee, the code domain and the chat format: one pool of sandboxes for the process,
    whose workers end with it. Completions come from elsewhere, so it has no engine."""
    engine = TextEngine(cast(Any, None), None)
    return StepContext(engine, Referee(RefereeSettings()), Code(), ChatFormat())


@cache
def task_rules() -> TaskConfig:
    """Those of a run in the chat format (`base=hf`)."""
    return load_config(["base=hf", "base.path=."]).task


class Episode:
    """A proposal of a task of this type, read from `text`, then attempts at the task.

    Args:
        finished: whether the model ended the text, and not a limit of tokens.
        earlier: existing tasks; proposing one of them costs `duplicate_penalty`.
    """

    def __init__(
        self, type: str, text: str, finished: bool = True, earlier: Iterable[Task] = ()
    ) -> None:
        match = Match(*Roster.make(1, 1))
        completion = _completion(text, finished)
        self.proposal = judge_proposal(judge(), match, type, completion, task_rules())
        count_copies([self.proposal], earlier, judge().domain.fingerprint)

    def attempt(self, text: str, finished: bool = True) -> None:
        """Adds an attempt at the task; `reward` grades it."""
        read_attempts(judge(), self.proposal, [_completion(text, finished)])

    def reward(self, population: PopulationConfig) -> tuple[float, list[float]]:
        """The proposal's reward and each attempt's. If the task's own answer is not always right,
        the proposal is invalid and there are no attempts; if it could not be judged, it gets 0.
        Raises UserError: the reward takes what an episode does not know."""
        check_reward(population, judge().format)
        grade([self.proposal], judge())
        reward_proposals([self.proposal], population)
        return self.proposal.reward, [attempt.reward for attempt in self.proposal.attempts]


def _completion(text: str, finished: bool) -> Completion:
    return Completion(0, (), (), (), finished, text)
