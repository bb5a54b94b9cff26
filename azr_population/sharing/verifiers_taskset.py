"""A taskset of `verifiers` (v1) over a file of tasks: chat prompts, and the referee as reward.

Imported by the packages that `azr-population export --to verifiers` writes; it needs `verifiers`
(Python 3.11 or later). Proposing: `verifiers_environment.py`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import ClassVar

import verifiers.v1 as vf

from azr_population.domains.code.domain import Code
from azr_population.domains.code.formats import ChatFormat
from azr_population.domains.code.task_types import Task, TaskType
from azr_population.referee import Referee, RefereeSettings


class SelfPlayData(vf.TaskData):
    """One task; see `sharing/tasks.py`."""

    type: str
    program: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    message: str = ""

    @property
    def task(self) -> Task:
        """As the domain knows it."""
        return Task(TaskType(self.type), self.program, self.inputs, self.outputs, self.message)


class SelfPlayTask(vf.Task[SelfPlayData]):
    """Worth 1 where the referee calls the answer right, else 0."""

    @vf.reward(weight=1.0)
    async def right(self, trace: vf.Trace) -> float:
        """The last reply's answer, judged in the sandbox."""
        answer = ChatFormat().parse_answer(TaskType(self.data.type), trace.last_reply)
        if answer is None:
            return 0.0
        asked = Code().question(self.data.task, (answer,))
        ((grade,),) = await asyncio.to_thread(_referee().grade, [asked])
        return float(grade.solved)


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
                prompt = ChatFormat().solve_prompt(data.task)
                yield SelfPlayTask(data.model_copy(update={"prompt": prompt}), self.config.task)


@cache
def _referee() -> Referee:
    """One pool of sandboxes for the process; its workers end with it."""
    return Referee(RefereeSettings())
