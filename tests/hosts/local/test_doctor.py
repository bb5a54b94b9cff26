import re

from azr_population.cli import main
from azr_population.hosts.local.doctor import azr_home


def test_doctor_says_what_is_here_and_what_is_missing(capsys, monkeypatch):
    monkeypatch.delenv("AZR_HOME", raising=False)
    code = main(["doctor"])
    output = capsys.readouterr().out
    assert "torch" in output and "sandbox: seccomp" in output
    assert bool(re.search(r"^ *works +local runs", output, re.MULTILINE)) == (code == 0)
    # Without a checkout the plugin cannot run, whatever is installed.
    assert re.search(r"^ *no +.*AZR_HOME", output, re.MULTILINE)


def test_azr_home_must_hold_azr(tmp_path, monkeypatch):
    monkeypatch.setenv("AZR_HOME", str(tmp_path))
    assert azr_home() is None
    (tmp_path / "absolute_zero_reasoner").mkdir()
    assert azr_home() == tmp_path
