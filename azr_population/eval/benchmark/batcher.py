"""Concurrent requests of Inspect's samples, answered together in a thread."""

import asyncio
import queue
import threading
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Generic, TypeVar

Request = TypeVar("Request")
Answer = TypeVar("Answer")
_Waiting = tuple[Hashable, Request, Future[Answer]]
"""(key, request, its future answer)"""


class Batcher(Generic[Request, Answer]):
    """Collects requests that are made at about the same time and answers them in one call."""

    def __init__(
        self,
        answer: Callable[[list[Request]], Sequence[Answer]],
        size: int,
        key: Callable[[Request], Hashable] = lambda request: None,
        wait: float = 0.1,
    ) -> None:
        """`answer` gets up to `size` requests of one `key`, in order; a batch that is not full
        starts `wait` seconds after the last request came."""
        self._answer, self._size, self._key, self._wait = answer, size, key, wait
        self._queue: queue.SimpleQueue[_Waiting[Request, Answer]] = queue.SimpleQueue()
        # A daemon: Ctrl-C does not wait for a batch.
        threading.Thread(target=self._serve, daemon=True).start()

    async def ask(self, request: Request) -> Answer:
        """The answer; raises what `answer` raised for the whole batch, or what `key` raised."""
        future: Future[Answer] = Future()
        self._queue.put((self._key(request), request, future))
        return await asyncio.wrap_future(future)

    def _serve(self) -> None:
        waiting: list[_Waiting[Request, Answer]] = []
        while True:
            if not waiting:
                waiting.append(self._queue.get())
            with suppress(queue.Empty):
                while len(waiting) < self._size or not self._queue.empty():
                    waiting.append(self._queue.get(timeout=self._wait))
            key = waiting[0][0]
            alike = [item for item in waiting if item[0] == key]
            waiting = [item for item in waiting if item[0] != key] + alike[self._size :]
            # What was cancelled while it waited is dropped.
            batch = [x for x in alike[: self._size] if x[2].set_running_or_notify_cancel()]
            if not batch:
                continue
            _, requests, futures = zip(*batch, strict=True)
            try:
                for future, answer in zip(futures, self._answer(list(requests)), strict=True):
                    future.set_result(answer)
            except BaseException as error:  # the samples raise it, Inspect reports it
                for future in futures:
                    if not future.done():
                        future.set_exception(error)
