"""Clocks, random numbers and addresses: equal in every run, different in the second validation run.

A program is executed in one of several worlds. The second validation run has another world than all
other runs: every field of the date differs, every random bit is inverted, and objects are elsewhere
in memory. A program that used the clock or random numbers goes through more worlds. So a program
whose output depends on them, even by one bit, contradicts itself; others may use them. Nothing here
is real, so a verdict is the same each time.

C code finds nothing either: the kernel gives no clock and no random bytes
(`sandbox.kernel.stop_clocks`, `sandbox.seccomp`). A zygote runs without address space randomisation
if the kernel allows it, so that an order that depends on addresses (a set with None in it) is the
same in every worker and on every day.
"""

import ctypes
import datetime
import gc
import os
import random
import re
import sys
import time
from collections.abc import Callable
from typing import Any

WORLDS = 8
_EPOCHS = [1_709_626_520.123456, 1_950_126_413.876543]  # 2024-03-05 08:15:20, 2031-10-18 21:46:53
_EPOCHS += [_EPOCHS[0] + 31_337_421.7 * world for world in range(2, WORLDS)]
_TICK = 0.001  # seconds by which a clock advances at each reading
_BOOT = 1_700_000_000.0  # zero of the monotonic clocks


def _words(seed: int) -> tuple[int, ...]:
    generator = random.Random(seed)
    generator.random()  # initial states of small seeds are almost equal
    return tuple(generator.getstate()[1][:-1])


_ALL_ONES = 0x12DD9BB3  # a state word of the Mersenne twister whose output is 0xFFFFFFFF
# With seed 4 the first choice among 2 to 32 and the first shuffle also differ when inverted.
_STATES = [_words(4), tuple(word ^ _ALL_ONES for word in _words(4))]
_STATES += [_words(4 + world) for world in range(2, WORLDS)]
_states = [(3, (*words, 0), None) for words in _STATES]

# CPython's allocator takes objects of a size class from one pool after the other.
_SIZES = range(16, 528, 16)  # bytes of an object
_POOL, _POOL_HEAD = 1 << 14, 48
_KEPT, _FREED = 24, 24  # objects of each size, for another order of addresses
_SMALL = [size for size in range(16, 224, 16) for _ in range(_KEPT + _FREED)]
_TO_FREE = [at for at in range(len(_SMALL)) if at % (_KEPT + _FREED) >= _KEPT]
random.Random(9).shuffle(_TO_FREE)

_FLOATS = 100  # the length of CPython's free list of floats

_world = 0
_looks = 0
_bytes = random.Random()


def enter(world: int) -> None:
    """Starts an execution in a world, with its clock and its random numbers."""
    global _world, _looks
    _world, _looks = world, 0
    random.setstate(_states[world])
    _bytes.setstate(_states[world])


def consumed() -> bool:
    """Whether the current execution has used a clock or random numbers."""
    state = _states[_world]
    return bool(_looks) or random.getstate() != state or _bytes.getstate() != state


def settle() -> list[object]:
    """Objects that fill the gaps in the heap. While the zygote keeps them, its children's objects
    are contiguous, so that `heap_noise` can shift them."""
    fillers: list[object] = _floats()
    for size in _SIZES:
        for _ in range(10_000):
            fillers.append(_object(size))
            if id(fillers[-1]) % _POOL == _POOL_HEAD:  # the first of a new pool
                break
    return fillers


def heap_noise() -> list[object]:
    """Objects of every kind that shows its address. While they are kept, new objects get other
    addresses, in another order."""
    blocks: list[object] = [_object(size) for size in (*_SMALL, *_SIZES)]
    blocks += [*_floats(), type("", (), {}), lambda: 0, (0 for _ in ())]
    for at in _TO_FREE:
        blocks[at] = None
    return [*blocks, [].append, iter([]), iter(())]


def _object(size: int) -> object:
    """An object of `size` bytes; an empty `bytes` has 33."""
    return bytes(size - 33) if size > 32 else complex(size) if size == 32 else object()


def _floats() -> list[object]:
    return [float(n) for n in range(_FLOATS)]


def salted_id(obj: object, /, real_id: Callable[[object], int] = id) -> int:
    """`id` that distinguishes objects but differs between worlds."""
    return real_id(obj) + _world * ((1 << 48) + 16)


def install() -> None:
    """Replaces the real clocks and random numbers in all modules.

    The zygote calls it after all imports. The sandbox's modules keep the real ones.
    """
    namespaces = [
        vars(module)
        for name, module in list(sys.modules.items())
        if name.partition(".")[0] != __package__.partition(".")[0] and hasattr(module, "__dict__")
    ]
    for real, other in _replacements():
        for namespace in namespaces:
            for name in [name for name, value in namespace.items() if value is real]:
                namespace[name] = other
    seed = random.Random.seed

    def seed_(self: random.Random, a: Any = None, version: int = 2) -> None:
        """Initialize internal state from a seed."""
        global _looks
        if a is None:
            _looks += 1
            self.setstate(_states[_world])
        else:
            seed(self, a, version)

    seed_.__name__ = "seed"
    setattr(random.Random, "seed", seed_)  # noqa: B010
    random.seed = random._inst.seed
    _override(datetime.date, "today", classmethod(_today))
    _override(datetime.datetime, "now", classmethod(_now))
    _override(datetime.datetime, "utcnow", classmethod(_utcnow))


def _replacements() -> list[tuple[Any, Any]]:
    pairs: list[tuple[Any, Any]] = [(os.urandom, _urandom)]
    pairs.append((os.getrandom, lambda size, flags=0: _urandom(size)))
    seconds: dict[str, Callable[[], float]] = {"time": _time}
    for name in ("monotonic", "perf_counter", "process_time", "thread_time"):
        seconds[name] = _elapsed
    for name, clock in seconds.items():
        pairs.append((getattr(time, name), clock))
        pairs.append((getattr(time, f"{name}_ns"), _in_nanoseconds(clock)))
    for name in ("localtime", "gmtime", "ctime"):
        pairs.append((getattr(time, name), _at_that_time(getattr(time, name))))
    pairs.append((time.clock_gettime, lambda clock: _time()))
    pairs.append((time.clock_gettime_ns, lambda clock: int(_time() * 1e9)))
    asctime, strftime, localtime = time.asctime, time.strftime, time.localtime
    pairs.append((asctime, lambda t=None: asctime(t or localtime(_time()))))
    pairs.append((strftime, lambda format, t=None: strftime(format, t or localtime(_time()))))
    return pairs


def _time() -> float:
    """Seconds since 1970, in this world."""
    global _looks
    _looks += 1
    return _EPOCHS[_world] + _looks * _TICK


def _elapsed() -> float:
    return _time() - _BOOT


def _in_nanoseconds(clock: Callable[[], float]) -> Callable[[], int]:
    return lambda: int(clock() * 1e9)


def _at_that_time(convert: Callable[[float], Any]) -> Callable[..., Any]:
    return lambda seconds=None: convert(_time() if seconds is None else seconds)


def _today(cls: type[datetime.date]) -> datetime.date:
    return cls.fromtimestamp(_time())


def _now(cls: type[datetime.datetime], tz: datetime.tzinfo | None = None) -> datetime.datetime:
    return cls.fromtimestamp(_time(), tz)


def _utcnow(cls: type[datetime.datetime]) -> datetime.datetime:
    return cls.fromtimestamp(_time(), datetime.timezone.utc).replace(tzinfo=None)


def _urandom(size: int) -> bytes:
    return _bytes.randbytes(size)


def _override(cls: type, name: str, value: Any) -> None:
    """Sets an attribute of a class written in C, which Python does not allow."""
    attributes = gc.get_referents(cls.__dict__)[0]
    attributes[name] = value
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(cls))


_SHOWN = re.compile(r"<[^<>]* at 0x([0-9a-f]{6,16})[>,;]")


def shows_address(text: str, source: str) -> bool:
    """Whether an output contains an address that is not in the program's text, as in
    `<function f at 0x7f31c02a3b50>`."""
    return any(match[1] not in source for match in _SHOWN.finditer(text))
