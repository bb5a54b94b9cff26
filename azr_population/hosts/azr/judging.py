"""AZR's reward manager, judging each proposal by the student that its teacher was matched with."""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from azr_population.domains.code.task_types import CODE_E, ParsedProposal, Task, TaskType
from azr_population.engines.engine import Completion
from azr_population.hosts.azr.azr_step import Step, completions
from azr_population.hosts.azr.executors import (
    PrefetchingExecutor,
    RecordingExecutor,
    evaluations,
    read_answer,
)
from azr_population.method.matchmaking import Match
from azr_population.method.phases import describe
from azr_population.method.proposals import Attempt, BufferAttempt, Proposal
from azr_population.method.rewards import UNPARSABLE, student_reward_of
from azr_population.referee import Reason

if TYPE_CHECKING:
    import torch

    from azr_population.hosts.azr.facade import PopulationGroup


class Judge:
    """Stands in the place of AZR's reward manager; prompts, parsing and scores stay its own.

    What it learns goes to the `step`: the proposals as rows, the attempts at AZR's own tasks as
    practice. A valid proposal is worth what the population says; to what is above 0 AZR adds its
    other rewards.
    """

    def __init__(self, reward_fn: Any, step: Step, group: PopulationGroup) -> None:
        self._step = step
        self._group = group
        # A patch may have wrapped the manager to hand it more arguments.
        wrapped = isinstance(reward_fn, functools.partial)
        self._arguments: dict[str, Any] = dict(reward_fn.keywords) if wrapped else {}
        self._manager = copy.copy(reward_fn.func if wrapped else reward_fn)
        self._estimate = self._manager._get_problem_generator_rewards_and_valid_programs
        self._data_dict = self._manager._get_data_dict
        self._batch: list[Proposal] = []
        self._verdicts = RecordingExecutor(None)
        self._executed: list[bool] = []
        self._ahead: PrefetchingExecutor | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """AZR's call: (reward tensor [rows, R], metrics, valid programs, correct predictions)."""
        phase, _, kind = (kwargs.get("problem_type") or "").partition("_")
        with self._running_ahead(kwargs.get("executor") if kind != CODE_E else None):
            if phase == "gen":
                return self._judge_proposals(kind, kwargs)
            manager = copy.copy(self._manager)
            if phase == "pred":
                manager._get_data_dict = self._prefetching(
                    kwargs["data"], self._data_dict, functools.partial(self._answers, kind)
                )
            result = manager(*args, **{**self._arguments, **kwargs})
        if phase == "pred":
            self._step.practice += self._practice(kind, result[0], kwargs["data"])
        return result

    def _practice(self, kind: str, tensor: torch.Tensor, data: Any) -> list[BufferAttempt]:
        """The attempts at AZR's own tasks. What they are paid is AZR's, unless a reward of another
        name is asked for, which then stands in the `tensor` [rows, R]."""
        config, practice = self._step.population.config, []
        reward = None if config.student_reward == "azr" else student_reward_of(config)
        written, values = completions(data), tensor.sum(dim=1).tolist()
        for row, (completion, value) in enumerate(zip(written, values, strict=True)):
            read, solved = value > UNPARSABLE, value > 0
            if reward:
                tensor[row] = 0.0
                tensor[row, len(completion.token_ids) - 1] = value = reward(read, solved)
            reason = _reason(read, solved)
            practice.append(BufferAttempt(completion, None, solved, reason, value, type=kind))
        return practice

    def _judge_proposals(self, kind: str, kwargs: Mapping[str, Any]) -> Any:
        data = kwargs["data"]
        self._batch = [
            Proposal(self._match(completion.slot, opponent), kind, completion, None)
            for completion, opponent in zip(
                completions(data, tokenizer=self._manager.tokenizer),
                data.non_tensor_batch["opponent"],
                strict=True,
            )
        ]
        self._verdicts, self._executed = RecordingExecutor(kwargs["executor"]), []
        manager = copy.copy(self._manager)
        manager._get_data_dict = self._prefetching(data, self._watched_data_dict, self._proposal)
        manager._get_problem_generator_rewards_and_valid_programs = self._matched_estimate
        result = manager(**{**self._arguments, **kwargs, "executor": self._verdicts})
        tensor: torch.Tensor = result[0]
        for index, row in enumerate(self._batch):
            # AZR pays one price, -0.5, wherever a reward is not above 0, and -1 without its format.
            if row.reward <= 0 and tensor[index].sum() > UNPARSABLE:
                tensor[index, len(row.completion.token_ids) - 1] = row.reward
            paid = float(tensor[index].sum())
            # Only where AZR has added something: its tensor is float32.
            if not math.isclose(paid, row.reward, rel_tol=1e-6):
                row.reward = paid
        self._step.rows += self._batch
        return result

    def _match(self, teacher: int, student: int) -> Match:
        matches = self._step.population.matches
        return next(m for m in matches if (m.teacher.slot, m.student.slot) == (teacher, student))

    @contextmanager
    def _running_ahead(self, executor: Any) -> Iterator[None]:
        """Inside, AZR's own executor is answered ahead; another is left alone, and so is that of
        code_e, whose programs AZR runs twice to see whether they differ."""
        if not PrefetchingExecutor.works_with(executor):
            yield
            return
        with PrefetchingExecutor(executor).answering() as self._ahead:
            try:
                yield
            finally:
                self._ahead = None

    def _watched_data_dict(self, *args: Any, **kwargs: Any) -> Any:
        """AZR's, which tells a proposal that does not parse and one that does not run alike."""
        before = self._verdicts.checked
        data_dict = self._data_dict(*args, **kwargs)
        self._executed.append(self._verdicts.checked > before)
        return data_dict

    def _prefetching(
        self,
        data: Any,
        read: Callable[..., Any],
        programs: Callable[..., Iterable[Callable[[Any], object]]],
    ) -> Callable[..., Any]:
        """In the place of AZR's method for one row: `read`, and before the first row what
        `programs(row, *its arguments)` calls of an executor, for all rows together."""
        to_come = self._ahead

        def data_dict(item: Any, *args: Any) -> Any:
            nonlocal to_come
            if to_come:
                ahead, to_come = to_come, None
                ahead.prefetch(
                    call for row in range(len(data)) for call in programs(data[row], *args)
                )
            return read(item, *args)

        return data_dict

    def _proposal(
        self, item: Any, kind: str, executor: Any, *rest: Any
    ) -> Iterable[Callable[[Any], object]]:
        """AZR checks a proposal while it reads it."""
        yield lambda asked: self._data_dict(item, kind, asked, *rest)

    def _answers(self, kind: str, item: Any, *args: Any) -> Iterable[Callable[[Any], object]]:
        """AZR executes answers to its tasks after it has read all of them."""
        read = self._data_dict(item, *args)
        if read["format_score"]:
            text = read["answer"]["snippet"] if kind == TaskType.CODE_F else read["answer"]
            yield from evaluations(kind, text, read.get("program", ""), read)

    def _prefetch(
        self, data_dicts: Any, valid: Sequence[int], written: Sequence[Completion]
    ) -> None:
        """Runs what the estimate is going to ask for, now that the students have written."""
        if not self._ahead:
            return
        calls: list[Callable[[Any], object]] = []
        for place, index in enumerate(valid):
            kind, task = self._batch[index].type, data_dicts[index]["answer"]
            for completion in written[place :: len(valid)]:
                text, read = read_answer(self._manager, kind, completion.text)
                if read or kind == TaskType.CODE_I:  # AZR runs a program on no input, too
                    calls += evaluations(kind, text, task["snippet"], task)
        self._ahead.prefetch(calls)

    def _matched_estimate(self, *args: Any, **kwargs: Any) -> Any:
        """In the place of AZR's difficulty estimate: the same, with the matched students."""
        data_dicts, n_samples = kwargs["data_dicts"], kwargs["n_samples"]
        valid = [index for index, data in enumerate(data_dicts) if data["code_validity"]]
        students = [self._batch[index].match.student.slot for index in valid]
        written: list[Completion] = []

        def judge_next(output: Any) -> None:
            written[:] = completions(output, students * n_samples, self._manager.tokenizer)
            self._prefetch(data_dicts, valid, written)

        # AZR repeats the list of prompts n_samples times.
        with self._group.routed(students * n_samples, judge_next) as group:
            for index in valid:
                if self._batch[index].type == CODE_E:
                    # AZR's estimate reads this key, which its own proposals do not have.
                    data_dicts[index]["answer"]["error"] = data_dicts[index]["answer"]["output"]
            rewards, programs = self._estimate(**{**kwargs, "rollout_actor_wg": group})
            for index in valid:
                data_dicts[index]["answer"].pop("error", None)
        for row, executed in zip(self._batch, self._executed, strict=True):
            row.reason = "invalid" if executed else "unparsable"
        for place, index in enumerate(valid):
            row, answer = self._batch[index], data_dicts[index]["answer"]
            row.parsed, row.task = _proposal_and_task(row.type, answer)
            row.reason = "ok"
            samples = written[place :: len(valid)]
            texts = [completion.text for completion in samples]
            verdicts = self._verdicts.judge(self._manager, row.type, answer, texts)
            row.attempts = [
                Attempt(completion, text, solved, _reason(text is not None, solved))
                for completion, (text, solved) in zip(samples, verdicts, strict=True)
            ]
        describe(self._batch, self._step.population.domain)
        self._step.population.reward(self._batch)
        for row, one in zip(self._batch, data_dicts, strict=True):
            rewards[one["uid"]]["accuracy"] = 0.0 if row.task is None else row.reward
        return rewards, programs


def _reason(read: bool, solved: bool) -> str:
    """The word for an attempt in which an answer was read, or none."""
    if not read:
        return "unparsable"
    return str(Reason.SOLVED if solved else Reason.WRONG)


def _proposal_and_task(kind: str, answer: Mapping[str, Any]) -> tuple[ParsedProposal, Task]:
    """Our record of one of AZR's valid programs."""
    several = kind == TaskType.CODE_F
    proposal = ParsedProposal(
        type=kind,
        program=answer["snippet"],
        inputs=tuple(answer["inputs"]) if several else (answer["input"],),
        message=answer.get("message", ""),
        imports=tuple(answer["imports"]),
    )
    outputs = tuple(answer["outputs"]) if several else (answer["output"],)
    return proposal, Task(**vars(proposal), outputs=outputs)
