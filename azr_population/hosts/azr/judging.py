"""AZR's reward manager, judging each proposal by the student that its teacher was matched with.

AZR judges one batch of proposals after the other, and for each waits for its programs and for the
answers that estimate its difficulty. The judge reads the proposals of all batches that have been
generated when AZR asks for the first verdict, has all estimates answered in one call, and hands out
what it has when AZR comes to a batch.
"""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from azr_population.domains.code.task_types import ParsedProposal, Task, TaskType
from azr_population.engines.engine import Completion, PromptBatch
from azr_population.hosts.azr.azr_step import AzrStepState
from azr_population.hosts.azr.batches import COMPLETION, prompt_rows
from azr_population.hosts.azr.executors import Call, StepExecutor, evaluations, read_answer
from azr_population.method.phases import measure_tasks
from azr_population.method.proposals import Attempt, Proposal
from azr_population.method.rewards import INVALID
from azr_population.referee import Reason

if TYPE_CHECKING:
    import torch

    from azr_population.hosts.azr.facade import PopulationWorkerGroup

ESTIMATE = "estimate"
"""First part of the names of the batches that estimate solve rates, instead of `gen`."""


@dataclass
class ParsedBatch:
    """A batch of proposals as AZR parsed it, with the attempts at the valid ones."""

    kind: str
    samples: int
    proposals: list[Proposal] = field(default_factory=list)
    data_dicts: list[dict[str, Any]] = field(default_factory=list)
    attempts: dict[int, tuple[Completion, str, bool]] = field(default_factory=dict)
    """(completion, the answer that AZR reads in it, whether there is one) by row of the estimate's
    batch: by sample, then by valid proposal, as AZR repeats prompts."""

    accuracies: list[float] = field(default_factory=list)
    """The accuracy of each proposal that AZR logs."""

    @property
    def valid(self) -> list[int]:
        """The places of the valid proposals."""
        return [index for index, data in enumerate(self.data_dicts) if data["code_validity"]]

    def batch(self, prompts: Sequence[Sequence[int]]) -> PromptBatch:
        """The attempts to come at the valid proposals, whose `prompts` these are. An attempt draws
        by its proposal's place, whatever becomes of the others."""
        starts = range(0, self.samples * len(self.proposals), len(self.proposals))
        numbers = [start + index for start in starts for index in self.valid]
        students = [self.proposals[index].match.student.slot for index in self.valid]
        return PromptBatch([*prompts] * self.samples, students * self.samples, numbers)


class PromptsCollected(Exception):
    """Replaces the workers to collect AZR's prompts: it is raised when AZR asks for completions."""

    world_size = 1
    prompts: list[list[int]]

    def generate_sequences(self, prompts: Any) -> Any:
        """veRL's method."""
        self.prompts = prompt_rows(prompts.batch)
        raise self


class Judge:
    """Replaces AZR's reward manager, whose prompts, parsing and scores it uses.

    It adds the proposals to `step.proposals` and the attempts at AZR's own tasks to
    `step.replayed`. A valid proposal gets the population's reward; AZR adds its other
    rewards if that is above 0. `banned_words` are those that AZR's trainer gives its manager.
    `expected` are the batches of proposals (veRL's DataProto, by name) that have been generated and
    that AZR brings later.
    """

    executor: StepExecutor

    def __init__(
        self,
        reward_fn: Any,
        step: AzrStepState,
        group: PopulationWorkerGroup,
        banned_words: Sequence[str] = (),
    ) -> None:
        self._step = step
        self._group = group
        # A patch may have wrapped the manager to hand it more arguments.
        wrapped = isinstance(reward_fn, functools.partial)
        self._arguments: dict[str, Any] = dict(reward_fn.keywords) if wrapped else {}
        self._manager = copy.copy(reward_fn.func if wrapped else reward_fn)
        self._banned_words = list(banned_words)
        self.expected: dict[str, Any] = {}
        self._parsed: dict[str, ParsedBatch] = {}

    def begin_step(self, executor: Any) -> None:
        """Forgets the last step; programs run on AZR's `executor` from here on."""
        self._parsed = {}
        self.executor = StepExecutor(executor)

    def run_ahead(self, name: str, data: Any) -> None:
        """Starts the programs in rows of a batch, which have just been written."""
        for item in data:
            if name.startswith("gen_"):  # AZR checks a proposal while it reads it
                self.executor.prefetch([functools.partial(self._read_row, name, item)])
            else:
                self.executor.prefetch(self._answers(name, item))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """AZR's call: (reward tensor [rows, R], metrics, valid programs, correct predictions)."""
        name = kwargs.get("problem_type") or ""
        phase, _, kind = name.partition("_")
        kwargs = {**self._arguments, **kwargs}
        if phase not in ("gen", "pred"):
            return self._manager(*args, **kwargs)
        kwargs["executor"] = self.executor
        if phase == "gen":
            return self._judge_proposals(name, kwargs)
        result = self._manager(*args, **kwargs)
        self._step.replayed += self._replayed(kind, result[0], kwargs["data"])
        return result

    def _replayed(self, kind: str, tensor: torch.Tensor, data: Any) -> list[Attempt]:
        """The attempts at AZR's own tasks, with AZR's rewards: `tensor` is [rows, R]."""
        attempts = []
        completions, rewards = data.non_tensor_batch[COMPLETION], tensor.sum(dim=1).tolist()
        for completion, value in zip(completions, rewards, strict=True):
            solved = value >= 1  # code_f_reward_type=accuracy pays for a part of the pairs too
            reason = _reason(value > INVALID, solved)
            attempts.append(Attempt(completion, None, solved, reason, value, type=kind))
        return attempts

    def _judge_proposals(self, name: str, kwargs: dict[str, Any]) -> Any:
        if name not in self._parsed:
            self._read_all({**self.expected, name: kwargs["data"]}, kwargs)
        parsed = self._parsed[name]
        read = iter(parsed.data_dicts)

        def data_dict(item: Any, kind: str, executor: Any, words: Any, uid: str, *more: Any) -> Any:
            """Replaces AZR's method for one row, which has been called before."""
            return {**next(read), "uid": uid}

        def estimate(**arguments: Any) -> Any:
            """Replaces AZR's difficulty estimate: the same, by the matched students."""
            parsed.data_dicts = arguments["data_dicts"]
            return self._matched_estimate(name, parsed, arguments)

        manager = copy.copy(self._manager)
        manager._get_data_dict = data_dict
        manager._get_problem_generator_rewards_and_valid_programs = estimate
        result = manager(**kwargs)
        tensor: torch.Tensor = result[0]
        result[1]["accuracy"] = parsed.accuracies
        for index, proposal in enumerate(parsed.proposals):
            # AZR pays one price, -0.5, wherever a reward is not above 0, and -1 without its format.
            if proposal.reward <= 0 and tensor[index].sum() > INVALID:
                tensor[index, len(proposal.completion.token_ids) - 1] = proposal.reward
            paid = float(tensor[index].sum())
            # Only where AZR has added something: its tensor is float32.
            if not math.isclose(paid, proposal.reward, rel_tol=1e-6):
                proposal.reward = paid
        self._step.proposals += parsed.proposals
        return result

    def _read_all(self, batches: Mapping[str, Any], kwargs: Mapping[str, Any]) -> None:
        """Reads the batches and has the valid proposals of all of them attempted in one call."""
        self.expected = {}
        self._parsed |= {
            name: self._read(name, data, kwargs["n_samples"]) for name, data in batches.items()
        }
        prompts_by_name: dict[str, PromptBatch] = {}
        for name in batches:
            parsed = self._parsed[name]
            if parsed.valid:
                prompts = self._prompts(name, parsed, kwargs)
                prompts_by_name[name.replace("gen", ESTIMATE)] = parsed.batch(prompts)
        if prompts_by_name:
            self._group.prefetch(prompts_by_name, self._on_attempt, validate=True)

    def _read(self, name: str, data: Any, samples: int) -> ParsedBatch:
        parsed = ParsedBatch(name.partition("_")[2], samples)
        matches = {(m.teacher.slot, m.student.slot): m for m in self._step.population.matches}
        written, opponents = (data.non_tensor_batch[name] for name in (COMPLETION, "opponent"))
        for item, completion, opponent in zip(data, written, opponents, strict=True):
            match = matches[completion.slot, opponent]
            proposal = Proposal(match, parsed.kind, self._with_text(completion), None)
            checked = self.executor.checked
            parsed.data_dicts.append(self._read_row(name, item, self.executor))
            # AZR checks the program of what parses.
            proposal.reason = "invalid" if self.executor.checked > checked else "unparsable"
            parsed.proposals.append(proposal)
        return parsed

    def _read_row(self, name: str, item: Any, executor: Any) -> dict[str, Any]:
        """Reads one row by AZR's method; AZR sets the uid."""
        banned = self._arguments.get("banned_assertion_keywords", [])
        return self._manager._get_data_dict(item, name, executor, self._banned_words, "", banned)

    def _prompts(
        self, name: str, parsed: ParsedBatch, kwargs: Mapping[str, Any]
    ) -> list[list[int]]:
        """Prompts of AZR's estimate [valid proposals], as token ids."""
        arguments = {key: kwargs[key] for key in kwargs if key.endswith("_type_counters")}
        arguments |= {"data_dicts": parsed.data_dicts, "problem_type": name, "n_samples": 1}
        collected = PromptsCollected()
        try:
            self._manager._get_problem_generator_rewards_and_valid_programs(
                **arguments, rollout_actor_wg=collected, executor=None
            )
        except PromptsCollected:
            if len(collected.prompts) != len(parsed.valid):  # or attempts get other members' tasks
                raise RuntimeError(
                    f"{name}: AZR's estimate asks {len(collected.prompts)} prompts for "
                    f"{len(parsed.valid)} valid proposals"
                ) from None
            return collected.prompts
        raise RuntimeError("AZR's difficulty estimate has asked nothing")

    def _answers(self, name: str, item: Any) -> Iterator[Call]:
        """AZR executes answers to its tasks after it has read all of them."""
        read, kind = self._read_row(name, item, None), name.partition("_")[2]
        if read["format_score"]:
            text = read["answer"]["snippet"] if kind == TaskType.CODE_F else read["answer"]
            yield from evaluations(kind, text, read.get("program", ""), read)

    def _on_attempt(self, name: str, row: int, completion: Completion) -> None:
        """Stores an attempt, a row of an estimate's batch, and runs what AZR will ask about it."""
        parsed = self._parsed[name.replace(ESTIMATE, "gen")]
        completion = self._with_text(completion)
        answer, read = read_answer(self._manager, parsed.kind, completion.text)
        parsed.attempts[row] = completion, answer, read
        task = parsed.data_dicts[parsed.valid[row % len(parsed.valid)]]["answer"]
        if read or parsed.kind == TaskType.CODE_I:  # AZR runs a program on no input, too
            self.executor.prefetch(evaluations(parsed.kind, answer, task["snippet"], task))

    def _with_text(self, completion: Completion) -> Completion:
        tokenizer = self._manager.tokenizer
        text = tokenizer.decode(completion.token_ids, skip_special_tokens=True)
        return replace(completion, text=text)

    def _matched_estimate(self, name: str, parsed: ParsedBatch, kwargs: Mapping[str, Any]) -> Any:
        with self._group.routed(name.replace("gen", ESTIMATE)) as group:
            rewards, programs = self._manager._get_problem_generator_rewards_and_valid_programs(
                **{**kwargs, "rollout_actor_wg": group}
            )
        for position, index in enumerate(parsed.valid):
            proposal, task = parsed.proposals[index], parsed.data_dicts[index]["answer"]
            proposal.parsed, proposal.task = _proposal_and_task(proposal.type, task)
            proposal.reason = "ok"
            for each in range(position, len(parsed.attempts), len(parsed.valid)):
                completion, answer, read = parsed.attempts[each]
                solved = self.executor.solved(proposal.type, answer, task)
                solved &= read or proposal.type != TaskType.CODE_F
                text = answer if read else None
                proposal.attempts.append(Attempt(completion, text, solved, _reason(read, solved)))
        measure_tasks(parsed.proposals, self._step.population.domain)
        self._step.population.reward(parsed.proposals)
        for proposal, data in zip(parsed.proposals, parsed.data_dicts, strict=True):
            parsed.accuracies.append(rewards[data["uid"]]["accuracy"])
            rewards[data["uid"]]["accuracy"] = 0.0 if proposal.task is None else proposal.reward
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
