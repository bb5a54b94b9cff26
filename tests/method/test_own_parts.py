"""Mistakes in parts of one's own: one line with key, file and line, before anything is loaded."""

import tempfile

import pytest

from azr_population.config.load import load_config
from azr_population.errors import UserError
from azr_population.hosts.local.plan import resolve

PARTS = """
import torch
from azr_population import Adapter, Factors, LoraSpec, operator
from azr_population.engines.engine import Rollout
from azr_population.engines.torch_rollout import TorchRollout

def misspelt(proposal, attempts, buffer):
    return sum(attempt.solvd for attempt in attempts)

def late(solve_rate):
    return {}[solve_rate] if solve_rate == 1 else 1.0

def nothing(*_): return None
def nan(*_): return float("nan")
def text(*_): return "high"
def of_rewards(member, rewards): return sum(rewards) / len(rewards)

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

class Log:
    def __init__(self, settings, directory, step):
        self.path = directory.path / "reward.csv"
    def log(self, step, figures):
        self.path.write_text(str(figures["teacher/reward"]))
    def close(self):
        pass

class NoStep(Log):
    def log(self, figures):
        pass

class Unclosed(Log):
    close = property(lambda self: self.nowhere)

def no_logger(settings, directory):
    return None

class Misnamed(Log):
    def log(self, step, figures):
        self.folder.write_text("")

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
        ("population.student_reward", ["nothing", "nan", "text", "late"]),
        ("evolution.fitness", ["nothing", "nan", "text", "of_rewards"]),
        ("engine.optimizer", ["Optimizer", "nothing"]),
        ("logger.names", ["NoStep", "Unclosed", "no_logger", "Misnamed"]),
        ("engine.rollout", ["Late", "Single", "Swapped", "Unmade", "nothing"]),
        ("evolution.operators", ["rank_1", "doubles", "no_layers", "no_child", "broken"]),
    ],
)
def test_a_mistake_is_told_at_the_start(parts, key, names):
    for name in names:
        value = {
            "evolution.operators": f".own_parts.{name}=1",
            "logger.names": f"=[own_parts.{name}]",
        }
        typed = key + value.get(key, f"=own_parts.{name}")
        with pytest.raises(UserError) as refused:
            resolve(load_config(["population=2t2s", typed]))
        line = str(refused.value)
        assert name in line and "\n" not in line
        assert key in line or key in str(refused.value.key) or "evolution" in line
        located = ("misspelt", "late", "of_rewards", "broken", "Optimizer", "Misnamed", "Late")
        if name in located:
            assert "own_parts.py, line " in line


def test_a_sound_logger_and_a_sound_sampler_leave_nothing_behind(parts, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = sorted(tmp_path.rglob("*"))
    resolve(load_config(["logger.names=[own_parts.Log]", "engine.rollout=own_parts.Same"]))
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
