import json
import os
import subprocess
import sys

import pytest

from azr_population.bases import base_command
from azr_population.cli import main

SEED = {"snippet": "def f(a):\n    return a + [1]", "input": "[2]", "output": "[2, 1]"}


@pytest.fixture
def seeds(tmp_path):
    path = tmp_path / "seeds.jsonl"
    path.write_text(json.dumps(SEED) + "\n")
    return path


def test_a_folder_is_warmed_up_with_a_card_and_measured(base_folder, tmp_path, seeds, capsys):
    out = tmp_path / "warm"
    words = ["base", "warm", str(base_folder), "--out", str(out), "--seeds", str(seeds)]
    assert main([*words, "--tokens", "3000", "--threads", "1"]) == 0
    card = (out / "README.md").read_text()
    assert "base.format=short" in card and "seed files: seeds.jsonl" in card
    assert "| warm-up | finished |" in card and str(tmp_path) not in card
    assert "2 valid tasks" in capsys.readouterr().out
    figures = tmp_path / "figures.json"
    asked = ["--tasks", "2", "--attempts", "1", "--json", str(figures)]
    assert main(["base", "accept", str(out), *asked]) == 1
    assert json.loads(figures.read_text())["code_o"]["valid"]["mean"] == 0.0
    assert "missed: code_o valid" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--minutes", "0"], "--minutes 0 is no time"),
        (["--threads", "0"], "--threads must be at least 1"),
        (["--out", "{base}"], "exists and is no unfinished warm-up; name another --out"),
        (["--seeds", "{tmp}/none.jsonl"], "none.jsonl cannot be read"),
    ],
)
def test_mistakes_are_told_in_one_line(base_folder, tmp_path, capsys, words, said):
    told = [word.format(base=base_folder, tmp=tmp_path) for word in words]
    out = [] if "--out" in told else ["--out", str(tmp_path / "warm")]
    assert main(["base", "warm", str(base_folder), *out, *told]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1
    assert not (tmp_path / "warm").exists()


def test_a_broken_seed_line_is_named(base_folder, tmp_path, seeds, capsys):
    seeds.write_text(seeds.read_text() + "{broken\n")
    words = ["base", "warm", str(base_folder), "--out", str(tmp_path / "w"), "--seeds", str(seeds)]
    assert main(words) == 2
    assert "seeds.jsonl, line 2" in capsys.readouterr().err


def test_no_room_and_no_template(base_folder, tmp_path, monkeypatch, capsys):
    words = ["base", "warm", str(base_folder), "--out", str(tmp_path / "warm"), "--tokens", "500"]
    monkeypatch.setattr(
        base_command.shutil, "disk_usage", lambda path: type("U", (), {"free": 1000})
    )
    assert main(words) == 2
    assert "make room, or name another --out" in capsys.readouterr().err
    (base_folder / "chat_template.jinja").unlink(missing_ok=True)
    told = json.loads((base_folder / "tokenizer_config.json").read_text())
    told.pop("chat_template", None)
    (base_folder / "tokenizer_config.json").write_text(json.dumps(told))
    assert main(words) == 2
    assert "has no chat template" in capsys.readouterr().err


def test_threads_wait_without_spinning(tmp_path):
    words = ["base", "warm", str(tmp_path / "none"), "--out", str(tmp_path / "warm")]
    variables = {**os.environ, "OMP_DISPLAY_ENV": "true"}
    variables.pop("OMP_WAIT_POLICY", None)
    done = subprocess.run(
        [sys.executable, "-m", "azr_population.cli", *words],
        env=variables,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "OMP_WAIT_POLICY = 'PASSIVE'" in done.stderr


def test_a_warm_up_that_was_stopped_can_be_measured_and_says_so(base_folder, tmp_path, monkeypatch):
    from contextlib import contextmanager

    @contextmanager
    def stopped_at_once():
        yield [2]

    monkeypatch.setattr(base_command, "_stop_requests", stopped_at_once)
    out = tmp_path / "warm"
    assert main(["base", "warm", str(base_folder), "--out", str(out), "--threads", "1"]) == 130
    assert "the same command goes on" in (out / "README.md").read_text()
    assert main(["base", "accept", str(out), "--tasks", "1", "--attempts", "1"]) == 1


def test_without_a_format_a_base_is_asked_in_its_own(base_folder, monkeypatch, capsys):
    asked = []

    def accept(folder, format, *rest):
        asked.append(format)
        return {}

    monkeypatch.setattr("azr_population.bases.accept.accept", accept)
    for log in (None, "short", "azr"):
        if log:
            (base_folder / "warmup.json").write_text(json.dumps({"settings": {"format": log}}))
        main(["base", "accept", str(base_folder)])
    assert asked == ["chat", "short"]
    assert "name one by --format" in capsys.readouterr().err
