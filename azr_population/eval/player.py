"""One member that can be asked by hand, with the referee beside it."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from azr_population.console.output import plain_output
from azr_population.console.show import card
from azr_population.domains.task import ParsedProposal, Task
from azr_population.engines.engine import Completion, Sampling
from azr_population.errors import UserError
from azr_population.eval.members import MemberSet, StoredMember, open_members
from azr_population.method.matchmaking import Match
from azr_population.method.members import Member
from azr_population.method.phases import grade, judge_proposal, read_attempts
from azr_population.method.proposals import Replay
from azr_population.runs.meanings import meaning

Record = dict[str, Any]


@dataclass
class Player:
    """A loaded member. What it writes comes back as records like those of `completions.jsonl`, with
    `outputs` or the `right` answer where they are known."""

    member: Member
    loaded: MemberSet
    how: Sampling
    """For `max_new_tokens` 0 stands for the format's own limit."""
    seed: int

    def __post_init__(self) -> None:
        self.context, self.config = self.loaded.context, self.loaded.plan.config
        self.domain, self.format = self.context.domain, self.context.format

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
        read_attempts(self.context, problem, [completion])
        grade([problem], self.context)
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
        window, name = self.loaded.context_length, self.member.name
        room = window - len(ids)
        if room < 1 or not ids:
            raise UserError(
                f"the prompt has {len(ids):,} tokens, and {name} reads 1 to {window - 1:,} and "
                "needs room for an answer; shorten it"
            )
        how = replace(self.how, max_new_tokens=min(self.how.limits(1)[0] or limit, room))
        (completions,) = self.context.engine.generate([prompt], [0], how, self.seed * 1_000_003 + 1)
        return [
            {
                "member": name,
                **judge(completion),
                "log_prob": sum(logs) / len(logs) if (logs := completion.logprobs) else None,
                "tokens": len(completion.token_ids),
                "finished": completion.finished,
                "prompt": prompt,
                "completion": completion.text,
            }
            for completion in completions
        ]


def print_records(player: Player, records: Sequence[Record], as_json: bool) -> None:
    """Prints completions as cards, or as JSON lines."""
    if as_json:
        print(*map(json.dumps, records), sep="\n")
        return
    console = plain_output()
    for row in records:
        console.print(card(row, player.domain.marks))


@contextmanager
def open_player(stored: StoredMember, how: Sampling, seed: int) -> Iterator[Player]:
    """The player for a member of a run (local or inside AZR), a PEFT folder, or a bare base; `how`
    and `seed` as of `Player`. Raises UserError: member and base do not fit together."""
    # Where the run sampled on a GPU, one member can be asked on the CPU.
    cpu = ["engine=torch", "engine.rollout=torch", "referee.workers=1"]
    with open_members([stored], cpu) as members:
        # Its own warning of a long prompt would stand beside ours.
        members.tokenizer.model_max_length = 1 << 40
        yield Player(members.load(stored), members, how, seed)
