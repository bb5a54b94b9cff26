"""Run our own generated programs in a child process that is killed when it overruns.

For programs of the grammar only, which end by construction; the deadline and the limits catch what
the construction missed. Model-written programs go to `azr_population.referee`.
"""

import multiprocessing
import resource
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection
from typing import Any, TypeVar

T = TypeVar("T")
MAX_VALUE_CHARS = 48
_MEMORY_BYTES = 2**30
_PATIENCE = 10.0
"""Wall-clock seconds for each processor second: on a busy machine a child has to wait too."""


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


def in_children(
    function: Callable[[int], T], jobs: Iterable[int], workers: int, deadline: float
) -> Iterator[T | None]:
    """`function(job)` for each job, each in a child process of its own, in order of the jobs.

    None where a child died or used up the deadline (processor seconds). `function` must be
    picklable.
    """
    context = multiprocessing.get_context("spawn")
    waiting = list(jobs)[::-1]
    running: list[tuple[Any, Connection]] = []

    def start() -> None:
        while waiting and len(running) < workers:
            receiver, sender = context.Pipe(duplex=False)
            child = context.Process(
                target=_child, args=(function, waiting.pop(), deadline, sender), daemon=True
            )
            child.start()
            sender.close()
            running.append((child, receiver))

    try:
        start()
        while running:
            child, receiver = running.pop(0)
            result = None
            try:
                if receiver.poll(_PATIENCE * deadline):
                    result = receiver.recv()
            except EOFError:
                result = None
            child.kill()
            child.join()
            receiver.close()
            start()  # the next one works while the caller uses this result
            yield result
    finally:
        for child, receiver in running:
            child.kill()
            child.join()
            receiver.close()


def _child(function: Callable[[int], Any], job: int, deadline: float, sender: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (int(deadline) + 1, int(deadline) + 2))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    sender.send(function(job))
    sender.close()
