import json
import os
import signal
from dataclasses import replace
from itertools import chain

import huggingface_hub
import pytest
import torch
from refusals import refused, refuses
from transformers import AutoModelForCausalLM, AutoTokenizer

from azr_population.bases import sft, sft_trainer
from azr_population.bases.demonstrations import draw_documents
from azr_population.bases.sft import SftSettings, warm_up
from azr_population.bases.sft_trainer import pack
from azr_population.cli import main
from azr_population.domains.code.formats import base_format
from azr_population.domains.known import find_domain

pytestmark = pytest.mark.integration

SHORT = SftSettings(minutes=5, tokens=60_000, threads=1, rows=4, length=1024, learning_rate=1e-2)


def test_a_folder_is_warmed_up_with_a_card_and_measured(base_folder, tmp_path):
    out = tmp_path / "warm"
    words = ["base", "sft", str(base_folder), "--out", str(out)]
    assert main([*words, "--tokens", "3000", "--threads", "1"]) == 0
    card = (out / "README.md").read_text()
    assert "base.prompt_format=short" in card
    assert str(tmp_path) not in card
    figures = tmp_path / "figures.json"
    options = ["--tasks", "2", "--samples", "1", "--out", str(figures)]
    assert main(["base", "validate", str(out), *options]) == 1
    assert json.loads(figures.read_text())["code_o"]["valid"]["mean"] == 0.0


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--minutes", "0"], "--minutes 0"),
        (["--threads", "0"], "'--threads'"),
        (["--out", "{base}"], "--out"),
    ],
)
def test_mistakes_are_refused_in_one_line(base_folder, tmp_path, capsys, words, named):
    words = [word.format(base=base_folder) for word in words]
    out = [] if "--out" in words else ["--out", str(tmp_path / "warm")]
    assert main(["base", "sft", str(base_folder), *out, *words]) == 2
    error = capsys.readouterr().err
    assert named in error and error.count("\n") == 1
    assert not (tmp_path / "warm").exists()


def test_a_base_without_a_chat_template(base_folder, tmp_path, capsys):
    words = ["base", "sft", str(base_folder), "--out", str(tmp_path / "warm"), "--tokens", "500"]
    (base_folder / "chat_template.jinja").unlink(missing_ok=True)
    fields = json.loads((base_folder / "tokenizer_config.json").read_text())
    fields.pop("chat_template", None)
    (base_folder / "tokenizer_config.json").write_text(json.dumps(fields))
    assert main(words) == 2
    assert base_folder.name in capsys.readouterr().err


@pytest.fixture
def drawn_here(monkeypatch):
    """Documents are drawn in this process, since a child takes seconds to start."""
    monkeypatch.setattr(sft, "made_ahead", lambda draw, jobs: chain.from_iterable(map(draw, jobs)))


def stop_after(monkeypatch, batches):
    """A request to stop after so many batches."""
    loss = sft_trainer.model_loss
    computed = []

    def counted(*arguments):
        computed.append(1)
        if len(computed) == batches:
            os.kill(os.getpid(), signal.SIGINT)
        return loss(*arguments)

    monkeypatch.setattr(sft_trainer, "model_loss", counted)


def test_the_loss_falls_and_the_folder_loads(drawn_here, model, tokenizer, tmp_path, monkeypatch):
    monkeypatch.setattr(sft_trainer, "LOG_SECONDS", 0.0)
    before = model.get_input_embeddings().weight.detach().clone()
    progress = warm_up(model, tokenizer, tmp_path, SHORT)
    losses = [point["loss"] for point in progress.curve]
    assert losses[0] > 4.5 and losses[-1] < 0.8 * losses[0]
    assert progress.tokens >= 60_000 and progress.stopped_by == 0
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path, torch_dtype="auto")
    assert loaded.dtype == torch.bfloat16
    assert not torch.equal(loaded.get_input_embeddings().weight.float(), before)
    assert AutoTokenizer.from_pretrained(tmp_path).decode([2]) == "<|im_end|>"
    assert base_format(tmp_path, None) == "short"


def test_both_dtypes_give_the_same_loss(model, tokenizer, monkeypatch):
    domain = find_domain("code")
    documents = draw_documents(tokenizer, domain, domain.format("short"), 1, 0)
    batch = next(pack(documents, 2, 1024))
    losses = []
    for dtype in (torch.float32, torch.bfloat16):
        monkeypatch.setattr(sft_trainer, "fast_cpu_dtype", lambda dtype=dtype: dtype)
        losses.append(sft_trainer.model_loss(model, batch).item())
    assert losses[0] == pytest.approx(losses[1], rel=0.01) and losses[0] != losses[1]


def test_the_same_tokens_give_the_same_base(drawn_here, tokenizer, tmp_path, base_folder):
    settings = SftSettings(tokens=6_000, threads=1, rows=2, length=1024)
    results = []
    for name in ("one", "other"):
        model = AutoModelForCausalLM.from_pretrained(base_folder, torch_dtype=torch.float32)
        (tmp_path / name).mkdir()
        warm_up(model, tokenizer, tmp_path / name, settings)
        results.append((tmp_path / name / "model.safetensors").read_bytes())
    assert results[0] == results[1]


def test_a_base_that_was_stopped_can_be_measured(base_folder, tmp_path, monkeypatch):
    stop_after(monkeypatch, 2)
    out = tmp_path / "warm"
    assert main(["base", "sft", str(base_folder), "--out", str(out), "--threads", "1"]) == 130
    assert json.loads((out / "warmup.json").read_text())["steps"] == 2
    assert "stopped at" in (out / "README.md").read_text()
    assert main(["base", "validate", str(out), "--tasks", "1", "--samples", "1"]) == 1


def test_a_format_without_any_row_is_refused(drawn_here, model, tokenizer, tmp_path):
    with refuses("--prompt-format"):
        warm_up(model, tokenizer, tmp_path, replace(SHORT, format="chat", length=100))


@pytest.mark.parametrize("action", ["sft", "validate"])
def test_what_is_no_base_is_named(action, tmp_path, monkeypatch, capsys):
    words = ["base", action, "{}"] + ["--out", str(tmp_path / "warm")] * (action == "sft")
    (tmp_path / "empty").mkdir()
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    for path in (str(tmp_path / "none"), str(tmp_path / "empty"), "someone/none"):
        assert main([word.format(path) for word in words]) == 2
        error = capsys.readouterr().err
        assert path in error and error.count("\n") == 1


def test_faults_are_named_before_anything_is_run(base_folder, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("azr_population.bases.accept.accept", None)
    figures = str(tmp_path / "nowhere" / "x.json")
    assert "x.json" in refused(capsys, "base", "validate", base_folder, "--out", figures)


def test_without_a_format_a_base_is_asked_in_its_own(base_folder, monkeypatch, capsys):
    formats = []

    def accept(folder, format, *rest):
        formats.append(format)
        return {}

    monkeypatch.setattr("azr_population.bases.accept.accept", accept)
    for log in (None, "short", "azr"):
        if log:
            (base_folder / "warmup.json").write_text(json.dumps({"settings": {"format": log}}))
        main(["base", "validate", str(base_folder)])
    assert formats == ["chat", "short"]
    assert "--prompt-format" in capsys.readouterr().err
