import json

import pytest
from transformers import AutoModelForCausalLM

from azr_population.bases import sft_trainer
from azr_population.bases.nano.pretrain import BuildRecipe, Phase, build
from azr_population.bases.nano.tokenizer import build_tokenizer
from azr_population.engines.base_model import load_tokenizer

PHASES = (
    Phase(tokens=28_000, minutes=0.8, learning_rate=1e-2, rows=8, warmup_steps=3, strict=False),
    Phase(tokens=4_000, minutes=0.2, learning_rate=1e-3, rows=8, warmup_steps=3),
)
TINY = BuildRecipe(hidden=32, layers=1, heads=2, mlp=64, phases=PHASES, chunk=300)
CHOICES = {"minutes": 5, "threads": 1, "recipe": TINY, "compile": False}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("built")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sft_trainer, "LOG_SECONDS", 0.0)
        return folder, build(folder, **CHOICES)


def test_twenty_steps_reduce_the_loss_and_the_folder_loads(built):
    folder, facts = built
    first, second = facts["phases"]
    assert first["steps"] >= 18
    losses = [point["loss"] for point in first["curve"]]
    assert losses[-1] < losses[0] - 1.0
    assert first["tokens"] >= PHASES[0].tokens and second["tokens"] >= PHASES[1].tokens
    assert json.loads((folder / "build.json").read_text())["phases"] == facts["phases"]
    model = AutoModelForCausalLM.from_pretrained(folder)
    assert model.config.hidden_size == 32
    text = "<SO>def f(n):\n    return n + 12<in>''.join(sorted(s))"
    assert load_tokenizer(folder)(text).input_ids == build_tokenizer()(text).input_ids


def test_a_seed_gives_the_same_weights(tmp_path):
    phase = Phase(tokens=1500, minutes=1.0, learning_rate=1e-2, rows=2, warmup_steps=2)
    recipe = BuildRecipe(hidden=16, layers=1, heads=2, mlp=16, phases=(phase,), chunk=100)
    weights = []
    for seed in (1, 1, 2):
        out = tmp_path / str(len(weights))
        build(out, **{**CHOICES, "seed": seed, "recipe": recipe})
        weights.append((out / "model.safetensors").read_bytes())
    assert weights[0] == weights[1] != weights[2]
