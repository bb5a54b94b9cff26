"""The referee as a service: threads, killed workers, closing, and when it does not start."""

import os
import select
import signal
import subprocess
import sys
import threading

import pytest
from processes import children_of, kill_one
from refusals import refuses

from azr_population.referee import Program, Question, Referee, RefereeSettings

PLUS_ONE = "def f(x): return x + 1"


def plus_one(referee):
    """What it makes of a task that any working referee can do."""
    return referee.check([Program(PLUS_ONE, ("1",))])[0]


def test_threads_take_turns(referee):
    outputs = {}

    def ask(base):
        programs = [Program(PLUS_ONE, (str(base + n),)) for n in range(20)]
        outputs[base] = [execution.outputs[0] for execution in referee.check(programs)]

    threads = [threading.Thread(target=ask, args=(base,)) for base in (0, 100, 200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outputs == {base: [str(base + n + 1) for n in range(20)] for base in (0, 100, 200)}


def test_a_stream_that_is_open_refuses_another_of_its_thread(referee):
    stream = referee.stream([Question("code_o", PLUS_ONE, ("1",))] * 3)
    assert next(stream).execution.outputs == ("2",)
    with pytest.raises(ValueError, match="other stream"):
        plus_one(referee)
    stream.close()
    assert plus_one(referee).outputs == ("2",)


def test_killed_workers_and_children_lose_nothing():
    programs = [Program("def f(x): return sum(range(9000)) * 0 + x", (str(n),)) for n in range(400)]
    with Referee(RefereeSettings(workers=2, timeout=60.0)) as referee:
        done = threading.Event()
        killed = []

        def kill():
            while len(killed) < 8 and not done.wait(0.13 if killed else 0.03):
                zygote = referee._workers[len(killed) % 2].process
                kill_one(zygote, child=len(killed) % 4 >= 2)
                killed.append(zygote.pid)

        killer = threading.Thread(target=kill)
        killer.start()
        try:
            executions = referee.check(programs)
        finally:
            done.set()
            killer.join()
        assert killed
        assert [e.outputs for e in executions] == [(str(n),) for n in range(400)]


def test_an_abandoned_stream_leaves_a_working_referee():
    questions = [Question("code_o", PLUS_ONE, (str(n),), answers=("1",)) for n in range(50)]
    with Referee(RefereeSettings(workers=2, timeout=60.0)) as referee:
        stream = referee.stream(questions)
        assert next(stream).execution.outputs == ("1",)
        stream.close()
        assert [j.execution.outputs for j in referee.judge(questions)] == [
            (str(n + 1),) for n in range(50)
        ]


def test_closing_ends_every_process_and_descriptor():
    before = set(os.listdir("/proc/self/fd"))
    referee = Referee(RefereeSettings(workers=2))
    pids = [worker.process.pid for worker in referee._workers]
    assert plus_one(referee).valid
    referee.close()
    referee.close()
    assert set(os.listdir("/proc/self/fd")) == before
    assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)
    with pytest.raises(ValueError):
        referee.check([Program(PLUS_ONE, ("1",))])


def test_a_forked_trainer_gets_workers_of_its_own(referee):
    pid = os.fork()
    if pid == 0:
        try:
            ok = plus_one(referee).outputs == ("2",)
            referee.close()
            os._exit(0 if ok else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert plus_one(referee).outputs == ("2",)


def test_without_seccomp_it_refuses_unless_that_is_allowed():
    with refuses("allow_unsandboxed=true"):
        Referee(RefereeSettings(workers=1, leave_out=("seccomp",)))
    accepted = RefereeSettings(workers=1, leave_out=("seccomp",), allow_unsandboxed=True)
    with Referee(accepted) as referee:
        assert plus_one(referee).valid
        assert not dict((n, ok) for n, ok, _ in referee.layers)["seccomp"]


def test_a_module_that_must_be_there_is_asked_for():
    with refuses("no_such_module"):
        Referee(RefereeSettings(workers=1, required_modules=("no_such_module",)))


def test_workers_end_with_the_trainer():
    script = (
        "import os, time\nfrom azr_population.referee import *\n"
        "referee = Referee(RefereeSettings(workers=2, timeout=60.0))\n"
        "print(*[worker.process.pid for worker in referee._workers], flush=True)\n"
        "referee.check([Program('def f(x):\\n while True: pass', ('1',))])"
    )
    trainer = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    pids = [int(pid) for pid in trainer.stdout.readline().split()]
    assert len(pids) == 2
    busy = {pid for zygote in pids for pid in children_of(zygote)}
    ends = [os.pidfd_open(pid) for pid in [*pids, *busy]]
    trainer.kill()
    trainer.wait()
    trainer.stdout.close()
    for end in ends:
        assert select.select([end], [], [], 60.0)[0]
        os.close(end)


def test_with_too_few_descriptors_it_says_so():
    code = "from azr_population.referee import *\nReferee(RefereeSettings(workers=4))"
    done = subprocess.run(
        ["sh", "-c", f"ulimit -n 12; exec {sys.executable} -c '{code}'"], capture_output=True
    )
    assert b"UserError: referee: " in done.stderr.splitlines()[-1]


def computes(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] == "R"
    except OSError:
        return False


@pytest.mark.parametrize("name", ["TERM", "HUP", "USR1", "INT", "SEGV", "PROF", "XCPU", "STOP"])
def test_a_signal_from_outside_changes_no_verdict(name):
    program = Program("import random\ndef f(n):\n    while n: n -= 1\n    return 1", ("1000000",))
    sent = []

    def interfere():
        worker = referee._workers[0].process.pid
        while not sent and not done.is_set():
            for child in children_of(worker):
                if computes(child):
                    os.kill(child, getattr(signal, f"SIG{name}"))
                    sent.append(child)

    with Referee(RefereeSettings(workers=1)) as referee:
        for _ in range(3):
            done = threading.Event()
            thread = threading.Thread(target=interfere)
            thread.start()
            (execution,) = referee.check([program])
            done.set()
            thread.join()
            assert execution.outputs == ("1",)
            sent.clear()
