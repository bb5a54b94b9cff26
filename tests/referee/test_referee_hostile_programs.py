"""Every hostile program gets its verdict in time, escapes nothing and delays nobody."""

from __future__ import annotations

import os
import time

import pytest
from hostile_naked import NAKED
from hostile_walled import WALLED

from azr_population.referee import Execution, Program, Reason, Referee, RefereeSettings
from azr_population.referee.limits import MODULES

DEADLINE = 5.0
"""Wall-clock seconds, of which an honest program needs some hundredths; endless ones end by their
processor time."""
BUSY_MACHINE_SECONDS = 200.0
EVERYTHING = (
    *MODULES, "_thread", "atexit", "builtins", "ctypes", "gc", "inspect", "mmap", "multiprocessing",
    "os", "resource", "signal", "socket", "subprocess", "sys", "tempfile", "threading", "time",
)  # fmt: skip
FRIEND = Program("def f(x): return x * 2", ("21",))
NAKED_SETTINGS = RefereeSettings(
    workers=2, timeout=DEADLINE, cpu_seconds=0.5, memory_mb=128, modules=EVERYTHING, banned_names=()
)
MARK = "/tmp/referee-was-here"


@pytest.fixture(scope="module")
def naked():
    with Referee(NAKED_SETTINGS) as referee:
        yield referee


@pytest.fixture(scope="module")
def walled():
    with Referee(
        RefereeSettings(workers=2, timeout=DEADLINE, cpu_seconds=0.5, memory_mb=128)
    ) as referee:
        yield referee


def assert_held(execution: Execution, reasons: set[str]) -> None:
    assert str(execution.reason) in reasons, execution
    assert execution.outputs in ((), ("'held'",)), execution


def judge_beside_a_friend(referee: Referee, source: str) -> Execution:
    began = time.monotonic()
    execution, friend = referee.check([Program(source, ("3",)), FRIEND])
    assert time.monotonic() - began < BUSY_MACHINE_SECONDS
    assert (friend.reason, friend.outputs) == (Reason.OK, ("42",))
    assert not os.path.lexists(MARK)
    return execution


@pytest.mark.parametrize("name", NAKED)
def test_the_kernel_alone_holds(naked, name):
    reasons, source = NAKED[name]
    assert_held(judge_beside_a_friend(naked, source), reasons)


@pytest.mark.parametrize("name", WALLED)
def test_the_defaults_hold(walled, name):
    reasons, source = WALLED[name]
    assert_held(judge_beside_a_friend(walled, source), reasons)
