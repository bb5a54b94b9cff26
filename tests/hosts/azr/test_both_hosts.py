"""Both hosts on the same completions and verdicts: the same matches, advantages and records.

The local host plays a step with scripted members; AZR's side (`azr_stand_in`) then serves what they
wrote. Neither AZR nor veRL is needed.
"""

from __future__ import annotations

import random
import re

import azr_stand_in
import pytest

from azr_population.config.schema import Config
from azr_population.domains.code.domain import Code
from azr_population.domains.code.formats import ChatFormat
from azr_population.domains.code.task_types import TaskType
from azr_population.engines.engine import Completion, GeneratedCounts
from azr_population.hosts.azr.azr_step import AzrStepState
from azr_population.hosts.azr.judging import Judge
from azr_population.hosts.azr.settings import PopulationSettings
from azr_population.method.callbacks import Callback
from azr_population.method.completion_log import CompletionLog
from azr_population.method.phases import StepContext
from azr_population.method.rewards import TEACHER_REWARDS
from azr_population.method.step import SelfPlay
from azr_population.method.training import scored_attempts, scored_proposals
from azr_population.weights.breeding import Breeding

UPDATES = {"loss": 0.5, "updates": 1.0, "tokens": 12.0}
MAKING = Breeding("full_gaussian", {"eps": 0.1})
RATES = {"teacher_lr": 1.5e-4, "student_lr": 1e-3, "agent_lr": 1e-3}


class Script:
    """Members who propose `a + k` for four values of k, so that copies occur, and often fail."""

    tokenizer = azr_stand_in.Bytes()

    def __init__(self):
        self.count = 0
        self.generated = GeneratedCounts()
        self.samples = {}

    def generate(self, prompts, slots, sampling, seed):
        return [
            [self._complete(prompt, slot) for _ in range(sampling.n)]
            for prompt, slot in zip(prompts, slots, strict=True)
        ]

    def _complete(self, prompt, slot):
        self.count += 1
        text = self._write(prompt, random.Random(f"{self.count} {slot}").randrange(10**6))
        completion = Completion(slot, (), tuple(text.encode()), (), True, text)
        self.generated.add([completion])
        return completion

    def take_generated(self):
        generated, self.generated = self.generated, GeneratedCounts()
        return generated

    def _write(self, prompt, luck):
        if luck % 7 == 0:
            return "nothing at all"
        if prompt.startswith("Design"):
            inputs = range(6) if "6 different inputs" in prompt else [1]
            blocks = "".join(f"```input\n{i}\n```\n" for i in inputs)
            return f"```python\ndef f(a):\n    return a + {luck % 4 + 2}\n```\n{blocks}"
        right = 0 if luck % 2 else 1
        shown = re.search(r"a \+ (\d+)", prompt)
        if prompt.startswith("What"):
            return f"```output\n{1 + int(shown[1]) + right}\n```" if shown else ""
        output = re.search(r"```output\n(\d+)", prompt)
        assert output
        if prompt.startswith("Find") and shown:
            return f"```input\n{int(output[1]) - int(shown[1]) + right}\n```"
        return f"```python\ndef f(a):\n    return a + {int(output[1]) + right}\n```"

    def update(self, samples, hyperparameters):
        self.samples, self.hyperparameters = samples, hyperparameters
        return {slot: dict(UPDATES) for slot in samples}

    def read(self, slot):
        return slot

    def write(self, slot, adapter):
        pass


@pytest.fixture(autouse=True)
def same_children(monkeypatch):
    """Adapters play no part: both hosts make the same children by word only."""
    monkeypatch.setattr("azr_population.method.evolution.breed", lambda *_: (None, MAKING))


@pytest.fixture(autouse=True)
def parsers(monkeypatch):
    azr_stand_in.install_parsers(monkeypatch)


class Local(Callback):
    """The local host, with the rows of its last step."""

    def __init__(self, referee, config):
        self.engine = Script()
        self.play = SelfPlay(config, StepContext(self.engine, referee, Code(), ChatFormat()))
        self.play.callbacks = [self, CompletionLog(10, self.engine.tokenizer)]
        self.proposals = []

    def updated(self, population, proposals, replayed):
        self.proposals = list(proposals)

    def play_step(self):
        return self.play.play_step()


def play_in_azr(step, local, config):
    """The same step inside AZR: its records, and each batch's (rows, advantages)."""
    population = step.population
    step.begin(population.step + 1)
    batches = []
    for kind in TaskType:
        # In the order in which the local host generated them.
        rows = sorted(
            (row for row in local.proposals if row.type == kind),
            key=lambda row: row.match.teacher.slot,
        )
        batch = azr_stand_in.batch_of(rows)
        group = azr_stand_in.StandInGroup(rows, config.population.samples_per_task)
        step.assign(batch, f"gen_{kind}")
        assert [int(slot) for slot in batch.non_tensor_batch["opponent"]] == [
            row.match.student.slot for row in rows
        ]
        judge = Judge(azr_stand_in.Manager(rows), step, group)
        judge.begin_step(azr_stand_in.Executor(rows))
        tensor, *_ = judge(
            data=batch,
            problem_type=f"gen_{kind}",
            n_samples=config.population.samples_per_task,
        )
        batches.append(
            (scored_proposals(rows), batch.with_rewards(tensor.sum(dim=1).tolist()), "gen")
        )
        step.write_advantages(batch, f"gen_{kind}")
    # What students train on inside AZR is AZR's own choice; here they get the local host's.
    streams = population.streams
    generator = streams.numpy("attempts", population.step)
    drawn = scored_attempts(local.proposals, [], config.population, generator)
    for kind in TaskType:
        solving = [row for row in drawn if row.sample.type == kind]
        batch = azr_stand_in.credited_batch(solving)
        batches.append((solving, batch, "pred"))
        step.replayed = [row.sample for row in solving]
        step.write_advantages(batch, f"pred_{kind}")
    step.replayed = []
    slots = [member.slot for member in population.roster]
    written = [completion for row in local.proposals for completion in row.completions]
    generated = GeneratedCounts()
    generated.add(written)
    updates = {slot: dict(UPDATES) for slot in slots}
    records = step.end(updates, generated, lambda *args: MAKING, {"gen/code_o": 1.0})
    return records, batches


def settings_of(config, **more):
    return PopulationSettings(
        teachers=config.population.teachers,
        students=config.population.students,
        evolution=config.evolution,
        seed=config.seed,
        **RATES,
        **more,
    )


def told(records):
    """The records without the clock's part, and without the phases, which are each host's own."""
    metrics = {k: v for k, v in records.metrics.items() if not k.startswith("time/")}
    return {
        "metrics": metrics,
        "matches": records.matches,
        "lineage": records.lineage,
        "tasks": records.tasks,
        "completions": [
            {k: v for k, v in row.items() if k != "advantage"} for row in records.completions
        ],
    }


@pytest.mark.parametrize(
    ("teachers", "students", "reward"),
    [(2, 2, "adversarial"), (2, 3, "squared"), (0, 0, "stock"), (1, 1, "learnability")],
)
def test_both_hosts_tell_the_same(referee, teachers, students, reward):
    config = Config()
    config.population.teachers, config.population.students = teachers, students
    config.population.batch_size, config.population.samples_per_task = 18, 3
    config.population.teacher_reward, config.population.duplicate_penalty = reward, 0.0
    config.population.replay_fraction = 0.0  # inside AZR the replay is AZR's
    config.evolution.interval, config.evolution.grace_period = 2, 0
    config.evolution.operators = {"full_gaussian": 1.0}
    local = Local(referee, config)
    population = azr_stand_in.population_of(settings_of(config, teacher_reward=reward))
    inside = AzrStepState(population, [CompletionLog(10, azr_stand_in.Bytes())])
    seen = set()
    for _ in range(3):
        expected = local.play_step()
        found, batches = play_in_azr(inside, local, config)
        assert told(found) == told(expected)
        check_advantages(local, batches)
        seen |= {
            *(row.solve_rate for row in local.proposals),
            *(row.reason for row in local.proposals),
        }
    assert population.state() == local.play.population.state()
    assert population.hyperparameters() == local.engine.hyperparameters
    # The play is worth comparing: all that can happen has happened.
    assert seen == {None, 0.0, 1 / 3, 2 / 3, 1.0, "ok", "unparsable"}
    assert {row.copies > 0 for row in local.proposals} == {True, False}


def check_advantages(local, batches):
    """Who learns from what is the same; AZR's weights are by tokens, so values are not."""
    expected = {
        (slot, id(sample.completion)): sample.advantage
        for slot, of_member in local.engine.samples.items()
        for sample in of_member
    }
    learning = set()
    for rows, batch, _ in batches:
        for row, values in zip(rows, batch.batch["advantages"][:, 0].tolist(), strict=True):
            key = (row.sample.completion.slot, id(row.sample.completion))
            if key in expected:
                learning.add(key)
            else:
                assert values == 0.0
    assert learning == set(expected)


TEACHER_REWARDS.register("squared", "a user's own")(
    lambda solve_rate: (1.0 - solve_rate) ** 2 - 0.3
)
