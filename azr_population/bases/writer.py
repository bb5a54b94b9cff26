"""A base without members, asked in a format: proposals and answers as in a run."""

from collections.abc import Sequence
from pathlib import Path

import torch

from azr_population.domains.code.formats import FORMATS
from azr_population.domains.code.task import Task, TaskType
from azr_population.domains.format import read_answer
from azr_population.engines.assembly import EngineSettings, text_engine
from azr_population.engines.engine import Completion, Sampling
from azr_population.engines.rollouts import RolloutSettings
from azr_population.weights.adapter import LoraSpec

_ROWS = 64
"""Rows decoded at once: the logits of a large vocabulary are the largest part of a step."""


class Writer:
    """Completions of the bare base; the same seed gives the same ones."""

    def __init__(self, folder: str | Path, format: str, seed: int) -> None:
        self.format = FORMATS.find(format).function()
        # The engine of a run with one adapter that adds nothing: its factor B is zero.
        settings = EngineSettings(
            str(folder),
            ("base",),
            LoraSpec(1, 1.0, ("all-linear",)),
            dtype="bfloat16" if self.format.chat else "float32",
            rollout=RolloutSettings(rows=_ROWS),
        )
        drawn = [torch.Generator().manual_seed(0)]
        self._engine = text_engine(settings, drawn, self.format.chat)
        self._seed = seed

    def propose(self, type: TaskType, n: int) -> list[Completion]:
        """`n` proposals at temperature 1."""
        sampling = Sampling(self.format.max_new_tokens(type, "propose"), n=1)
        return self._write([self.format.propose_prompt(type)] * n, sampling)

    def solve(self, tasks: Sequence[Task], attempts: int, greedy: bool) -> list[list[str | None]]:
        """Parsed answers to each task, at temperature 1 or greedy; None where the form is wrong."""
        if not tasks:
            return []
        type = tasks[0].type
        sampling = Sampling(
            self.format.max_new_tokens(type, "solve"), 0.0 if greedy else 1.0, n=attempts
        )
        written = self._write([self.format.solve_prompt(task) for task in tasks], sampling)
        answers = [read_answer(self.format, type, completion) for completion in written]
        return [answers[i : i + attempts] for i in range(0, len(answers), attempts)]

    def _write(self, prompts: Sequence[str], sampling: Sampling) -> list[Completion]:
        self._seed += 1
        groups = self._engine.generate(prompts, [0] * len(prompts), sampling, self._seed)
        return [completion for group in groups for completion in group]
