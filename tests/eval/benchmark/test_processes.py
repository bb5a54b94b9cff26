"""Judges' own processes, started from where people start them."""

import resource
import signal
import subprocess
import sys
import time

import pytest

from azr_population.eval.benchmark import mathematics
from azr_population.eval.benchmark.mathematics import read_within_limits
from azr_population.eval.benchmark.problem import VerdictLost

JUDGE = """
from azr_population.eval.benchmark.mathematics import MathProblem
problem = MathProblem("1", "", "7")
print([verdict.passed for verdict in MathProblem.judge([(problem, "7"), (problem, "8")])])
"""
IN_A_THREAD = f"""
import threading
thread = threading.Thread(target=exec, args=({JUDGE!r}, {{}}))
thread.start()
thread.join()
"""


def _limit():
    """As batch systems do: a hard limit of address space below the judges' own."""
    resource.setrlimit(resource.RLIMIT_AS, (3_500_000_000, 3_500_000_000))


@pytest.mark.parametrize("how", ["standard input", "a script without a guard", "a thread"])
def test_a_judge_is_called_from_anywhere(tmp_path, how):
    script = tmp_path / "script.py"
    script.write_text(IN_A_THREAD if how == "a thread" else JUDGE)
    done = subprocess.run(
        [sys.executable, "-" if how == "standard input" else str(script)],
        input=JUDGE,
        preexec_fn=_limit,
        capture_output=True,
        text=True,
    )
    assert done.stdout == "[True, False]\n", done.stderr


@pytest.mark.parametrize(
    ("function", "argument", "what"),
    [(signal.raise_signal, signal.SIGKILL, "killed"), (time.sleep, 60, "processor time")],
)
def test_a_reader_that_is_killed_or_gets_no_time_is_not_a_verdict(
    monkeypatch, function, argument, what
):
    monkeypatch.setattr(mathematics, "READING_SECONDS", 0.05)
    with pytest.raises(VerdictLost, match=what):
        read_within_limits(function, [(argument,)])


def test_a_reader_that_reaches_its_limits_or_crashes_is_one(monkeypatch):
    monkeypatch.setattr(mathematics, "READING_SECONDS", 0.2)
    assert read_within_limits(exec, [("while True: pass",), ("[0] * 10**12",)]) == [None, None]
    assert read_within_limits(signal.raise_signal, [(signal.SIGSEGV,)]) == [None]
    assert read_within_limits(abs, [(-1,)]) == [1]
