"""Chooses the completions of a step that are kept, and writes them to `completions.jsonl`.

People read that file to see why proposals are refused and how tasks are solved; nothing is computed
from it. A record has

    step, phase         `propose` or `solve`
    member, generation  the writer, before any replacement at the end of the step
    opponent            the other member of the match; null for an attempt at a task of AZR's own
    type                of task, one of the domain's
    verdict, reason     `valid` or `refused` for a proposal, `solved` or `failed` for an attempt;
                        the reason is the rule's or the referee's
    solve_rate          of a valid proposal: the share of attempts that solved it
    reward, advantage   the advantage is null if it was not trained on or taught nothing
    log_prob            mean log-probability (natural) of the completion's tokens, end of sequence
                        included, under the sampler at temperature 1; inside AZR the actor's old
                        log-probability, null for attempts at proposals
    tokens, finished    finished: ended by itself, not at the token limit
    prompt, completion  as the model saw and wrote them; `cut` counts the characters removed from
                        the middle of a longer text
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from azr_population.method.callbacks import Callback
from azr_population.method.population import Population
from azr_population.method.proposals import Attempt, Proposal
from azr_population.method.record import StepRecords

FIRST = 1000
"""Most completions kept of the first step, which is logged whole if it fits."""
LONGEST = 16_000
"""Characters that are kept of a prompt, and of a completion."""

Record = dict[str, Any]


@dataclass
class CompletionLog(Callback):
    """Keeps `per_step` completions of each step (0: none), and up to `FIRST` of the first."""

    per_step: int
    tokenizer: Any
    _lines: list[Record] = field(default_factory=list)

    def updated(
        self, population: Population, proposals: Sequence[Proposal], replayed: Sequence[Attempt]
    ) -> None:
        """Runs before replacement, because a line has its writer's generation."""
        if not self.per_step:
            return
        step = population.step
        by_slot = {member.slot: member for member in population.roster}
        written: list[tuple[Proposal | Attempt, Record]] = [
            (proposal, _proposal(proposal)) for proposal in proposals
        ]
        written += [
            (a, _attempt(a, proposal.type, proposal.match.teacher.name))
            for proposal in proposals
            for a in proposal.attempts
        ]
        written += [(attempt, _attempt(attempt, attempt.type, None)) for attempt in replayed]
        for sample, record in written:
            writer = by_slot[sample.completion.slot]
            record |= {"member": writer.name, "generation": writer.generation}
        count = max(FIRST, self.per_step) if step == 1 else self.per_step
        generator = population.streams.numpy("completions", step)
        chosen = choose_balanced([record for _, record in written], count, generator)
        self._lines = [
            {"step": step, **written[i][1], **self._words(written[i][0])} for i in chosen
        ]

    def recorded(
        self, population: Population, proposals: Sequence[Proposal], records: StepRecords
    ) -> None:
        records.completions += self._lines

    def _words(self, sample: Proposal | Attempt) -> Record:
        completion, logs = sample.completion, sample.completion.logprobs
        prompt = self.tokenizer.decode(
            list(completion.prompt_ids),
            skip_special_tokens=False,
            clean_up_tokenization_spaces=False,
        )
        text = completion.text or self.tokenizer.decode(
            list(completion.token_ids),
            skip_special_tokens=True,
            clean_up_tokenization_spaces=False,
        )
        words = {"prompt": prompt, "completion": text}
        cut = sum(max(0, len(text) - LONGEST) for text in words.values())
        return {
            "reward": sample.reward,
            "advantage": sample.advantage,
            "log_prob": sum(logs) / len(logs) if logs else None,
            "tokens": len(completion.token_ids),
            "finished": completion.finished,
            **{name: _shortened(text) for name, text in words.items()},
            **({"cut": cut} if cut else {}),
        }


def choose_balanced(
    records: Sequence[Record], count: int, generator: np.random.Generator
) -> list[int]:
    """Ascending indices of up to `count` records, balanced over verdicts, and within a verdict over
    members, task types and reasons; ties are broken at random."""
    order: list[int] = generator.permutation(len(records)).tolist()
    for keys in (("verdict", "member", "type", "reason"), ("verdict",)):
        counts: Counter[tuple[str, ...]] = Counter()
        rank = {}
        for index in order:
            kind = tuple(records[index][key] for key in keys)
            rank[index] = counts[kind]
            counts[kind] += 1
        order.sort(key=rank.__getitem__)
    return sorted(order[:count])


def _proposal(proposal: Proposal) -> Record:
    return {
        "phase": "propose",
        "opponent": proposal.match.student.name,
        "type": str(proposal.type),
        "verdict": "refused" if proposal.task is None else "valid",
        "reason": proposal.reason,
        "solve_rate": proposal.solve_rate,
    }


def _attempt(attempt: Attempt, type: str, opponent: str | None) -> Record:
    return {
        "phase": "solve",
        "opponent": opponent,
        "type": str(type),
        "verdict": "solved" if attempt.solved else "failed",
        "reason": attempt.reason,
    }


def _shortened(text: str) -> str:
    """The text without its middle if it is longer than `LONGEST`."""
    more, half = len(text) - LONGEST, LONGEST // 2
    return f"{text[:half]}\n[... {more:,} characters ...]\n{text[-half:]}" if more > 0 else text
