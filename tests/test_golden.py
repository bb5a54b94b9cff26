"""The help of every command, and what commands print, against files of tests/golden.

A text may change: `pytest tests/test_golden.py --update-golden` writes the files anew, and the
difference is read in the commit.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from azr_population.cli import app, main

GOLDEN = Path(__file__).parent / "golden"


def commands(command=app, words=()):
    """The words of every command, those of groups too."""
    yield words
    for name in getattr(command, "commands", {}):
        yield from commands(command.commands[name], (*words, name))


@pytest.fixture
def golden(request, monkeypatch, capsys):
    """Compares what a command prints with a file."""
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")

    def compare(name, *words):
        assert main(words) == 0
        text = "".join(f"{line.rstrip()}\n" for line in capsys.readouterr().out.splitlines())
        file = GOLDEN / f"{name}.txt"
        if request.config.getoption("--update-golden"):
            file.parent.mkdir(exist_ok=True)
            file.write_text(text, encoding="utf-8")
        assert text == file.read_text(encoding="utf-8")

    return compare


@pytest.mark.parametrize("words", list(commands()), ids=lambda words: "-".join(words) or "all")
def test_help(words, golden):
    golden(f"help/{'-'.join(words) or 'azr-population'}", *words, "--help")


@pytest.mark.parametrize(
    "words",
    [
        ("evolve", "--list"),
        ("recipe", "--list"),
        ("train", "--dry-run", "population=2t2s", "run.dir=runs/mine"),
    ],
    ids="-".join,
)
def test_output(words, golden):
    golden(f"output/{'-'.join(word.strip('-') for word in words[:2])}", *words)


def test_the_package_and_its_help_import_neither_torch_nor_pandas():
    code = (
        "import sys, azr_population; dir(azr_population)\n"
        "from azr_population.cli import main; main(['--help'])\n"
        "sys.exit(any(name in sys.modules for name in ('torch', 'pandas', 'hydra', 'yaml')))"
    )
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL)
    assert done.returncode == 0
