"""AZR's reward manager, judging each proposal by the student that its teacher was matched with."""

from __future__ import annotations

import copy
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from azr_population.azr.facade import PopulationGroup
from azr_population.azr.verdicts import Verdicts
from azr_population.engines.engine import Completion
from azr_population.matchmaking import Match
from azr_population.selfplay.rewards import SOLVED, TEACHER_REWARDS
from azr_population.selfplay.rows import Answer, Row
from azr_population.tasks.task import Task, TaskType

INVERTED = "inverse"
"""AZR's `generation_accuracy_convertion` under which the accuracy is 1 - the solve rate."""


class Judge:
    """Stands in the place of AZR's reward manager; prompts, parsing and scores stay its own.

    `rows` collects the proposals of the step. The reward of a valid proposal is AZR's own, from
    `teacher_reward` of the matched student's solve rate in place of AZR's accuracy.
    """

    def __init__(self, reward_fn: Any, teacher_reward: str, group: PopulationGroup) -> None:
        self.rows: list[Row] = []
        self.solved: list[tuple[int, bool, float]] = []
        """(slot of the student, solved, reward) of each training row of the step."""
        self._adversarial = teacher_reward == "adversarial"
        self._value = TEACHER_REWARDS.find(teacher_reward).function
        self._group = group
        # A patch may have wrapped the manager to hand it more arguments.
        wrapped = isinstance(reward_fn, functools.partial)
        self._arguments: dict[str, Any] = dict(reward_fn.keywords) if wrapped else {}
        self._manager = copy.copy(reward_fn.func if wrapped else reward_fn)
        self._estimate = self._manager._get_problem_generator_rewards_and_valid_programs
        self._matches: Sequence[Match] = ()
        self._own: list[Row] = []
        self._always_solved: set[int] = set()

    def begin_step(self) -> None:
        """Forgets the rows of the last step."""
        self.rows, self.solved = [], []

    def expect(self, matches: Sequence[Match]) -> None:
        """Tells the match of every row of the next batch of proposals."""
        self._matches = matches

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """AZR's call: (reward tensor [rows, R], metrics, valid programs, correct predictions)."""
        problem_type = kwargs.get("problem_type") or ""
        if problem_type.startswith("gen"):
            return self._judge_proposals(problem_type, kwargs)
        result = self._manager(*args, **{**self._arguments, **kwargs})
        if problem_type.startswith("pred"):
            data, rewards = kwargs["data"], result[0].sum(dim=1)
            for slot, reward in zip(data.non_tensor_batch["member"], rewards.tolist(), strict=True):
                self.solved.append((int(slot), reward > 0, reward))
        return result

    def _judge_proposals(self, problem_type: str, kwargs: Mapping[str, Any]) -> Any:
        data = kwargs["data"]
        kind = TaskType(problem_type.removeprefix("gen_"))
        self._always_solved = set()
        self._own = [
            Row(match, kind, completion, None)
            for match, completion in zip(self._matches, _completions(data), strict=True)
        ]
        manager = self._manager
        manager._get_problem_generator_rewards_and_valid_programs = self._matched_estimate
        before = manager.generation_reward_config
        manager.generation_reward_config = copy.deepcopy(before)
        manager.generation_reward_config.generation_accuracy_convertion = INVERTED
        try:
            result = manager(**{**self._arguments, **kwargs})
        finally:
            manager.generation_reward_config = before
            del manager._get_problem_generator_rewards_and_valid_programs
        tensor: torch.Tensor = result[0]
        for index, row in enumerate(self._own):
            if self._adversarial and index in self._always_solved and tensor[index].sum() > -1:
                # AZR pays -0.5 where the accuracy is 0; zero-sum is 1 - the solve rate.
                tensor[index] = 0.0
            row.reward = float(tensor[index].sum())
        self.rows += self._own
        return result

    def _matched_estimate(self, *args: Any, **kwargs: Any) -> Any:
        """In the place of AZR's difficulty estimate: the same, with the matched students."""
        data_dicts, n_samples = kwargs["data_dicts"], kwargs["n_samples"]
        valid = [index for index, one in enumerate(data_dicts) if one["code_validity"]]
        students = [self._own[index].match.student.slot for index in valid]
        verdicts = Verdicts(kwargs["executor"])
        # AZR repeats the list of prompts n_samples times.
        with self._group.routed(students * n_samples) as group:
            witness = _Witness(group)
            rewards, programs = self._estimate(
                **{**kwargs, "rollout_actor_wg": witness, "executor": verdicts}
            )
        for place, index in enumerate(valid):
            row, one = self._own[index], data_dicts[index]
            solve_rate = 1.0 - float(rewards[one["uid"]]["accuracy"])
            if solve_rate == SOLVED:
                self._always_solved.add(index)
            row.task = _task(row.type, one["answer"])
            row.reason = "ok"
            texts = [
                self._manager.tokenizer.decode(ids, skip_special_tokens=True)
                for ids in witness.responses[place :: len(valid)]
            ]
            judged = verdicts.judge(self._manager, row.type, one["answer"], texts)
            row.answers = [
                Answer(
                    Completion(row.match.student.slot, (), tuple(ids), (), "", True),
                    text,
                    solved,
                    "ok" if solved else "wrong",
                    SOLVED if solved else -0.5,
                )
                for ids, (text, solved) in zip(
                    witness.responses[place :: len(valid)], judged, strict=True
                )
            ]
            rewards[one["uid"]]["accuracy"] = self._value(solve_rate)
        for index, row in enumerate(self._own):
            if row.task is None:
                row.reason = "invalid"
                rewards[data_dicts[index]["uid"]]["accuracy"] = 0.0
        return rewards, programs


class _Witness:
    """The matched students, for one difficulty estimate; remembers what they wrote."""

    def __init__(self, group: PopulationGroup) -> None:
        self._group = group
        self.world_size = group.world_size
        self.responses: list[list[int]] = []

    def generate_sequences(self, prompts: Any) -> Any:
        output = self._group.generate_sequences(prompts)
        self.responses = [
            ids[:count].tolist()
            for ids, count in zip(
                output.batch["responses"], map(int, self._group.generated), strict=True
            )
        ]
        return output


def _completions(data: Any) -> list[Completion]:
    """The rows' responses, as far as records need them."""
    width = data.batch["responses"].shape[1]
    counts = data.batch["attention_mask"][:, -width:].sum(dim=1).tolist()
    return [
        Completion(int(slot), (), tuple(ids[: int(count)].tolist()), (), "", True)
        for slot, ids, count in zip(
            data.non_tensor_batch["member"], data.batch["responses"], counts, strict=True
        )
    ]


def _task(kind: TaskType, answer: Mapping[str, Any]) -> Task:
    """Our record of one of AZR's valid programs."""
    several = kind is TaskType.CODE_F
    return Task(
        type=kind,
        program=answer["snippet"],
        inputs=tuple(answer["inputs"]) if several else (answer["input"],),
        outputs=tuple(answer["outputs"]) if several else (answer["output"],),
        message=answer.get("message", ""),
        imports=tuple(answer["imports"]),
    )
