"""Self-play as an environment of `verifiers` (v1): a proposer's and a solver's seat.

Every task of the taskset starts an episode: the proposer is shown the task and asked for another
one of its type, and the solver attempts what it proposed. Prompts, judge and rewards are those of a
run in the chat format.
"""

import asyncio
from functools import cached_property

import verifiers.v1 as vf
from pydantic import Field
from verifiers.v1.harnesses.null import NullHarnessConfig

from azr_population.config.schema import PopulationConfig
from azr_population.domains.task import Task
from azr_population.sharing.episode import Episode, judge
from azr_population.sharing.verifiers_taskset import SelfPlayData

# A plain chat, whose client may run on this machine: what models write runs in the referee only.
_CHAT = vf.AgentConfig(harness=NullHarnessConfig(id="null"), runtime=vf.SubprocessConfig())


class SelfPlayEnvConfig(vf.EnvConfig):
    """The seats, and what a run calls `population.samples_per_task` and so on."""

    proposer: vf.AgentConfig = _CHAT
    solver: vf.AgentConfig = _CHAT
    samples_per_task: int = Field(4, ge=1)
    teacher_reward: str = "adversarial"
    duplicate_penalty: float = Field(0.3, ge=0)


class SelfPlayEnv(vf.Env[SelfPlayEnvConfig]):
    """A failed model call leaves the episode without rewards; `verifiers` may then retry it."""

    async def run(self, task: vf.Task[SelfPlayData], agents: vf.Agents) -> None:
        """Plays one proposal and `samples_per_task` attempts at it."""
        type, format = task.data.type, judge().format
        prompt = format.propose_prompt(type, [task.data.task])
        proposed = await agents.proposer.run(_ask(task, prompt))
        if proposed.has_error:
            return
        episode = await asyncio.to_thread(
            Episode, type, proposed.last_reply, not proposed.is_truncated, self._known
        )
        attempts: list[vf.Trace] = []
        if episode.row.task is not None:
            asked = _ask(task, format.solve_prompt(episode.row.task))
            runs = (agents.solver.run(asked) for _ in range(self.config.samples_per_task))
            attempts = await asyncio.gather(*runs)
            if any(attempt.has_error for attempt in attempts):
                return
        for attempt in attempts:
            episode.attempt(attempt.last_reply, not attempt.is_truncated)
        population = PopulationConfig(
            teacher_reward=self.config.teacher_reward,
            duplicate_penalty=self.config.duplicate_penalty,
        )
        reward, rewards = await asyncio.to_thread(episode.reward, population)
        proposed.record_reward(self.config.teacher_reward, reward)
        for attempt, value in zip(attempts, rewards, strict=False):  # none of an unsteady task
            attempt.record_reward("azr", value)
        if (rate := episode.row.solve_rate) is not None:
            proposed.record_metric("solve_rate", rate)

    @cached_property
    def _known(self) -> set[Task]:
        return {task.data.task for task in self.taskset.load()}


def _ask(task: vf.Task[SelfPlayData], prompt: str) -> vf.Task:
    return vf.Task(vf.TaskData(idx=task.data.idx, prompt=prompt))
