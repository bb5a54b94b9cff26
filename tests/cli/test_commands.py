"""Help and completion of the command line."""

import io
import sys
import tempfile

import pytest
from refusals import refused

from azr_population.cli import main
from azr_population.cli.app import COMPLETE, app


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        *((words, "crossplay") for words in (["-h"], ["help"], [])),
        *((words, "--config-file") for words in (["train", "-h"], ["help", "train"])),
    ],
)
def test_help(words, shown, capsys):
    assert main(words) == 0
    assert shown in capsys.readouterr().out


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


def test_letters_that_a_terminal_lacks_are_written_out(monkeypatch):
    kept = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(kept, "ascii"))
    monkeypatch.setattr("sys.stderr", io.TextIOWrapper(kept, "ascii"))
    assert main(["compare", "rü n"]) == 2
    sys.stderr.flush()
    assert b"r\\xfc n" in kept.getvalue()


def test_no_room_for_temporary_files_is_one_line(monkeypatch, capsys):
    """torch's imports ask for the folder of temporary files; on a full disk Python has none."""
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: ["/proc/nowhere"])
    monkeypatch.setattr(app, "invoke", lambda context: tempfile._get_default_tempdir())
    assert "No usable temporary directory" in refused(capsys, "doctor")
