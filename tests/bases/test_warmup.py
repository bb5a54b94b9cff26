import json

import pytest
import torch
from refusals import refuses
from transformers import AutoModelForCausalLM, AutoTokenizer

from azr_population.bases import warmup
from azr_population.bases.programs import digest, read_digests
from azr_population.bases.warmup import STATE, SftSettings, unfinished, warm_up
from azr_population.domains.code.formats import base_format
from azr_population.errors import UserError

pytestmark = pytest.mark.integration

SHORT = SftSettings(minutes=5, tokens=60_000, threads=1, rows=4, length=1024, learning_rate=1e-2)


@pytest.fixture
def quiet(monkeypatch):
    monkeypatch.setattr(warmup, "_LOG_SECONDS", 0.0)


def test_the_loss_falls_and_the_folder_loads(model, tokenizer, tmp_path, quiet):
    before = model.get_input_embeddings().weight.detach().clone()
    progress = warm_up(model, tokenizer, tmp_path, SHORT, log=str)
    losses = [point["loss"] for point in progress.curve]
    assert losses[0] > 4.5 and losses[-1] < 0.8 * losses[0]
    assert progress.tokens >= 60_000 and progress.demonstrations > 100
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path, torch_dtype="auto")
    assert loaded.dtype == torch.bfloat16
    assert not torch.equal(loaded.get_input_embeddings().weight.float(), before)
    assert AutoTokenizer.from_pretrained(tmp_path).decode([2]) == "<|im_end|>"
    assert not unfinished(tmp_path) and base_format(tmp_path, None) == "short"
    assert len(read_digests(tmp_path)) > 50


def test_the_same_tokens_give_the_same_base(tokenizer, tmp_path, base_folder):
    settings = SftSettings(tokens=6_000, threads=1, rows=2, length=1024)
    results = []
    for name in ("one", "other"):
        model = AutoModelForCausalLM.from_pretrained(base_folder, torch_dtype=torch.float32)
        (tmp_path / name).mkdir()
        warm_up(model, tokenizer, tmp_path / name, settings, log=str)
        results.append((tmp_path / name / "model.safetensors").read_bytes())
    assert results[0] == results[1]


def test_stopped_it_goes_on_from_its_state(model, tokenizer, tmp_path, base_folder):
    stops = iter([False] * 4 + [True])
    first = warm_up(model, tokenizer, tmp_path, SHORT, stopping=lambda: next(stops), log=str)
    assert first.steps == 4 and unfinished(tmp_path)
    state = torch.load(tmp_path / STATE, weights_only=True)
    again = AutoModelForCausalLM.from_pretrained(base_folder, torch_dtype=torch.float32)
    lines = []
    second = warm_up(again, tokenizer, tmp_path, SHORT, stopping=lambda: True, log=lines.append)
    assert second.steps == 4 and lines[0].startswith("continuing")
    stored = torch.load(tmp_path / STATE, weights_only=True)
    assert all(map(torch.equal, state["model"].values(), stored["model"].values()))
    last = warm_up(again.float(), tokenizer, tmp_path, SHORT, log=str)
    assert last.steps > 10 and last.tokens >= 60_000 and not unfinished(tmp_path)
    assert last.chunk > first.chunk
    assert json.loads((tmp_path / "warmup.json").read_text())["steps"] == last.steps


def test_another_setting_or_a_damaged_state_is_refused(model, tokenizer, tmp_path, base_folder):
    def load():
        return AutoModelForCausalLM.from_pretrained(base_folder, torch_dtype=torch.float32)

    warm_up(model, tokenizer, tmp_path, SHORT, stopping=lambda: True, log=str)
    other = SftSettings(**{**SHORT.__dict__, "seed": 2})
    with refuses("--out"):
        warm_up(load(), tokenizer, tmp_path, other, log=str)
    (tmp_path / STATE).write_bytes(b"PK")
    with pytest.raises(UserError):
        warm_up(load(), tokenizer, tmp_path, SHORT, log=str)


def test_a_program_is_known_again_in_another_layout():
    assert digest("def f(a):\n    return a+1  # more") == digest("def f(a):\n\n  return a + 1\n")
    assert digest("def f(a):\n    return a + 1") != digest("def f(a):\n    return a + 2")
    assert digest("def f(") == digest("def f( ")
