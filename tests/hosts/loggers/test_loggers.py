"""A logger that fails is told of once and never stops a run."""

import threading

import pytest
from refusals import refuses

from azr_population.config.load import config_from_file, load_config, to_yaml
from azr_population.hosts import loggers
from azr_population.hosts.loggers import LOGGERS, Loggers, check_loggers, open_loggers, step_figures
from azr_population.method.run_plan import RunPlan
from azr_population.runs import RunDirectory


class Kept:
    """Keeps what it is given."""

    def __init__(self):
        self.steps = []

    def log(self, step, figures):
        self.steps.append((step, dict(figures)))

    def close(self):
        self.steps.append("closed")


class Failing(Kept):
    def __init__(self, error):
        super().__init__()
        self.error = error

    def log(self, step, figures):
        super().log(step, figures)
        raise self.error


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), SystemExit(4)])
def test_a_failing_logger_is_told_of_once_and_the_others_go_on(error):
    notes, full, working = [], Failing(error), Kept()
    all_of_them = Loggers({"full": full, "kept": working}, notes.append)
    for step in (1, 2):
        all_of_them.log(step, {"a": 1.0})
    all_of_them.close()
    (note,) = notes
    assert "full" in note and f"{type(error).__name__}: " in note and "\n" not in note
    assert full.steps == [(1, {"a": 1.0})]
    assert working.steps == [(1, {"a": 1.0}), (2, {"a": 1.0}), "closed"]


def test_a_logger_that_cannot_be_opened_is_told_of_and_left_out(monkeypatch, tmp_path):
    def refuse(directory, step):
        raise ConnectionError("no route to host\nand more")

    monkeypatch.setitem(LOGGERS, "tensorboard", refuse)
    notes = []
    opened = open_loggers(["tensorboard"], RunDirectory(tmp_path), 0, notes.append)
    opened.log(1, {})
    opened.close()
    (note,) = notes
    assert "tensorboard" in note and "ConnectionError: " in note and "\n" not in note


def test_a_logger_that_does_not_close_is_left_behind(monkeypatch):
    monkeypatch.setattr(loggers, "CLOSE_SECONDS", 0.01)
    never = threading.Event()

    class Hanging(Kept):
        def close(self):
            never.wait()

    notes = []
    Loggers({"hanging": Hanging()}, notes.append).close()
    never.set()
    assert len(notes) == 1 and "hanging" in notes[0]


def test_a_missing_package_is_told_with_the_extra_that_installs_it(monkeypatch):
    monkeypatch.setattr("azr_population.hosts.loggers.find_spec", lambda name: None)
    for name in LOGGERS:
        with refuses(f"pip install {name}"):
            check_loggers(RunPlan.of(load_config([f"logger={name}"])))


def test_a_resumed_run_may_change_its_logger(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(to_yaml(load_config(["logger=wandb"])))
    assert config_from_file(path).logger.names == ["wandb"]
    assert config_from_file(path, ["logger=tensorboard"]).logger.names == ["tensorboard"]
    assert config_from_file(path, ["logger=none"]).logger.names == []


def test_loggers_get_the_finite_numbers_of_a_line_under_their_names():
    line = {
        "step": 3, "time/step": 1.5, "teacher_0/updates": 1, "words": "student_1",
        "agent/loss": float("nan"), "agent/ok": True, "agent/x": None,
    }  # fmt: skip
    assert step_figures(line) == {"time/step": 1.5, "teacher_0/updates": 1.0}
