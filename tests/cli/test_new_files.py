"""`azr-population new`: the files play and their tests run, as they are written."""

import subprocess
import sys

import pytest
from refusals import refused

from azr_population.cli import main


@pytest.mark.parametrize("kind", ("domain", "reward", "operator"))
def test_the_written_test_runs(kind, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["new", kind, "red_fox"]) == 0
    assert "python -m pytest test_red_fox.py" in capsys.readouterr().out
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_red_fox.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout
    assert "red_fox.py exists" in refused(capsys, "new", kind, "red_fox")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ("domain", "reward", "operator"))
def test_the_printed_command_plays(kind, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    name = f"own_{kind}"
    assert main(["new", kind, name]) == 0
    words = capsys.readouterr().out.splitlines()[-1].split()[1:]
    assert main([*words, "population.batch_size=4", "run.dir=run"]) == 0
    assert name in (tmp_path / "run" / "config.yaml").read_text()
    assert (tmp_path / "run" / "tasks.jsonl").read_text().count("\n") > 0
