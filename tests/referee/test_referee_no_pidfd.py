"""Where there are no descriptors of processes, children are watched and killed by number."""

from __future__ import annotations

import os
import sys
import time

import pytest

from azr_population.referee import Program, Reason, Referee, RefereeSettings, zygote_handle
from azr_population.referee.sandbox import layers, wire

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is Linux's")

SPIN = "def f(x):\n    while True: pass"


@pytest.mark.parametrize(
    "without",
    ["del os.pidfd_open", "def none(pid): raise OSError(38, 'none')\nos.pidfd_open = none"],
)
def test_verdicts_and_deadlines_hold(monkeypatch, without):
    monkeypatch.setattr(zygote_handle, "_BOOT", f"import os\n{without}\n{zygote_handle._BOOT}")
    settings = RefereeSettings(
        workers=1, timeout=0.5, memory_mb=64, modules=("os",), banned_names=()
    )
    sources = [
        "def f(x): return x + 1",
        SPIN,
        "import os\ndef f(x): os._exit(0)",
        "import os\ndef f(x): os.fork()",
        "def f(x): return 1 / x",
    ]
    with Referee(settings) as referee:
        assert ("deadline", True, "wall clock, kill") in referee.layers
        began = time.monotonic()
        executions = referee.check([Program(source, ("0",)) for source in sources])
        assert time.monotonic() - began < 30
        assert [execution.reason for execution in executions] == [
            Reason.OK,
            Reason.TIMEOUT,
            Reason.CRASHED,
            Reason.FORBIDDEN,
            Reason.ERROR,
        ]
        assert executions[0].outputs == ("1",)


def test_a_zygote_without_pidfd_ends_with_its_trainer(monkeypatch):
    monkeypatch.setattr(
        zygote_handle, "_BOOT", f"import os\ndel os.pidfd_open\n{zygote_handle._BOOT}"
    )
    zygote = zygote_handle.Worker(RefereeSettings(workers=1, timeout=30.0))
    zygote.greet()
    work = wire.SandboxWork(SPIN, (wire.Call(wire.EXPRESSION, "0"),))
    zygote.send(wire.pack([work], 30.0, 30.0))
    zygote.sock.close()  # as a trainer's death does
    assert zygote.process.wait(timeout=60) == 0
    zygote.close()


def test_it_is_seen_whether_there_are_descriptors(monkeypatch):
    monkeypatch.delattr(os, "pidfd_open", raising=False)
    assert not layers.has_pidfd()
