"""Limits of the CPU time of a script and of its parts."""

import time

from azr_population.referee import Reason, Referee, RefereeSettings
from azr_population.referee.sandbox.wire import SCRIPT, Call, SandboxWork

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
    works = [SandboxWork("", (Call(SCRIPT, call),), isolated=True) for call in calls]
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
    work = SandboxWork("", (Call(SCRIPT, "counted(1, 10**12)"),), isolated=True)
    settings = RefereeSettings(
        workers=1, timeout=3600.0, cpu_seconds=360.0, part_seconds=0.2, prelude=PRELUDE
    )
    start = time.monotonic()
    with Referee(settings) as referee:
        ((outcome,),) = referee.run([work])
    assert outcome.reason is Reason.TIMEOUT
    assert time.monotonic() - start < 180
