"""Help and completion of the command line."""

import pytest

from azr_population.cli import main
from azr_population.cli.app import COMPLETE


@pytest.mark.parametrize("words", (["-h"], ["help"], []))
def test_help_of_the_program(words, capsys):
    assert main(words) == 0
    assert "crossplay" in capsys.readouterr().out


@pytest.mark.parametrize("words", (["train", "-h"], ["help", "train"], ["train", "--help"]))
def test_help_of_a_command(words, capsys):
    assert main(words) == 0
    assert "--config-file" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "completed"),
    [
        ("cross", "crossplay"),
        ("train run.st", "run.steps="),
        ("demo population=4", "population=4t4s"),
        ("train --dry", "--dry-run"),
    ],
)
def test_a_shell_asks_for_completions(line, completed, monkeypatch, capsys):
    monkeypatch.setenv(COMPLETE, "bash_complete")
    monkeypatch.setenv("COMP_WORDS", f"azr-population {line}")
    monkeypatch.setenv("COMP_CWORD", str(len(line.split())))
    assert main([]) == 0
    assert completed in [line.split(",")[1] for line in capsys.readouterr().out.splitlines()]
