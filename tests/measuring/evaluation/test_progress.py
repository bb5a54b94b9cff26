from __future__ import annotations

import io

from rich.console import Console

from azr_population.measuring.evaluation import progress


def test_without_a_terminal_lines_say_how_long_it_still_takes(monkeypatch):
    clock = iter([0.0, 30.0, 61.0, 62.0, 130.0])
    monkeypatch.setattr(progress, "monotonic", lambda: next(clock))
    out = io.StringIO()
    with progress.View(Console(file=out, width=80)).bar("GSM8K", 100) as advance:
        for count in (5, 5, 0, 40):
            advance(count)
    assert out.getvalue().splitlines() == [
        "GSM8K: 100",
        "GSM8K: 10 of 100, 0:09:09 left",
        "GSM8K: 50 of 100, 0:02:10 left",
    ]
