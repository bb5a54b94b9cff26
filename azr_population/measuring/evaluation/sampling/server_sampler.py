"""Samples by an OpenAI-compatible server, such as `vllm serve --lora-modules`.

A server may be slow, broken or hostile. Whatever it does, a request ends within `seconds` for each
try, in a completion or a UserError; its key goes to no other host; Ctrl-C ends all at once, since
every request is a task that is cancelled.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Thread
from typing import TYPE_CHECKING, Any, NoReturn

from azr_population.errors import UserError, first_line
from azr_population.measuring.evaluation.contestants import Contestant
from azr_population.measuring.evaluation.sampling.sampler import Drawn, Request, Settings, cut

if TYPE_CHECKING:
    from httpx import AsyncClient

_AT_ONCE = 32
SECONDS = 3600.0
"""For one answer: a server may make requests wait in line."""
_LIST_SECONDS = 30.0
_CONNECT_SECONDS = 10.0
_MOST_BYTES = 64 << 20
_PAUSES = (1.0, 4.0, 16.0)
"""Seconds before what failed for the moment is tried again."""
_FOR_THE_MOMENT = (429, 500, 502, 503, 504)
_OF_THIS_REQUEST = (400, 413, 422)


class _Refused(UserError):
    """The server does not take this one request."""


class _Transient(UserError):
    """It may work the next time."""


class ServerSampler:
    """Chat prompts go to /chat/completions, plain ones to /completions."""

    def __init__(self, url: str, seconds: float = SECONDS) -> None:
        """`url` ends in /v1. A key is taken from OPENAI_API_KEY. `seconds`: for one answer."""
        self.name = "openai"
        self.url = url.rstrip("/")
        self.seconds = seconds

    def models(self) -> dict[str, str]:
        """The names of the models that are served, and what the server says each of them is."""

        async def listed() -> Any:
            async with self._client() as client:
                return await self._try(client, "models", None, min(self.seconds, _LIST_SECONDS))

        try:
            with _own_loop() as played:
                listing = played(listed())["data"]
            models = {one["id"]: one.get("root") or one["id"] for one in listing}
        except (KeyError, TypeError, AttributeError) as error:
            raise self._lists_none() from error
        if not models or not all(isinstance(t, str) for one in models.items() for t in one):
            raise self._lists_none()
        return models

    def contestants(self, names: Sequence[str]) -> tuple[Contestant, ...]:
        """The models of these names, or all. Raises UserError for a model that is not served."""
        served = self.models()
        unknown = [name for name in names if name not in served]
        if unknown:
            raise UserError(f"{self.url} does not serve {unknown[0]}; it has {', '.join(served)}")
        return tuple(Contestant(name, "model", served[name]) for name in names or served)

    def sample(
        self, requests: Sequence[Request], settings: Settings, seed: int
    ) -> Iterator[tuple[int, list[Drawn]]]:
        """See `Sampler`; requests run side by side, and the server batches them.

        What came is told before the first failure is raised.
        """
        waiting: dict[asyncio.Task[list[Drawn]], int] = {}
        client = self._client()
        room = asyncio.Semaphore(_AT_ONCE)

        async def start() -> None:
            for place, request in enumerate(requests):
                drawn = self._drawn(client, room, request, settings, seed + place)
                waiting[asyncio.create_task(drawn)] = place

        async def some() -> set[asyncio.Task[list[Drawn]]]:
            ready, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            return ready

        with _own_loop() as played:
            try:
                played(start())
                while waiting:
                    for task in sorted(played(some()), key=lambda one: one.exception() is not None):
                        yield waiting.pop(task), task.result()
            finally:
                played(_end(client, list(waiting)))

    async def _drawn(
        self,
        client: AsyncClient,
        room: asyncio.Semaphore,
        request: Request,
        settings: Settings,
        seed: int,
    ) -> list[Drawn]:
        prompt = request.prompt
        body: dict[str, Any] = {
            "model": request.contestant.name,
            "max_tokens": settings.max_new_tokens,
            "temperature": settings.temperature,
            "top_p": settings.top_p,
            "n": request.n,
            "seed": seed,
        }
        stops = prompt.stops or prompt.plain_stops
        if stops:
            body["stop"] = list(stops)[:4]  # as many as the protocol allows; `cut` does the rest
        if prompt.chat:
            system = [{"role": "system", "content": prompt.system}] if prompt.system else []
            body["messages"] = [*system, {"role": "user", "content": prompt.text}]
        else:
            body["prompt"] = prompt.text
        try:
            async with room:
                path = "chat/completions" if prompt.chat else "completions"
                answer = await self._ask(client, path, body, self.seconds)
        except _Refused as refusal:  # a prompt that is too long, most of the time
            return [Drawn("", 0, False, note=str(refusal))] * request.n
        try:
            drawn = [_read(choice, stops, not prompt.chat) for choice in answer["choices"]]
        except (KeyError, TypeError, AttributeError) as error:
            raise UserError(f"{self.url} sent an answer without completions") from error
        if len(drawn) != request.n:
            raise UserError(
                f"{self.url} sent {len(drawn)} completions where {request.n} were asked"
            )
        return drawn

    def _client(self) -> AsyncClient:
        try:
            import httpx
        except ImportError as error:
            raise UserError("a server is asked by httpx: pip install httpx") from error
        key = os.environ.get("OPENAI_API_KEY")
        return httpx.AsyncClient(
            headers={"Authorization": f"Bearer {key}"} if key else {},
            follow_redirects=False,
            timeout=httpx.Timeout(None, connect=_CONNECT_SECONDS),
            limits=httpx.Limits(max_connections=None),
        )

    async def _ask(
        self, client: AsyncClient, path: str, body: dict[str, Any] | None, seconds: float
    ) -> Any:
        """The JSON that the server answers; what fails for the moment is tried again."""
        for pause in _PAUSES:
            with suppress(_Transient):
                return await self._try(client, path, body, seconds)
            await asyncio.sleep(pause)
        return await self._try(client, path, body, seconds)

    async def _try(
        self, client: AsyncClient, path: str, body: dict[str, Any] | None, seconds: float
    ) -> Any:
        import httpx

        url = f"{self.url}/{path}"
        try:
            status, content, where = await asyncio.wait_for(_sent(client, url, body), seconds)
        except asyncio.TimeoutError as error:
            raise UserError(
                f"{url} gave no whole answer within {seconds:g} seconds; is the server up? "
                "What was drawn is kept; --timeout gives it longer"
            ) from error
        except (httpx.TransportError, OSError) as error:
            raise _Transient(
                f"{self.url} does not answer ({first_line(error)}); is the server up?"
            ) from error
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            raise UserError(f"{url} cannot be asked: {first_line(error)}") from error
        if 300 <= status < 400:
            raise UserError(
                f"{url} sends on to {_line(where)}; name that server by --rollout itself"
            )
        if status != 200:
            self._refuse(url, status, content)
        if len(content) > _MOST_BYTES:
            raise UserError(f"{url} sent more than {_MOST_BYTES >> 20} MB; no answer is that long")
        try:
            return json.loads(content, parse_constant=_no_constant)
        except (ValueError, RecursionError) as error:
            raise UserError(f"{url} sent what is no JSON: {_line(first_line(error))}") from error

    def _refuse(self, url: str, status: int, content: bytes) -> NoReturn:
        kind = UserError
        if status in _OF_THIS_REQUEST:
            kind = _Refused
        elif status in _FOR_THE_MOMENT:
            kind = _Transient
        raise kind(f"{url}: {status}: {_line(content[:300].decode('utf-8', 'replace'))}")

    def _lists_none(self) -> UserError:
        return UserError(f"{self.url}/models does not list models; is it an API root?")


@contextmanager
def _own_loop() -> Iterator[Callable[[Coroutine[Any, Any, Any]], Any]]:
    """A function that plays a coroutine to its end, on a loop in a thread of its own: the caller's
    thread may have a loop that is running, as in a notebook."""
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield lambda coroutine: asyncio.run_coroutine_threadsafe(coroutine, loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _end(client: AsyncClient, tasks: Sequence[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await client.aclose()


async def _sent(
    client: AsyncClient, url: str, body: dict[str, Any] | None
) -> tuple[int, bytes, str]:
    """Status, content (no more than is ever read, and a chunk), and where it sends on to."""
    content = bytearray()
    how = "GET" if body is None else "POST"
    async with client.stream(how, url, json=body) as answer:
        async for chunk in answer.aiter_bytes():
            content += chunk
            if len(content) > _MOST_BYTES:
                break
    return answer.status_code, bytes(content), answer.headers.get("location", "elsewhere")


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is none of its values")


def _line(text: str) -> str:
    """What a server says, fit for a line of ours."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:300]


def _read(choice: dict[str, Any], stops: Sequence[str], continued: bool) -> Drawn:
    text = choice["text"] if "text" in choice else choice["message"]["content"]
    if not isinstance(text, (str, type(None))):
        raise TypeError("no text")
    # Half a pair of surrogates, which JSON can carry, is in no file and no program.
    whole = (text or "").encode("utf-8", "replace").decode()
    return Drawn(cut(whole, stops), 0, choice.get("finish_reason") == "stop", continued)
