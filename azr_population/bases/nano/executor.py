"""Our own generated programs, executed in this process or made ahead in another.

For programs of the grammar only, which end by construction. Programs that models write are run by
`azr_population.referee`.
"""

import multiprocessing
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")
MAX_VALUE_CHARS = 48


def run_function(source: str, arguments: list[str]) -> list[str | None]:
    """`repr(f(...))` for each argument list; None where it raises, differs when run again,
    or is longer than `MAX_VALUE_CHARS`."""
    values: list[str | None] = []
    try:
        code = compile(source, "<program>", "exec")
        calls = [compile(f"f({text})", "<call>", "eval") for text in arguments]
    except SyntaxError:
        return [None] * len(arguments)
    for call in calls:
        try:
            namespace: dict[str, Any] = {}
            exec(code, namespace)
            value = repr(eval(call, namespace))
            again = repr(eval(call, namespace))
        except Exception:
            values.append(None)
            continue
        values.append(value if value == again and len(value) <= MAX_VALUE_CHARS else None)
    return values


def in_child(function: Callable[[int], T], jobs: Iterable[int]) -> Iterator[T]:
    """`function(job)` of each job in order, the next one made ahead in a child process. `function`
    must be picklable, and `jobs` may be endless."""
    pool = ProcessPoolExecutor(
        1,
        multiprocessing.get_context("spawn"),
        # Ctrl-C is for the parent, which finishes its step.
        initializer=signal.signal,
        initargs=(signal.SIGINT, signal.SIG_IGN),
    )
    ahead: deque[Any] = deque()
    try:
        for job in jobs:
            ahead.append(pool.submit(function, job))
            if len(ahead) > 1:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
