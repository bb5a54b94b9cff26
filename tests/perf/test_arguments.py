"""What benchmarks print or record where something is wrong or missing."""

import shlex
import subprocess
import sys
from types import SimpleNamespace

import checkouts
import gpu
import pytest
import referee

from azr_population.config.load import load_config
from azr_population.referee import RefereeSettings


def test_the_override_of_the_printed_example_is_a_field():
    example = next(line for line in checkouts.__doc__.splitlines() if "--theirs engine" in line)
    load_config([shlex.split(example)[-1]])


def test_a_group_that_does_not_exist_is_refused_with_the_choices(monkeypatch, capsys, tmp_path):
    out = tmp_path / "out"
    monkeypatch.setattr(sys, "argv", ["gpu.py", "--out", str(out), "--groups", "run,foo"])
    with pytest.raises(SystemExit) as ended:
        gpu.main()
    assert ended.value.code == 2 and not out.exists()
    assert f"foo is unknown; choose from: {', '.join(gpu.GROUPS)}" in capsys.readouterr().err


def test_a_part_that_does_not_exist_is_refused_with_the_choices():
    asked = SimpleNamespace(device="cpu", shape="small", parts="graphs,foo")
    with pytest.raises(SystemExit, match="foo is unknown; choose from: graphs, decoding, "):
        gpu.play_seven(asked, note=None)


def test_an_azr_without_its_history_has_no_commit(monkeypatch, tmp_path):
    monkeypatch.setenv("AZR_HOME", str(tmp_path))
    monkeypatch.setattr(referee.metadata, "version", lambda package: "1.0")
    assert "AZR" not in referee.versions()
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "a"]):
        own = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", "-C", str(tmp_path), *own, *words], check=True)
    assert len(referee.versions()["AZR"]) >= 7


def test_tasks_are_chosen_with_the_limit_that_the_measured_referee_has(monkeypatch, tmp_path):
    made = []

    class Noted(referee.Referee):
        def __init__(self, settings):
            made.append(settings)
            super().__init__(settings)

        def judge(self, questions):
            return []

    monkeypatch.setattr(referee, "Referee", Noted)
    (tmp_path / "seeds.jsonl").write_text("")
    assert referee.read_tasks(tmp_path / "seeds.jsonl") == ([], {})
    assert made[0].cpu_seconds == RefereeSettings().cpu_seconds
