"""Whole runs with loggers: what is played is the same, whatever becomes of the logger."""

import needs
import pytest
from small_run import SMALL

from azr_population.cli import main
from azr_population.config.load import load_config, to_yaml
from azr_population.hosts.local import run as local
from azr_population.hosts.local.run import Run
from azr_population.runs.checkpoint import members_digest

pytestmark = pytest.mark.integration


@pytest.fixture
def digest(small_run):
    """Of the members of a run without a logger."""
    assert not (small_run / "tensorboard").exists()
    return members_digest(small_run / "members")


def test_a_logger_does_not_change_what_is_played(digest, tmp_path):
    needs.module("tensorboard", "tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    typed = [*SMALL, f"run.dir={tmp_path / 'run'}", "logger=tensorboard"]
    assert main(["train", *typed, "run.steps=1"]) == 0
    assert main(["resume", str(tmp_path / "run"), "run.steps=2"]) == 0
    assert members_digest(tmp_path / "run" / "members") == digest
    events = EventAccumulator(str(tmp_path / "run" / "tensorboard"))
    events.Reload()
    assert [event.step for event in events.Scalars("time/step")] == [1, 2]
    names = set(events.Tags()["scalars"])
    assert {"teacher/valid_frac", "student_0/mu"} <= names
    assert "time/update" in names


def test_a_logger_that_fails_at_every_step_stops_nothing(digest, tmp_path, monkeypatch, capsys):
    class Broken:
        def log(self, step, figures):
            raise RuntimeError("broken")

        def close(self):
            raise RuntimeError("broken")

    opened = local.open_loggers
    monkeypatch.setattr(
        local,
        "open_loggers",
        lambda *arguments: type(opened(*arguments))({"broken": Broken()}, arguments[3]),
    )
    assert main(["train", *SMALL, "run.steps=2", f"run.dir={tmp_path / 'run'}"]) == 0
    assert members_digest(tmp_path / "run" / "members") == digest
    assert capsys.readouterr().out.count("logger broken failed (RuntimeError: broken)") == 1


def test_a_run_gone_on_with_by_train_takes_the_logger_that_is_typed(tmp_path, monkeypatch):
    needs.module("tensorboard", "tensorboard")
    (tmp_path / "config.yaml").write_text(to_yaml(load_config(SMALL)))
    logged = []

    def resume(path, overrides, view):
        logged.extend(overrides)
        return Run(path)

    monkeypatch.setattr(local, "resume", resume)
    again = [*SMALL, f"run.dir={tmp_path}", "run.resume=true", "logger=tensorboard"]
    assert main(["train", *again]) == 0
    assert "logger=tensorboard" in logged and "engine.threads=1" not in logged


def test_a_missing_package_is_told_before_anything_is_made(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("azr_population.hosts.loggers.find_spec", lambda name: None)
    assert main(["train", *SMALL, f"run.dir={tmp_path / 'run'}", "logger=wandb"]) == 2
    assert "pip install wandb" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
