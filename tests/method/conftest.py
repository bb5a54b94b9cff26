"""An engine whose members follow a script, so that the loop can be tested without a model.

Teachers propose `f(a) = a + k` with a member's own share of invalid programs; students answer with
a member's own share of right answers. Adapters are single numbers, so that evolution can be seen.
"""

import re
import zlib

import pytest
import torch
from fakes import Bytes

from azr_population.config.schema import Config
from azr_population.domains.code.domain import Code
from azr_population.domains.code.formats import ChatFormat
from azr_population.engines.engine import Completion, GeneratedCounts
from azr_population.hosts.local.run import make_callbacks
from azr_population.method.phases import StepContext
from azr_population.method.step import SelfPlay
from azr_population.weights.adapter import Adapter, Factors, LoraSpec

SPEC = LoraSpec(rank=2, alpha=2.0, target_modules=("layer",))


class ScriptedEngine:
    """`skill[slot]` is a student's chance to be right, a teacher's to propose something valid."""

    tokenizer = Bytes()

    def __init__(self, skill, slots=None):
        self.skill = skill
        self.weights = {slot: self._adapter(slot) for slot in range(slots or len(skill))}
        self.updates = []
        self.generated = GeneratedCounts()

    @staticmethod
    def _adapter(value):
        generator = torch.Generator().manual_seed(value)
        return Adapter(
            SPEC,
            {
                "layer": Factors(
                    torch.randn(2, 4, generator=generator), torch.randn(3, 2, generator=generator)
                )
            },
        )

    def generate(self, prompts, slots, sampling, seed):
        generator = torch.Generator().manual_seed(seed)
        groups = [
            [self._complete(prompt, member, generator) for _ in range(sampling.n)]
            for prompt, member in zip(prompts, slots, strict=True)
        ]
        self.generated.add(done for group in groups for done in group)
        return groups

    def take_generated(self):
        generated, self.generated = self.generated, GeneratedCounts()
        return generated

    def likelihoods(self, prompts, answers, slots):
        return [self.skill[slot] for slot in slots]

    def _complete(self, prompt, member, generator):
        chance = float(torch.rand((), generator=generator))
        number = int(torch.randint(2, 1000, (), generator=generator))
        good = chance < self.skill[member]
        text = (
            self._propose(prompt, number, good)
            if prompt.startswith("Design")
            else self._solve(prompt, good)
        )
        tokens = tuple(text.encode())
        return Completion(member, (1,), tokens, (-1.0,) * len(tokens), True, text)

    def _propose(self, prompt, number, good):
        program = f"def f(a):\n    return a + {number}" if good else "def f(a):\n    return nothing"
        inputs = range(6) if "6 different inputs" in prompt else [number % 7]
        blocks = "".join(f"```input\n{i}\n```\n" for i in inputs)
        return f"```python\n{program}\n```\n{blocks}"

    def _solve(self, prompt, good):
        shown = re.search(r"a \+ (\d+)", prompt)
        match = re.search(r"```input\n(\d+)", prompt)
        output = re.search(r"```output\n(\d+)", prompt)
        wrong = 0 if good else 1
        if prompt.startswith("What"):
            return f"```output\n{int(match[1]) + int(shown[1]) + wrong}\n```"
        if prompt.startswith("Find"):
            return f"```input\n{int(output[1]) - int(shown[1]) + wrong}\n```"
        added = int(output[1]) - int(match[1]) + wrong
        return f"```python\ndef f(a):\n    return a + {added}\n```"

    def update(self, samples, hyperparameters):
        self.updates.append((samples, hyperparameters))
        return {
            member: {"updates": 1.0, "tokens": sum(len(s.completion.token_ids) for s in rows)}
            for member, rows in samples.items()
        }

    def read(self, slot):
        return self.weights[slot]

    def write(self, slot, adapter):
        self.weights[slot] = adapter

    def state_dict(self):
        return dict(self.weights)

    def load_state_dict(self, state):
        self.weights = dict(state)

    def digest(self):
        return [
            zlib.crc32(f.B.numpy().tobytes())
            for a in self.weights.values()
            for f in [a.factors["layer"]]
        ]


@pytest.fixture
def config():
    config = Config()
    config.population.teacher_reward = "adversarial"  # an unsolved task pays
    config.base.prompt_format = "chat"
    config.population.batch_size = 12
    config.population.samples_per_task = 2
    config.evolution.operators = {"layer_wise": 1.0, "full_gaussian": 1.0}
    config.evolution.interval = 3
    config.run.steps = 6
    return config


@pytest.fixture
def play(config, referee):
    """Makes a self-play with scripted members: teachers' skills, then students'."""

    def make(skill, held_out=None):
        context = StepContext(ScriptedEngine(skill), referee, Code(), ChatFormat())
        game = SelfPlay(config, context, held_out.tasks if held_out else [])
        game.callbacks = make_callbacks(game, held_out)
        return game

    return make
