"""One member that can be asked by hand, with the referee beside it."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from azr_population.config.schema import Config
from azr_population.console.output import plain_output
from azr_population.console.show import card, not_there
from azr_population.domains.domain import Domain
from azr_population.domains.format import Format
from azr_population.domains.task import ParsedProposal, Task
from azr_population.engines.engine import Completion, Sampling
from azr_population.errors import UserError
from azr_population.eval.members import StoredMember, find_members, open_members
from azr_population.method.matchmaking import Match
from azr_population.method.members import Member, Role
from azr_population.method.phases import StepContext, judge_attempts, judge_proposal
from azr_population.method.proposals import Replay
from azr_population.printable import printable
from azr_population.runs.meanings import meaning

Record = dict[str, Any]


@dataclass(frozen=True)
class Player:
    """A member in slot 0 of an engine. What it writes comes back as records like those of
    `completions.jsonl`, with `outputs` or the `right` answer where they are known."""

    name: str
    context: StepContext
    window: int
    """Tokens that the base reads, prompt and completion together."""
    config: Config
    how: Sampling
    """For `max_new_tokens` 0 stands for the format's own limit."""
    seed: int

    member = Member("member", Role.AGENT, 0)

    @property
    def domain(self) -> Domain:
        """The kind of tasks."""
        return self.context.domain

    @property
    def format(self) -> Format:
        """The format of the prompts."""
        return self.context.format

    def ask(self, prompt: str) -> list[Record]:
        """Completions of any prompt. One that asks for a proposal is judged as one."""
        for type in self.domain.types:
            if prompt == self.format.propose_prompt(type):
                return self.propose(type)
        limit = max(self.format.max_new_tokens(type, "propose") for type in self.domain.types)
        return self._records(prompt, limit, lambda completion: {})

    def propose(self, type: str) -> list[Record]:
        """Proposals of this type, judged as in a run."""
        prompt = self.format.propose_prompt(type)
        limit = self.format.max_new_tokens(type, "propose")
        return self._records(prompt, limit, partial(self._judged, type))

    def solve(self, type: str, program: str, inputs: Sequence[str]) -> list[Record]:
        """Attempts at a task of the user's, which may be one that a run would refuse. Raises
        UserError: the program does not run on the inputs, or they are too few."""
        if not inputs:
            raise UserError("a task needs --input: the arguments of f(...)")
        rules = self.config.task.model_copy(update={"reject": [], "max_program_chars": 10**6})
        proposal = ParsedProposal(type, program, tuple(inputs))
        (task,) = self.domain.judge([proposal], self.context.referee, rules)
        if not isinstance(task, Task):
            raise UserError(f"this is not a {type} task ({task}): {meaning(task)}")
        prompt, limit = self.format.solve_prompt(task), self.format.max_new_tokens(type, "solve")
        return self._records(prompt, limit, partial(self._graded, task))

    def _judged(self, type: str, completion: Completion) -> Record:
        fields = {"type": type, "phase": "propose"}
        match = Match(self.member, self.member)
        proposal = judge_proposal(self.context, match, type, completion, self.config.task)
        if proposal.task is None:
            return {**fields, "verdict": "refused", "reason": proposal.reason}
        pairs = zip(proposal.task.inputs, proposal.task.outputs, strict=True)
        runs = [self.domain.call(*pair) for pair in pairs]
        return {**fields, "verdict": "valid", "reason": "ok", "outputs": runs}

    def _graded(self, task: Task, completion: Completion) -> Record:
        fields = {"type": task.type, "phase": "solve"}
        problem = Replay(self.member, task.type, task)
        judge_attempts(self.context, problem, [completion])
        # None where the task itself could not be judged.
        attempt = problem.attempts[0] if problem.attempts else None
        if attempt and attempt.solved:
            return {**fields, "verdict": "solved", "reason": attempt.reason}
        right = {"right": answer} if (answer := self.domain.answer(task)) else {}
        reason = attempt.reason if attempt else problem.reason
        return {**fields, "verdict": "failed", "reason": reason, **right}

    def _records(
        self, prompt: str, limit: int, judge: Callable[[Completion], Record]
    ) -> list[Record]:
        (ids,) = self.context.engine.encode([prompt])
        room = self.window - len(ids)
        if room < 1 or not ids:
            raise UserError(
                f"the prompt has {len(ids):,} tokens, and {self.name} reads 1 to "
                f"{self.window - 1:,} and needs room for an answer; shorten it"
            )
        how = replace(self.how, max_new_tokens=min(self.how.limits(1)[0] or limit, room))
        (completions,) = self.context.engine.generate([prompt], [0], how, self.seed * 1_000_003 + 1)
        return [
            {
                "member": self.name,
                **judge(completion),
                "log_prob": sum(logs) / len(logs) if (logs := completion.logprobs) else None,
                "tokens": len(completion.token_ids),
                "finished": completion.finished,
                "prompt": prompt,
                "completion": completion.text,
            }
            for completion in completions
        ]


def task_type(player: Player, name: str | None = None) -> str:
    """The type of that name, or the domain's first. Raises UserError: there is none."""
    types = list(player.domain.types)
    if name is not None and name not in types:
        names = ", ".join(types)
        raise UserError(f"{printable(name)} is not a type of task; choose from {names}")
    return name or types[0]


def print_records(player: Player, records: Sequence[Record], as_json: bool) -> None:
    """Prints completions as cards, or as JSON lines."""
    if as_json:
        print(*map(json.dumps, records), sep="\n")
        return
    console = plain_output()
    for row in records:
        console.print(card(row, player.domain.marks))


@contextmanager
def open_player(
    path: Path, member: str | None, base: Path | None, format: str | None, how: Sampling, seed: int
) -> Iterator[Player]:
    """The player for a member of a run (local or inside AZR), a PEFT folder, or a bare base.

    Args:
        path: the address of the member, of its run, or of the base.
        member: its name, if `path` is a run; `base` for the base without any.
        base: the base's folder, in place of the one that the member names.
        format: as `base.prompt_format`; by default the run's, or the base's own.
        how, seed: as of `Player`.

    Raises UserError: one of them is not there, or they do not fit together.
    """
    stored = _named(find_members(path, base), member, path)
    # Where the run sampled on a GPU, one member can be asked on the CPU.
    cpu = ["engine=torch", "engine.rollout=torch", "referee.workers=1"]
    with open_members([stored], cpu, format) as members:
        members.load(stored)
        # Its own warning of a long prompt would stand beside ours.
        members.tokenizer.model_max_length = 1 << 40
        context, config = members.context, members.plan.config
        yield Player(stored.name, context, members.context_length, config, how, seed)


def _named(stored: Sequence[StoredMember], name: str | None, path: Path) -> StoredMember:
    """The member of that name; without a name the only one beside the base."""
    by_name = {member.name: member for member in stored}
    if name in by_name:
        return by_name[name]
    if name is None and len(stored) <= 2:
        return stored[-1]
    if name is None:
        raise UserError(f"name one of the members of {path}: {', '.join(by_name)}")
    raise not_there(f"member {name}", str(path), by_name, str(name))
