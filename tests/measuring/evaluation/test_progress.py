from __future__ import annotations

import io
from contextlib import contextmanager

from rich.console import Console

from azr_population.measuring.evaluation import progress


def test_without_a_terminal_lines_say_how_long_it_still_takes(monkeypatch):
    """Once enough is done to tell: the first completion of a slow base says nothing of the rest."""
    beats = []

    @contextmanager
    def beating(beat, seconds):
        assert seconds == 60
        beats.append(beat)
        yield

    clock = iter([0.0, 30.0, 61.0])
    monkeypatch.setattr(progress, "monotonic", lambda: next(clock))
    monkeypatch.setattr(progress, "beating", beating)
    out = io.StringIO()
    with progress.View(Console(file=out, width=80)).bar("GSM8K", 100) as advance:
        for count in (5, 5):
            advance(count)
            beats[0]()
    assert out.getvalue().splitlines() == [
        "GSM8K: 100",
        "GSM8K: 5 of 100, 0:00:30 so far",
        "GSM8K: 10 of 100, 0:01:01 so far, 0:09:09 left",
    ]
