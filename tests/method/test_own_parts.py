"""Mistakes in parts of one's own: one line with key, file and line, before anything is loaded."""

import math
import tempfile
from dataclasses import replace

import numpy as np
import pytest
import torch
from refusals import refuses

from azr_population.config.load import load_config
from azr_population.domains.code.formats import ChatFormat, NanoFormat
from azr_population.errors import UserError
from azr_population.hosts.local.local_plan import resolve
from azr_population.method.callbacks import own_callbacks
from azr_population.method.config_check import _made_up, check_reward
from azr_population.method.phases import propose, score_gold, verify
from azr_population.method.proposals import Attempt
from azr_population.method.rewards import TEACHER_REWARDS, teacher_reward_of
from azr_population.registry import trust

PARTS = """
import torch
from azr_population import Adapter, Callback, Factors, LoraSpec, Metric, operator
from azr_population.engines.engine import Rollout
from azr_population.engines.torch_rollout import TorchRollout

def misspelt(proposal, attempts, buffer):
    return sum(attempt.solvd for attempt in attempts)

def late(solve_rate):
    return {}[solve_rate] if solve_rate == 1 else 1.0

def nothing(*_): return None
def nan(*_): return float("nan")
def text(*_): return "high"

def child(parent, change):
    return Adapter(parent.spec, {name: change(pair) for name, pair in parent.factors.items()})

@operator(parents=1, ranges={})
def rank_1(parents, generator):
    return child(parents[0], lambda pair: Factors(pair.A[:1], pair.B[:, :1]))

@operator(parents=1, ranges={})
def doubles(parents, generator):
    return child(parents[0], lambda pair: Factors(pair.A.double(), pair.B.double()))

@operator(parents=1, ranges={})
def no_layers(parents, generator):
    return Adapter(parents[0].spec, {})

@operator(parents=1, ranges={})
def no_child(parents, generator):
    return parents[0].factors

@operator(parents=1, ranges={})
def broken(parents, generator):
    return parents[0].factor

class Same(TorchRollout):
    pass

class Late(TorchRollout):
    def stream(self, batch, sampling, seed):
        for rows in super().stream(batch, sampling, seed):
            yield [(row, group.nowhere) for row, group in rows]

class Single(TorchRollout):
    def stream(self, batch, sampling, seed):
        for rows in super().stream(batch, sampling, seed):
            yield [(row, group[:1]) for row, group in rows]

class Swapped(TorchRollout):
    def stream(self, batch, sampling, seed):
        for rows in super().stream(batch, sampling, seed):
            yield [(1 - row, group) for row, group in rows]

class Unmade(Rollout):
    def stream(self, batch, sampling, seed):
        return iter(())
def of_gold(gold_probability): return -0.125 if gold_probability is None else 1 - gold_probability
def misnamed(rate): return rate

class Counts(Callback):
    def recorded(self, population, proposals, records):
        records.metrics["counted"] = float(len(proposals))

class Odd(Callback):
    def __init__(self): self.change = CHANGE
    def recorded(self, population, proposals, records): self.change(records)

class Misspelt(Counts):
    def record(self, population, proposals, records): pass

class Idle(Callback):
    def measure(self): pass

class Borrows(Counts):
    metrics = (Metric("eval/greedy", "Mine"),)

CHANGE = None

class Breaks(Callback):
    def updated(self, population, proposals, replayed): proposals.nowhere

class Optimizer(torch.optim.SGD):
    def step(self, closure=None):
        self.nowhere += 1
"""


@pytest.fixture
def parts(tmp_path, monkeypatch):
    (tmp_path / "own_parts.py").write_text(PARTS)
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.parametrize(
    ("key", "names"),
    [
        ("population.teacher_reward", ["misspelt", "late", "nothing", "nan", "text"]),
        ("engine.optimizer", ["Optimizer", "nothing"]),
        ("engine.rollout", ["Late", "Single", "Swapped", "Unmade", "nothing"]),
        ("evolution.operators", ["rank_1", "doubles", "no_layers", "no_child", "broken"]),
    ],
)
def test_a_mistake_is_told_at_the_start(parts, key, names):
    for name in names:
        value = {"evolution.operators": f".own_parts.{name}=1"}
        typed = key + value.get(key, f"=own_parts.{name}")
        with pytest.raises(UserError) as refused:
            resolve(load_config(["population=2t2s", typed]))
        line = str(refused.value)
        assert name in line and "\n" not in line
        assert key in line or key in str(refused.value.key) or "evolution" in line
        located = ("misspelt", "late", "broken", "Optimizer", "Late")
        if name in located:
            assert "own_parts.py, line " in line


def test_a_sound_sampler_leaves_nothing_behind(parts, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = sorted(tmp_path.rglob("*"))
    resolve(load_config(["engine.rollout=own_parts.Same"]))
    assert [path for path in sorted(tmp_path.rglob("*")) if path.suffix != ".pyc"] == before


@pytest.mark.parametrize(
    ("mistake", "about"),
    [
        ("PROPOSE = {'add': 5}", "prompt"),
        ("TOKENS = {'add': (0, 0)}", "lengths"),
        ("def parse_answer(self, type, text): return text.nowhere", "nowhere"),
    ],
)
def test_a_domain_of_ones_own_is_asked_once(tmp_path, monkeypatch, mistake, about):
    name = f"own_sums_about_{about}"
    (tmp_path / f"{name}.py").write_text(
        f"""
from azr_population.domains.domain import Domain
from azr_population.domains.format import Format
from azr_population.registry import Registry

class Plain(Format):
    chat = False
    PROPOSE = {{"add": "write a sum"}}
    SOLVE = {{"add": "{{program}}"}}
    TOKENS = {{"add": (9, 9)}}
    def parse_proposal(self, type, text): return None
    def parse_answer(self, type, text): return text
    def write_proposal(self, task): return task.program
    def write_answer(self, task): return task.outputs[0]
    {mistake}

class Sums(Domain):
    types = {{"add": "find the sum"}}
    formats = Registry("base.prompt_format")
    def judge(self, proposals, referee, rules): return []
    def grade(self, asked, referee): return []

Sums.formats.register("nano", "own")(Plain)
"""
    )
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UserError) as refused:
        resolve(load_config([f"task.domain={name}.Sums", "eval.every=0"]))
    assert refused.value.key == "task.domain" and about in str(refused.value)


def test_a_reward_takes_what_its_parameters_name(parts, play, config):
    for name in ("of_gold", "misnamed"):
        trust(f"own_parts.{name}")
    config.population.teacher_reward = "own_parts.misnamed"
    with pytest.raises(UserError, match=r"takes rate; a teacher's reward takes any of solve_rate"):
        teacher_reward_of(config.population)
    config.population.teacher_reward = "own_parts.of_gold"
    config.population.duplicate_penalty = 0.0
    with pytest.raises(UserError, match="ChatFormat"):  # so inside AZR, whose prompts are chats
        check_reward(config.population, ChatFormat())
    check_reward(config.population, NanoFormat())
    config.population.teachers = config.population.students = 2
    game = play([1.0, 1.0, 0.25, 0.75])
    rows = played(game, config)
    context = replace(game.context, format=NanoFormat())
    score_gold(rows, context)
    game.population.reward(rows)
    paid = {(row.type, row.student.slot, row.gold_probability, row.reward) for row in rows}
    # One way to write an output, many inputs and programs.
    assert paid == {("code_o", 2, 0.25, 0.75), ("code_o", 3, 0.75, 0.25)} | {
        (type, slot, None, -0.125) for type in ("code_i", "code_f") for slot in (2, 3)
    }


def played(game, config):
    """The valid tasks of one step."""
    game.population.begin_step(1)
    rows = propose(game.context, game.population, config.task, config.engine)
    verify(rows, game.context, config.task)
    for row in rows:
        assert row.task
        row.attempts = [Attempt(row.completion, None)]
    return rows


def test_the_step_works_gold_probabilities_out_only_for_who_takes_them(parts, play, config):
    trust("own_parts.of_gold")
    config.population.teachers = config.population.students = 1
    for reward, calls in (("own_parts.of_gold", 1), ("adversarial", 0)):
        config.population.teacher_reward = reward
        game, asked = play([1.0, 0.5]), []
        game.context.engine.likelihoods = lambda *columns, asked=asked: asked.append(columns) or []
        game.play_step()
        assert len(asked) == calls


def test_a_callback_of_ones_own_is_made_called_and_named(parts, play, config):
    trust(["own_parts.Counts", "own_parts.Breaks", "own_parts.Optimizer", "own_parts.nothing"])
    for name in ("nothing", "Optimizer", "nowhere"):
        with pytest.raises(UserError, match=f"callbacks=own_parts.{name}"):
            own_callbacks([f"own_parts.{name}"])
    config.population.teachers = config.population.students = 1
    config.callbacks = ["own_parts.Counts"]
    assert play([1.0, 1.0]).play_step().metrics["counted"] == 12.0
    with pytest.raises(UserError, match=r"callbacks=own_parts.Breaks failed in .*own_parts.py"):
        resolve(load_config(["callbacks=[own_parts.Breaks]"]))
    config.callbacks = ["own_parts.Breaks"]
    with pytest.raises(
        UserError, match=r"callbacks=own_parts.Breaks failed in .*own_parts.py, line"
    ):
        play([1.0, 1.0]).play_step()


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda records: records.metrics.update(step=99), "records.metrics"),
        (lambda records: records.metrics.update({"student/solve_rate": 7.0}), "records.metrics"),
        (lambda records: records.metrics.clear(), "records.metrics"),
        (lambda records: setattr(records, "metrics", None), "records.metrics"),
        (lambda records: records.tasks.clear(), "records.tasks"),
        (lambda records: records.matches[0].update(step=7), "records.matches"),
        (lambda records: records.metrics.update({"eval/greedy": 1.0}), "eval/greedy"),
        (lambda records: records.metrics.update({"time/mine": 1.0}), "time/mine"),
        (lambda records: records.metrics.update({"mine": math.nan}), "nan"),
        (lambda records: records.metrics.update({"mine": 1e200}), "1e+200"),
        (lambda records: records.metrics.update({"mine": "much"}), "much"),
        (lambda records: records.metrics.update({"mine": torch.ones(2)}), "tensor"),
        (lambda records: records.metrics.update({("a", 1): 1.0}), "('a', 1)"),
        (lambda records: records.metrics.update({"a\x1b[2J": 1.0}), "a\\x1b[2J"),
    ],
)
def test_a_callback_adds_numbers_of_its_own_and_changes_nothing(
    parts, play, config, monkeypatch, change, named
):
    trust("own_parts.Odd")
    config.population.teachers = config.population.students = 1
    config.callbacks = ["own_parts.Odd"]
    monkeypatch.setattr("own_parts.CHANGE", change)
    with refuses(named):
        play([1.0, 1.0]).play_step()


@pytest.mark.parametrize(
    ("name", "named"),
    [("Misspelt", "record, which nobody calls"), ("Idle", "neither"), ("Borrows", "eval/greedy")],
)
def test_a_callback_that_would_measure_nothing_is_refused(parts, name, named):
    trust(f"own_parts.{name}")
    with refuses(named):
        own_callbacks([f"own_parts.{name}"])


def test_a_reward_may_be_a_number_of_numpy_or_torch(config, monkeypatch):
    row, config.population.teacher_reward = _made_up(1), "learnability"
    for value, paid in ((np.float32(0.5), 0.5), (torch.tensor(0.25), 0.25), (True, 1.0)):
        monkeypatch.setitem(TEACHER_REWARDS, "learnability", lambda solve_rate, v=value: v)
        assert teacher_reward_of(config.population)(row, ()) == paid
    for value in (1e308, 10**400, np.array([0.5, 0.1]), "0.5", 1j, None):
        monkeypatch.setitem(TEACHER_REWARDS, "learnability", lambda solve_rate, v=value: v)
        with refuses("population.teacher_reward"):
            teacher_reward_of(config.population)(row, ())
