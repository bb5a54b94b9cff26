"""Hostile programs that run naked: every module importable and no banned names, so that only the
kernel's layers stand in their way. Data for test_referee_hostile_programs.py.

Each entry: name -> (reasons that the referee may give, source). A program that gets through what it
tries returns "escaped"; where the attempt merely fails inside the program, it returns "held" and
the reason is `ok`. Those that run under the referee's defaults are in hostile_walled.py.
"""

# ruff: noqa: E501

from __future__ import annotations

import platform

_X86 = platform.machine() == "x86_64"


def _raw(number_x86: int, number_arm: int, arguments: str = "0, 0, 0, 0, 0, 0") -> str:
    number = number_x86 if _X86 else number_arm
    return (
        "import ctypes\ndef f(x):\n    libc = ctypes.CDLL(None, use_errno=True)\n"
        f"    result = libc.syscall({number}, {arguments})\n"
        "    return 'escaped' if result >= 0 else 'held'\n"
    )


def _try(body: str, imports: str = "os", otherwise: str = "'escaped'") -> str:
    return f"import {imports}\ndef f(x):\n    {body}\n    return {otherwise}\n"


KILLED = {"forbidden"}
REFUSED = {"error"}
STOPPED = {"error", "forbidden"}
SLOW = {"timeout"}

NAKED = {
    # processes and threads
    "fork bomb": (KILLED, _try("while True: os.fork()")),
    "fork once": (KILLED, _try("os.fork()")),
    "fork in a handler": (KILLED, "import os\ndef f(x):\n    while True:\n        try: os.fork()\n        except: pass\n"),
    "forkpty": (STOPPED, _try("os.forkpty()")),
    "thread bomb": (KILLED, _try("while True: threading.Thread(target=f, args=(x,)).start()", "threading")),
    "raw thread": (KILLED, _try("_thread.start_new_thread(print, ())", "_thread")),
    "vfork": (KILLED, _try("ctypes.CDLL(None).vfork()", "ctypes")),
    "clone": (KILLED, _raw(56, 220, "0x10011, 0, 0, 0, 0")),
    "clone3": (KILLED, _raw(435, 435)),
    "shell": (KILLED, _try("os.system('true')")),
    "popen": (STOPPED, _try("os.popen('true').read()")),
    "subprocess": (STOPPED, _try("subprocess.run(['/bin/true'])", "subprocess")),
    "exec": (KILLED, _try("os.execv('/bin/sh', ['sh'])")),
    "exec by descriptor": (STOPPED, _raw(322, 281, "-1, b'/bin/true', 0, 0, 0")),
    "posix_spawn": (KILLED, _try("os.posix_spawn('/bin/true', ['true'], {})")),
    "multiprocessing": (STOPPED, _try("multiprocessing.Process(target=print).start()", "multiprocessing")),
    # signals and other processes
    "kill the parent": (KILLED, _try("os.kill(os.getppid(), 9)")),
    "kill everybody": (KILLED, _try("os.kill(-1, 9)")),
    "kill the group": (KILLED, _try("os.killpg(0, 9)")),
    "stop itself": (KILLED, _try("signal.raise_signal(signal.SIGSTOP)", "signal")),
    "ignore signals": (SLOW, "import signal\ndef f(x):\n    for s in range(1, 65):\n        try: signal.signal(s, signal.SIG_IGN)\n        except Exception: pass\n    while True: pass\n"),
    "handle SIGSYS": (KILLED, "import signal, os\ndef f(x):\n    try: signal.signal(signal.SIGSYS, lambda *a: None)\n    except OSError: pass\n    os.fork()\n    return 'escaped'\n"),
    "alarm": (KILLED, _try("signal.alarm(1)", "signal")),
    "interval timer": (KILLED, _try("signal.setitimer(signal.ITIMER_REAL, 0.01)", "signal")),
    "ptrace": (KILLED, _raw(101, 117, "16, 1, 0, 0")),
    "process_vm_readv": (KILLED, _raw(310, 270, "1, 0, 0, 0, 0, 0")),
    "process_vm_writev": (KILLED, _raw(311, 271, "1, 0, 0, 0, 0, 0")),
    "pidfd_open": (KILLED, _try("os.pidfd_open(1)")),
    "pidfd_getfd": (KILLED, _raw(438, 438, "3, 0, 0")),
    "kcmp": (KILLED, _raw(312, 272)),
    "renice": (KILLED, _try("os.nice(-20)")),
    "move to another core": (KILLED, _try("os.sched_setaffinity(0, {0})")),
    # limits and privileges
    "raise its limits": (KILLED, _try("resource.setrlimit(resource.RLIMIT_NOFILE, (99, 99))", "resource")),
    "limit the parent": (KILLED, _try("resource.prlimit(1, resource.RLIMIT_CPU, (1, 1))", "resource")),
    "setuid": (KILLED, _try("os.setuid(0)")),
    "setgroups": (KILLED, _try("os.setgroups([0])")),
    "capset": (KILLED, _raw(126, 91)),
    "chroot": (KILLED, _try("os.chroot('/')")),
    "unshare": (KILLED, _try("ctypes.CDLL(None).unshare(0x10000000)", "ctypes")),
    "setns": (KILLED, _try("ctypes.CDLL(None).setns(0, 0)", "ctypes")),
    "mount": (KILLED, _raw(165, 40)),
    "prctl dumpable": (KILLED, _try("ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)", "ctypes")),
    "prctl parent death": (KILLED, _try("ctypes.CDLL(None).prctl(1, 0, 0, 0, 0)", "ctypes")),
    "another filter": (KILLED, _raw(317, 277, "1, 0, 0")),
    "another Landlock": (KILLED, _raw(444, 444)),
    "personality": (KILLED, _raw(135, 92)),
    # kernel machinery that needs no descriptor
    "io_uring": (KILLED, _raw(425, 425, "8, 0")),
    "bpf": (KILLED, _raw(321, 280)),
    "perf_event_open": (KILLED, _raw(298, 241)),
    "userfaultfd": (KILLED, _raw(323, 282)),
    "keyctl": (KILLED, _raw(250, 219)),
    "add_key": (KILLED, _raw(248, 217)),
    "memfd_create": (KILLED, _try("os.memfd_create('m')")),
    "eventfd": (KILLED, _raw(290, 19)),
    "epoll": (KILLED, _raw(291, 20)),
    "inotify": (KILLED, _raw(294, 26)),
    "timer_create": (KILLED, _raw(222, 107)),
    "shmget": (KILLED, _raw(29, 194, "0, 4096, 0x200")),
    "semget": (KILLED, _raw(64, 190, "0, 1, 0x200")),
    "msgget": (KILLED, _raw(68, 186)),
    "mlockall": (KILLED, _raw(151, 230, "3")),
    "sendfile": (KILLED, _raw(40, 71, "1, 0, 0, 10")),
    "splice": (KILLED, _raw(275, 76)),
    "reboot": (KILLED, _raw(169, 142)),
    "unknown call": (KILLED, _raw(9999, 9999)),
    "x32 numbering": (KILLED, _raw(1073741824 + 39, 9998)),
    # files
    "read a file": (REFUSED, _try("open('/etc/passwd').read()")),
    "read its own interpreter": (REFUSED, _try("open(sys.executable, 'rb').read(4)", "sys")),
    "write a file": (REFUSED, _try("open('/tmp/referee-was-here', 'w').write('x')")),
    "make a folder": (REFUSED, _try("os.mkdir('/tmp/referee-was-here')")),
    "make a pipe file": (KILLED, _try("os.mkfifo('/tmp/referee-was-here')")),
    "link a file": (STOPPED, _try("os.symlink('/etc/passwd', '/tmp/referee-was-here')")),
    "remove a file": (REFUSED, _try("os.unlink('/etc/passwd')")),
    "list a folder": (REFUSED, _try("os.listdir('/')")),
    "look at a file": (REFUSED, _try("os.stat('/')")),
    "change folder": (REFUSED, _try("os.chdir('/tmp')")),
    "own memory file": (REFUSED, _try("open('/proc/self/mem', 'r+b')")),
    "own environment file": (REFUSED, _try("open('/proc/self/environ').read()")),
    "parent's descriptors": (REFUSED, _try("os.listdir('/proc/1/fd')")),
    "terminal": (REFUSED, _try("open('/dev/tty', 'w')")),
    "temporary file": (REFUSED, _try("tempfile.TemporaryFile()", "tempfile")),
    "raw openat": ({"ok"}, _raw(257, 56, "-100, b'/etc/passwd', 0")),
    # descriptors and network
    "inherited descriptors": ({"ok"}, "import os\ndef f(x):\n    for fd in range(4096):\n        try: os.fstat(fd)\n        except OSError: continue\n        return 'escaped'\n    return 'held'\n"),
    "write to descriptors": ({"ok"}, "import os\ndef f(x):\n    for fd in range(256):\n        try: os.write(fd, b'x')\n        except OSError: continue\n        return 'escaped'\n    return 'held'\n"),
    "close descriptors": ({"ok", "forbidden"}, _try("os.closerange(0, 64)", otherwise="'held'")),
    "make a pipe": (REFUSED, _try("os.pipe()")),
    "TCP": (REFUSED, _try("socket.create_connection(('127.0.0.1', 22))", "socket")),
    "UDP": (REFUSED, _try("socket.socket(socket.AF_INET, socket.SOCK_DGRAM)", "socket")),
    "abstract socket": (REFUSED, _try("socket.socket(socket.AF_UNIX)", "socket")),
    "socket pair": (REFUSED, _try("socket.socketpair()", "socket")),
    "netlink": (REFUSED, _try("socket.socket(16, 3, 0)", "socket")),
    # native code
    "null pointer": ({"crashed"}, _try("ctypes.string_at(0)", "ctypes")),
    "executable memory": (STOPPED, _try("mmap.mmap(-1, 4096, prot=7)", "mmap")),
    "make memory executable": ({"ok"}, "import ctypes\ndef f(x):\n    b = ctypes.create_string_buffer(8192)\n    page = (ctypes.addressof(b) + 4095) & ~4095\n    r = ctypes.CDLL(None).mprotect(ctypes.c_void_p(page), ctypes.c_size_t(4096), 7)\n    return 'escaped' if r == 0 else 'held'\n"),
    "overwrite its code": ({"crashed"}, "import ctypes\ndef f(x):\n    ctypes.memset(ctypes.cast(ctypes.pythonapi.PyLong_FromLong, ctypes.c_void_p), 0, 16)\n    return 'escaped'\n"),
    "abort": (STOPPED | {"crashed"}, _try("os.abort()")),
    # its own end
    "exit 0": ({"crashed"}, _try("os._exit(0)")),
    "exit 7": ({"crashed"}, _try("os._exit(7)")),
    "sys.exit": (REFUSED, _try("sys.exit(0)", "sys")),
    "keyboard interrupt": (REFUSED, "def f(x): raise KeyboardInterrupt"),
    "catch everything": (SLOW, "def f(x):\n    while True:\n        try:\n            while True: pass\n        except BaseException: pass\n"),
    "atexit": ({"ok"}, "import atexit, os\ndef f(x):\n    atexit.register(lambda: os._exit(9))\n    return 'held'\n"),
    # time and memory
    "busy loop": (SLOW, "def f(x):\n    while True: pass\n"),
    "busy module": (SLOW, "while True: pass\ndef f(x): return 1\n"),
    "sleep": (REFUSED, _try("time.sleep(60)", "time")),
    "sleep on a lock": (SLOW, "import threading\ndef f(x):\n    threading.Semaphore(0).acquire()\n"),
    "big power": ({"memory", "timeout"}, "def f(x): return str(10 ** 10 ** 8)"),
    "catastrophic regex": (SLOW, "import re\ndef f(x): return bool(re.match('(a+)+$', 'a'*40+'b'))"),
    "endless sum": (SLOW, "import itertools\ndef f(x): return sum(itertools.count())"),
    "memory by list": ({"memory", "timeout"}, "def f(x):\n    a = []\n    while True: a.append(bytes(1 << 20))"),
    "memory at once": ({"memory"}, "def f(x): return len(bytearray(1 << 40))"),
    "memory by doubling": ({"memory", "timeout"}, "def f(x):\n    s = 'ab'\n    while True: s += s"),
    "memory by mmap": (REFUSED | {"memory", "timeout"}, _try("mmap.mmap(-1, 1 << 40)", "mmap")),
    "memory, caught": ({"memory", "timeout"}, "def f(x):\n    a = []\n    while True:\n        try:\n            a.append(bytes(1 << 16))\n        except MemoryError: pass\n"),
    "zip bomb": ({"memory", "timeout"}, "import zlib\ndef f(x):\n    c = zlib.compressobj()\n    z = b''.join(c.compress(bytes(1 << 20)) for _ in range(200)) + c.flush()\n    return len(zlib.decompress(z))\n"),
    "deep recursion": (REFUSED, "def f(x): return f(x + 1)"),
    "deeper recursion": ({"crashed", "error", "memory", "timeout"}, "import sys\ndef f(x):\n    sys.setrecursionlimit(10 ** 9)\n    def g(n): return g(n + 1)\n    class A:\n        def __getattr__(self, name): return getattr(self, name + 'x')\n    return A().y\n"),
    "stack by repr": ({"crashed", "error", "memory", "timeout"}, "import sys\ndef f(x):\n    sys.setrecursionlimit(10 ** 9)\n    a = []\n    for _ in range(10 ** 6): a = [a]\n    return len(repr(a))\n"),
    # output
    "stdout flood": (SLOW, "def f(x):\n    while True: print('x' * 10000)"),
    "stderr flood": (SLOW, "import sys\ndef f(x):\n    while True: sys.stderr.write('x' * 10000)"),
    "output flood": ({"too_large"}, "def f(x): return 'a' * 10 ** 7"),
    "output of digits": ({"too_large"}, "def f(x): return 7 ** 10 ** 5"),
    "output by sharing": ({"too_large"}, "def f(x):\n    a = [0]\n    for _ in range(50): a = [a, a]\n    return a\n"),
    "output nested": ({"too_large"}, "def f(x):\n    a = []\n    for _ in range(10 ** 4): a = [a]\n    return a\n"),
    "output in itself": ({"too_large"}, "def f(x):\n    a = []\n    a.append(a)\n    return a\n"),
    "many empty outputs": ({"too_large", "timeout"}, "def f(x): return [()] * 10 ** 7"),
    # what the program does to the child's code
    "garbage frames": ({"tampered"}, "import gc, os\ndef f(x):\n    for o in gc.get_objects():\n        if type(o).__name__ == 'Region':\n            o.view[64:96] = b'\\xff' * 32\n            o.words[0] = 32\n            os._exit(0)\n    return 'held'\n"),
    "a frame written again": ({"ok"}, "import gc, sys\ndef f(x):\n    for n in list(sys.modules):\n        if n.endswith('child'):\n            R = sys.modules[n].Region\n            put = R.put\n            R.put = lambda s, *a: [put(s, *a) for _ in range(5)]\n    return 'held'\n"),
    "a writer of its own": ({"tampered"}, 'import sys\ndef f(x):\n    for n in list(sys.modules):\n        if n.endswith(\'.literal\'):\n            sys.modules[n].write = lambda *a: \'__import__("os").system("true")\'\n    return \'held\'\n'),
    "bytes that are no text": ({"tampered"}, "import gc, os, struct\ndef f(x):\n    for o in gc.get_objects():\n        if type(o).__name__ == 'Region':\n            o.view[64:73] = struct.pack('<BI', 0, 4) + b'\\xff\\xfe\\xfd\\xfc'\n            o.words[0] = 9\n            os._exit(0)\n    return 'held'\n"),
    "a length beyond the memory": ({"tampered"}, "import gc, os, struct\ndef f(x):\n    for o in gc.get_objects():\n        if type(o).__name__ == 'Region':\n            o.view[64:69] = struct.pack('<BI', 0, 2 ** 31)\n            o.words[0] = 2 ** 62\n            os._exit(0)\n    return 'held'\n"),
    "a false clock": (SLOW, "import gc\ndef f(x):\n    for o in gc.get_objects():\n        if type(o).__name__ == 'Region':\n            while True:\n                o.words[0] = 0\n                o.words[1] = 2 ** 62\n"),
    "a false length": (SLOW, "import gc\ndef f(x):\n    for o in gc.get_objects():\n        if type(o).__name__ == 'Region':\n            while True:\n                o.words[0] = -5\n                o.words[1] = -2 ** 62\n"),
    "builtins for all": ({"ok", "error", "crashed", "tampered", "nondeterministic"}, "import builtins\ndef f(x):\n    builtins.len = builtins.repr = builtins.type = None\n    return 'held'\n"),
    "tracing": ({"ok", "error", "nondeterministic"}, "import sys\ndef f(x):\n    sys.settrace(lambda *a: None)\n    sys.setprofile(lambda *a: None)\n    return 'held'\n"),
    "a finalizer that hangs": ({"ok", "timeout"}, "class A:\n    def __del__(self):\n        while True: pass\ndef f(x):\n    a = A()\n    return 'held'\n"),
    "an exception that hangs": (SLOW, "class E(Exception):\n    def __str__(self):\n        while True: pass\ndef f(x): raise E()\n"),
    "an exception with a long name": (REFUSED, "def f(x): raise type('E' * 10 ** 6, (Exception,), {})('x' * 10 ** 6)"),
    "an exception without a name": (REFUSED, "class M(type):\n    @property\n    def __name__(cls): raise SystemExit\nclass E(Exception, metaclass=M): pass\ndef f(x): raise E\n"),
    "import hook": ({"ok"}, "import sys\ndef f(x):\n    sys.meta_path.insert(0, None)\n    sys.path[:] = ['/tmp']\n    return 'held'\n"),
    "change a module": ({"ok"}, "import math\ndef f(x):\n    math.calls = getattr(math, 'calls', 0) + 1\n    return 'held' if math.calls == 1 else 'escaped'\n"),
}  # fmt: skip
