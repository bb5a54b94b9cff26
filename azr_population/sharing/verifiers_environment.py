"""A run's tasks as a taskset of `verifiers` (v1), and self-play that starts from them.

Imported by the packages that `azr-population export --to verifiers` writes; it needs `verifiers`
(Python 3.11 or later). Prompts, judge and rewards are those of a run in the chat format.
"""

import asyncio
import json
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import verifiers.v1 as vf
from pydantic import Field
from verifiers.v1.harnesses.null import NullHarnessConfig

from azr_population.config.schema import PopulationConfig
from azr_population.domains.code.task_types import Task, TaskType
from azr_population.sharing.episode import Episode, judge

# A plain chat, whose client may run on this machine: what models write runs in the referee only.
_CHAT = vf.AgentConfig(harness=NullHarnessConfig(id="null"), runtime=vf.SubprocessConfig())


class SelfPlayData(vf.TaskData):
    """One task; see `export.distinct_tasks`."""

    type: str
    program: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    message: str = ""

    @property
    def task(self) -> Task:
        """The domain's task."""
        return Task(TaskType(self.type), self.program, self.inputs, self.outputs, self.message)


class SelfPlayTask(vf.Task[SelfPlayData]):
    """Worth 1 where the referee calls the answer right, else 0."""

    @vf.reward(weight=1.0)
    async def right(self, trace: vf.Trace) -> float:
        """The last reply's answer, judged in the sandbox."""
        answer = judge().format.parse_answer(self.data.type, trace.last_reply)
        if answer is None:
            return 0.0
        grade, questions = judge().domain.grade, [(self.data.task, [answer])]
        ((verdict,),) = await asyncio.to_thread(grade, questions, judge().referee)
        return float(verdict.solved)


class SelfPlayTaskset(vf.Taskset[SelfPlayTask, vf.TasksetConfig]):
    """The tasks of `FILE`, one JSON object a line."""

    FILE: ClassVar[Path]

    def load(self) -> Iterator[SelfPlayTask]:
        """Yields the tasks in the file's order."""
        fields = set(SelfPlayData.model_fields)
        with self.FILE.open(encoding="utf-8") as lines:
            for line in lines:
                row = {name: value for name, value in json.loads(line).items() if name in fields}
                data = SelfPlayData(**row)
                prompt = judge().format.solve_prompt(data.task)
                yield SelfPlayTask(data.model_copy(update={"prompt": prompt}), self.config.task)


_RUN = PopulationConfig()
"""The defaults of a local run."""


class SelfPlayEnvConfig(vf.EnvConfig):
    """The seats, and what a run calls `population.samples_per_task` and so on."""

    proposer: vf.AgentConfig = _CHAT
    solver: vf.AgentConfig = _CHAT
    samples_per_task: int = Field(_RUN.samples_per_task, ge=1)
    teacher_reward: str = _RUN.teacher_reward
    duplicate_penalty: float = Field(_RUN.duplicate_penalty, ge=0)


class SelfPlayEnv(vf.Env[SelfPlayEnvConfig]):
    """Every task starts an episode: the proposer is shown the task and asked for another one of its
    type, and the solver attempts what it proposed. A failed model call leaves the episode without
    rewards; `verifiers` may then retry it."""

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
        if episode.proposal.task is not None:
            prompted = _ask(task, format.solve_prompt(episode.proposal.task))
            runs = (agents.solver.run(prompted) for _ in range(self.config.samples_per_task))
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
        if (rate := episode.proposal.solve_rate) is not None:
            proposed.record_metric("solve_rate", rate)

    @cached_property
    def _known(self) -> set[Task]:
        return {task.data.task for task in self.taskset.load()}


def _ask(task: vf.Task[SelfPlayData], prompt: str) -> vf.Task:
    return vf.Task(vf.TaskData(idx=task.data.idx, prompt=prompt))
