"""Limits of the CPU time of a script and of its parts."""

import os
import resource
from pathlib import Path

from azr_population.referee import Reason, Referee, RefereeSettings
from azr_population.referee.sandbox.wire import LITERAL, SCRIPT, Call, SandboxWork

PRELUDE = """
def counted(parts, turns):
    for _ in range(parts):
        time_part(True)
        for _ in range(turns):
            pass
        time_part(False)
    return "counted"
"""


def test_each_part_of_a_script_has_its_time_and_their_sum_has_another():
    """10**7 turns take a few tenths of a second on any machine that this runs on."""
    calls = (
        "counted(1, 10**12)",
        "counted(40, 10**6)",
        "counted(1000, 10**7)",
        "time_part(0) or 5",
    )
    works = [SandboxWork("", (Call(SCRIPT, call),)) for call in calls]
    settings = RefereeSettings(
        workers=1, timeout=600.0, cpu_seconds=1.5, part_seconds=0.8, prelude=PRELUDE
    )
    with Referee(settings) as referee:
        (endless,), (short,), (long,), (none,) = referee.run(works)
    assert (short, none) == ((Reason.OK, "counted"), (Reason.OK, "5"))
    assert endless.reason is long.reason is Reason.TIMEOUT
    with Referee(RefereeSettings(workers=1)) as referee:
        ((outcome,),) = referee.run([works[1]])
    assert outcome.reason is Reason.ERROR, "no prelude, no names of it"


def test_a_part_is_ended_long_before_the_whole():
    work = SandboxWork("", (Call(SCRIPT, "counted(1, 10**12)"),))
    settings = RefereeSettings(
        workers=1, timeout=3600.0, cpu_seconds=360.0, part_seconds=0.2, prelude=PRELUDE
    )
    before = _children_cpu()
    with Referee(settings) as referee:
        ((outcome,),) = referee.run([work])
    assert outcome.reason is Reason.TIMEOUT
    # Processor time, which does not grow on a busy machine; most of it is the worker's start.
    assert _children_cpu() - before < settings.cpu_seconds / 10


def test_a_call_ends_at_its_own_processor_time():
    """Within a few milliseconds, also on a busy machine: it is measured by the kernel's exact
    clock. (An interval timer counts ticks, and is half as much off.)"""
    loop = "def f(n):\n    while n: n -= 1\n    return 7"
    program = SandboxWork(loop, (Call(LITERAL, "-1"),))
    for limit in (0.2, 0.8):
        with Referee(RefereeSettings(workers=1, timeout=600.0, cpu_seconds=limit)) as referee:
            referee.run([SandboxWork("def f(n): return n", (Call(LITERAL, "1"),))])
            (zygote,) = [worker.process.pid for worker in referee._workers]
            before = _reaped_cpu(zygote)
            ((outcome,),) = referee.run([program])
            used = _reaped_cpu(zygote) - before
        assert outcome.reason is Reason.TIMEOUT
        assert limit <= used + 0.02 and used < limit + 0.15


def _children_cpu():
    """Seconds of this process's children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _reaped_cpu(pid):
    """Seconds of a process's children that have ended, in hundredths."""
    stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, stat[13:15])) / os.sysconf("SC_CLK_TCK")
