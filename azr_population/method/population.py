"""One population, the same in both hosts: matches, rewards, ratings, replacement, records.

In a step `begin_step` draws the matches and `assign_matches` gives each proposal its match;
`reward`, `rate`, `evolve` and `record` are verbs of `step.py`. In between, the host generates,
verifies, solves and grades, and trains on the samples of `training.py`.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from azr_population.config.schema import Adapters, Config
from azr_population.domains.domain import Domain
from azr_population.domains.task import TaskBuffer
from azr_population.engines.engine import Hyperparameters
from azr_population.errors import UserError
from azr_population.method import record
from azr_population.method.evolution import Evolution, MakeChild
from azr_population.method.matchmaking import Match, Matchmaker, split_evenly
from azr_population.method.members import Member, Role, Roster, outcome_of, tally
from azr_population.method.proposals import PlayedStep, Proposal, Replay
from azr_population.method.record import StepRecords
from azr_population.method.rewards import count_copies, reward_attempts, reward_proposals
from azr_population.runs.records import mean
from azr_population.streams import Streams
from azr_population.weights.adapter import Adapter
from azr_population.weights.founders import load_founder


def founder_sources(init_from: Adapters, roster: Roster) -> dict[str, str]:
    """The adapter that each founder starts from, by member name; members without one are left out.
    Raises UserError: the number of adapters does not match, or no member has the role."""
    sources: dict[str, str] = {}
    for role, adapters in init_from.items():
        key = f"population.init_from.{role}"
        members = roster.sub_populations.get(Role(role), [])
        if adapters and not members:
            raise UserError(f"{key} is set, but no member is {role}; leave it out", key=key)
        if len(adapters) not in (0, 1, len(members)):
            raise UserError(
                f"{key} names {len(adapters)} adapters for {len(members)} members; name one for "
                "all, or one for each",
                key=key,
            )
        each = adapters * len(members) if len(adapters) == 1 else adapters
        sources |= {member.name: source for member, source in zip(members, each, strict=False)}
    return sources


class Population:
    """The members of a run with their ratings, buffer and history; `step` is the last one begun."""

    def __init__(self, config: Config, domain: Domain) -> None:
        """Uses these parts of `config`: population, matches, evolution, buffer and seed."""
        self.config = config.population
        self.domain = domain
        self.streams = Streams(config.seed)
        self.matchmaker = Matchmaker(config.matchmaking)
        self.roster = Roster.make(self.config.teachers, self.config.students)
        self.evolution = Evolution(config.evolution, self.streams)
        for member in self.roster:
            self.evolution.draw_hyperparameters(member)
        self.buffer = TaskBuffer(seed=config.seed)
        """Valid tasks of earlier steps; proposing one of them again is a copy."""
        self.step = 0
        self.matches: list[Match] = []
        self._assigned: Counter[int] = Counter()
        """Proposals of this step that were given to each match, by its index."""

    def load_founders(
        self, read: Callable[[int], Adapter], write: Callable[[int, Adapter], None]
    ) -> None:
        """Loads the adapters of `init_from` into an engine whose members are fresh. Raises
        UserError: see `load_founder`."""
        for name, source in founder_sources(self.config.init_from, self.roster).items():
            slot = self.roster[name].slot
            write(slot, load_founder(source, read(slot), self.streams.torch(f"founder {slot}")))

    def begin_step(self, step: int) -> list[Match]:
        """Draws the matches of a step."""
        self.step = step
        self.matches = self.matchmaker.draw(
            self.roster.teachers, self.roster.students, self.streams.numpy("match", step)
        )
        self._assigned.clear()
        return self.matches

    def assign_matches(self, teachers: Sequence[int]) -> list[Match]:
        """The match of every proposal; `teachers` are the slots of their teachers.

        A teacher's proposals are split evenly over its matches. The remainder goes to the matches
        with the fewest in this step so far.
        """
        queues: dict[int, list[Match]] = {}
        for slot, count in Counter(teachers).items():
            theirs = [i for i, match in enumerate(self.matches) if match.teacher.slot == slot]
            fewest_first = sorted(theirs, key=lambda i: self._assigned[i])
            counts = dict(zip(fewest_first, split_evenly(count, len(theirs)), strict=True))
            queues[slot] = [self.matches[i] for i in theirs for _ in range(counts[i])]
            self._assigned.update(counts)
        return [queues[slot].pop(0) for slot in teachers]

    def hyperparameters(self) -> dict[int, Hyperparameters]:
        """The hyperparameters of each member's update in this step, by slot."""
        config = self.config
        rates = {
            Role.TEACHER: config.teacher_lr,
            Role.STUDENT: config.student_lr,
            Role.AGENT: config.agent_lr,
        }
        return {
            member.slot: Hyperparameters(
                member.hyperparameters.get("lr", rates[member.role]), config.kl_loss_coef
            )
            for member in self.roster
        }

    def best_student(self) -> Member:
        """The student with the best conservative rating."""
        return max(self.roster.students, key=lambda member: member.rating.conservative)

    def reward(self, proposals: Sequence[Proposal], replays: Sequence[Replay] = ()) -> None:
        """Counts copies and sets rewards; `proposals` are all of the step, or of one task type."""
        count_copies(proposals, self.buffer, self.domain.fingerprint)
        reward_proposals(proposals, self.config, self.buffer)
        reward_attempts(replays)

    def rate(self, proposals: Sequence[Proposal]) -> list[dict[str, Any]]:
        """Rates the members match by match; returns lines of `matches.jsonl`, with ratings before
        they are recentered.

        The single agent only plays itself, so it is not rated.
        """
        records = []
        for match in self.matches:
            match_proposals = [p for p in proposals if p.match is match and p.judged]
            if not match_proposals:
                continue
            teacher, student = match.teacher, match.student
            games = [outcome_of(proposal.solve_rate) for proposal in match_proposals]
            win_probability = self.matchmaker.win_probability(match)
            before = teacher.rating.mu, student.rating.mu
            if teacher is not student:
                teacher.rating, student.rating = self.matchmaker.ratings.rate_match(
                    teacher.rating, student.rating, games
                )
            records.append(
                {
                    "step": self.step,
                    "teacher": teacher.name,
                    "student": student.name,
                    "proposed": len(match_proposals),
                    "valid": sum(proposal.task is not None for proposal in match_proposals),
                    "solve_rate": mean(proposal.solve_rate for proposal in match_proposals),
                    **tally(games),
                    "win_probability": win_probability,  # of the student, in a game on one task
                    "teacher_mu": [before[0], teacher.rating.mu],
                    "student_mu": [before[1], student.rating.mu],
                }
            )
        self.roster.recenter_ratings()
        return records

    def evolve(self, make_child: MakeChild) -> list[dict[str, Any]]:
        """Replaces members by children if the interval is over; `make_child` writes a child into
        its slot. Returns lines of `lineage.jsonl`."""
        return self.evolution.replace(self.step, self.roster, make_child)

    def record(
        self, played: PlayedStep, matches: list[dict[str, Any]], births: list[dict[str, Any]]
    ) -> StepRecords:
        """The records of the step, from what `rate` and `evolve` returned. Adds its tasks to the
        buffer."""
        proposals = played.proposals
        metrics = record.step_record(self.step, self.roster, self.domain, played, matches)
        metrics["evolution/replaced"] = float(len(births))
        for proposal in proposals:
            if proposal.task is not None:
                self.buffer.add(proposal.task)
        tasks = record.task_records(self.step, proposals)
        return StepRecords(metrics, matches, births, tasks, record.nothing_valid_notes(proposals))

    def state(self) -> dict[str, Any]:
        """Plain data for a checkpoint."""
        return {
            "step": self.step,
            "roster": self.roster.to_json(),
            "buffer": self.buffer.state(),
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """The inverse of `state`. Raises UserError: the state is of another population. Raises
        ValueError: a value has another type than a run stores, or is out of bounds."""
        roster = Roster.from_json(state["roster"])
        stored, names = ([member.name for member in members] for members in (roster, self.roster))
        if stored != names:
            raise UserError(
                f"the checkpoint has {', '.join(stored)}, but population={self.config.name} has "
                f"{', '.join(names)}; resume with the same population, or start a new run"
            )
        self.step = state["step"]
        self.roster = roster
        self.buffer.load_state(state["buffer"])
        for member in roster:
            self.evolution.check_rates(member)
