import io
import signal
import threading

import pytest
from rich.console import Console

from azr_population.console import heartbeat
from azr_population.console import view as view_module
from azr_population.console.view import LinesView


@pytest.fixture
def alarm(monkeypatch):
    """The process's alarm, rung by hand."""
    held = {"handler": signal.SIG_DFL, "timers": []}
    monkeypatch.setattr(signal, "getsignal", lambda number: held["handler"])
    monkeypatch.setattr(signal, "signal", lambda number, to: held.update(handler=to))
    monkeypatch.setattr(signal, "siginterrupt", lambda number, flag: None)
    monkeypatch.setattr(
        signal, "setitimer", lambda which, *arguments: held["timers"].append(arguments)
    )
    return held


def test_it_beats_while_inside_and_gives_the_alarm_back(alarm):
    beats = []
    with heartbeat.heartbeat(lambda: beats.append(1), 60.0):
        alarm["handler"](signal.SIGALRM, None)
    assert beats == [1] and alarm["timers"] == [(60.0, 60.0), (0.0,)]
    assert alarm["handler"] is signal.SIG_DFL


def test_an_alarm_of_somebody_else_is_left_alone(alarm):
    alarm["handler"] = handler = object()
    with heartbeat.heartbeat(lambda: None, 60.0):
        assert alarm["handler"] is handler
    alarm["handler"] = signal.SIG_DFL
    thread = threading.Thread(target=lambda: heartbeat.heartbeat(lambda: None, 1.0).__enter__())
    thread.start()
    thread.join()
    assert alarm["timers"] == []


def test_lines_tell_the_phase_of_a_long_step(alarm, monkeypatch):
    monkeypatch.setattr(view_module, "current_phase", lambda: "solve")
    out = io.StringIO()
    view = LinesView(Console(file=out, width=80))
    view.on_start({"name": "4t4s", "steps": 5, "step": 2, "dir": "x"})
    alarm["handler"](signal.SIGALRM, None)
    view.on_end({})
    assert "step 3: solve, 0:00" in out.getvalue()
    assert alarm["handler"] is signal.SIG_DFL
