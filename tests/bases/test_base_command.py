import json
from contextlib import contextmanager

import huggingface_hub
import pytest
from refusals import refused

from azr_population.bases import base_command, warmup
from azr_population.bases.programs import read_tasks
from azr_population.cli import main

pytestmark = pytest.mark.integration

SEED = {"snippet": "def f(a):\n    return a + [1]", "input": "[2]", "output": "[2, 1]"}


@pytest.fixture
def seeds(tmp_path):
    path = tmp_path / "seeds.jsonl"
    path.write_text(json.dumps(SEED) + "\n")
    return path


def test_a_folder_is_warmed_up_with_a_card_and_measured(base_folder, tmp_path, seeds):
    out = tmp_path / "warm"
    words = ["base", "sft", str(base_folder), "--out", str(out), "--seed-file", str(seeds)]
    assert main([*words, "--tokens", "3000", "--threads", "1"]) == 0
    card = (out / "README.md").read_text()
    assert "base.prompt_format=short" in card and "seeds.jsonl" in card
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
        (["--seed-file", "{tmp}/none.jsonl"], "none.jsonl"),
        (["--seed-file", "{seeds}"], "seeds.jsonl, line 2"),
    ],
)
def test_mistakes_are_refused_in_one_line(base_folder, tmp_path, seeds, capsys, words, named):
    seeds.write_text(seeds.read_text() + "{broken\n")
    words = [word.format(base=base_folder, tmp=tmp_path, seeds=seeds) for word in words]
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


def test_a_warm_up_that_was_stopped_can_be_measured_and_says_so(base_folder, tmp_path, monkeypatch):
    @contextmanager
    def stopped_at_once(received, notify):
        received.append(2)
        yield

    monkeypatch.setattr(base_command, "stop_requests", stopped_at_once)
    out = tmp_path / "warm"
    assert main(["base", "sft", str(base_folder), "--out", str(out), "--threads", "1"]) == 130
    assert warmup.unfinished(out)
    assert main(["base", "validate", str(out), "--tasks", "1", "--samples", "1"]) == 1


@pytest.mark.parametrize("action", ["sft", "validate"])
def test_what_is_no_base_is_named_as_it_was_typed(action, tmp_path, monkeypatch, capsys):
    words = ["base", action, "{}"] + ["--out", str(tmp_path / "warm")] * (action == "sft")
    (tmp_path / "empty").mkdir()
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    for path, named in (
        (str(tmp_path / "none"), "none"),
        (str(tmp_path / "empty"), "empty"),
        ("someone/none", ": someone/none "),
    ):
        assert main([word.format(path) for word in words]) == 2
        error = capsys.readouterr().err
        assert named in error and "base.path" not in error and error.count("\n") == 1


def test_faults_are_told_before_anything_is_run(base_folder, tmp_path, monkeypatch, capsys):
    for place in ("accept.accept", "programs.Referee"):
        monkeypatch.setattr(f"azr_population.bases.{place}", None)
    figures = str(tmp_path / "nowhere" / "x.json")
    assert "x.json" in refused(capsys, "base", "validate", base_folder, "--out", figures)
    words = ["--out", str(tmp_path / "warm"), "--seed-file", str(tmp_path / "none.jsonl")]
    assert "--file" in refused(capsys, "base", "smollm2", "--file", tmp_path / "no.whl", *words)
    assert read_tasks([]) == []


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
