"""Samples by an OpenAI-compatible server, such as `vllm serve --lora-modules`."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any

from azr_population.errors import UserError
from azr_population.measuring.evaluation.contestants import Contestant
from azr_population.measuring.evaluation.sampling.sampler import Drawn, Request, Settings, cut

_AT_ONCE = 32
_SECONDS = 3600.0
"""For one answer: a server may make requests wait in line."""
_OF_THIS_REQUEST = (400, 413, 422)


class _Refused(UserError):
    """The server does not take this one request."""


class ServerSampler:
    """Chat prompts go to /chat/completions, plain ones to /completions."""

    def __init__(self, url: str, seconds: float = _SECONDS) -> None:
        """`url` ends in /v1. A key is taken from OPENAI_API_KEY."""
        self.name = "openai"
        self.url = url.rstrip("/")
        self.seconds = seconds

    def models(self) -> dict[str, str]:
        """The names of the models that are served, and what the server says each of them is."""
        listed = self._ask("models", None)
        try:
            return {one["id"]: str(one.get("root") or one["id"]) for one in listed["data"]}
        except (KeyError, TypeError) as error:
            raise UserError(
                f"{self.url}/models does not list models; is it an API root?"
            ) from error

    def contestants(self, names: Sequence[str]) -> tuple[Contestant, ...]:
        """The models of these names, or all.

        Raises UserError for a model that is not served.
        """
        served = self.models()
        unknown = [name for name in names if name not in served]
        if unknown:
            raise UserError(f"{self.url} does not serve {unknown[0]}; it has {', '.join(served)}")
        return tuple(Contestant(name, "model", served[name]) for name in names or served)

    def sample(
        self, requests: Sequence[Request], settings: Settings, seed: int
    ) -> Iterator[tuple[int, list[Drawn]]]:
        """See `Sampler`; requests run side by side, and the server batches them."""
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            waiting = {
                threads.submit(self._drawn, request, settings, seed + place): place
                for place, request in enumerate(requests)
            }
            try:
                for ready in as_completed(waiting):
                    yield waiting[ready], ready.result()
            finally:
                threads.shutdown(wait=False, cancel_futures=True)

    def _drawn(self, request: Request, settings: Settings, seed: int) -> list[Drawn]:
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
            answer = self._ask("chat/completions" if prompt.chat else "completions", body)
        except _Refused as refusal:  # a prompt that is too long, most of the time
            return [Drawn("", 0, False, note=str(refusal))] * request.n
        try:
            return [_read(choice, stops, not prompt.chat) for choice in answer["choices"]]
        except (KeyError, TypeError) as error:
            raise UserError(f"{self.url} sent an answer without completions") from error

    def _ask(self, path: str, body: dict[str, Any] | None) -> Any:
        request = urllib.request.Request(f"{self.url}/{path}")
        request.add_header("Content-Type", "application/json")
        if os.environ.get("OPENAI_API_KEY"):
            request.add_header("Authorization", f"Bearer {os.environ['OPENAI_API_KEY']}")
        data = None if body is None else json.dumps(body).encode()
        try:
            with urllib.request.urlopen(request, data, self.seconds) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            said = error.read(300).decode("utf-8", "replace").strip()
            kind = _Refused if error.code in _OF_THIS_REQUEST else UserError
            raise kind(f"{self.url}/{path}: {error.code} {error.reason}: {said}") from error
        except (OSError, ValueError) as error:
            why = getattr(error, "reason", error)
            raise UserError(f"{self.url} does not answer ({why}); is the server up?") from error


def _read(choice: dict[str, Any], stops: Sequence[str], continued: bool) -> Drawn:
    text = choice["text"] if "text" in choice else choice["message"]["content"]
    return Drawn(cut(text or "", stops), 0, choice.get("finish_reason") == "stop", continued)
