"""`check-serving`: whether a server answers with the adapters that it was given.

A server of the OpenAI API (vLLM, SGLang) can answer as the base, as another adapter or as an older
one under the same name, without a word. So it is asked for log-probabilities of one text under each
name, and of a short continuation; the folders, read here, must explain them. The rule is that of
the canary in our own engines (`engines/canary.py`).
"""

import http.client
import json
import os
import urllib.error
import urllib.request
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from azr_population.engines.base_folder import base_folder
from azr_population.engines.canary import TOLERANCES, is_better
from azr_population.engines.engine import EngineSettings
from azr_population.errors import UserError, first_line
from azr_population.eval.members import NO_MEMBERS, LoadedMembers, StoredMember, one_member
from azr_population.weights.adapter import Adapter, Factors

TEXT = '''def merge(left, right):
    """Merge two sorted lists."""
    out, i, j = [], 0, 0
    while i < len(left) and j < len(right):
        if left[i] <= right[j]:
            out.append(left[i]); i += 1
        else:
            out.append(right[j]); j += 1
    return out + left[i:] + right[j:]

print(merge([1, 4, 9], [2, 3, 10]), "done".upper()[::-1], {7: "x"})
'''
_TOKENS, _CONTINUED = 192, 32
"""Tokens of the text (more than a block of a server's prefix cache) and of its continuation."""
_AS_IDS = {"return_tokens_as_token_ids": True, "return_token_ids": True}
"""Options by which vLLM and SGLang (the second alone) give the ids of what they write."""
_SECONDS = 120.0

SERVED, SOMETHING_ELSE, MISSING = "served", "something else", "not reachable"
BASE = "the base"


def text_ids(tokenizer: Any) -> list[int]:
    """The token ids of the text that is scored."""
    ids: list[int] = tokenizer(TEXT, add_special_tokens=False)["input_ids"][:_TOKENS]
    return ids


@dataclass(frozen=True)
class ServedVerdict:
    """A verdict on what a server answers with under a name."""

    name: str
    verdict: str
    """`served`, `the base`, `another one`, `an old one`, `scaled otherwise`, `some modules
    missing`, `something else` or `not reachable`."""
    detail: str

    def __str__(self) -> str:
        return f"{self.name}: {self.verdict} ({self.detail})"


def check_serving(
    url: str,
    base: str | Path | None,
    adapters: Mapping[str, str | Path],
    old: Mapping[str, str | Path] | None = None,
    dtype: str = "bfloat16",
    device: str = "cpu",
) -> list[ServedVerdict]:
    """A verdict for each name in `adapters`; nothing is reachable where no server answers.

    Args:
        base: its folder, or its name on the Hub; None: the one that the members name.
        adapters: addresses of members by the name at the server; see `eval.members`.
        old: earlier members of these names.
        dtype: the server's: it decides what rounding explains.
        device: where log-probabilities are computed.

    A server that asks for a key gets OPENAI_API_KEY. Raises UserError: a member does not
    load, or an old one has no present one.
    """
    if unknown := [name for name in old or {} if name not in adapters]:
        raise UserError(f"--old {unknown[0]} is no name that --adapter gives", key="--old")
    folder = None if base is None else base_folder(base, key="--base")
    members = {name: one_member(address, folder) for name, address in adapters.items()}
    earlier = {name: one_member(address, folder) for name, address in (old or {}).items()}
    server = _Server(url, os.environ.get("OPENAI_API_KEY"))
    if reason := server.silence():
        return [ServedVerdict(name, MISSING, reason) for name in members]
    settings = EngineSettings("", (), NO_MEMBERS, device, dtype if device != "cpu" else "float32")
    loaded = LoadedMembers([*members.values(), *earlier.values()], settings, slots=1)

    def fitted(members: Mapping[str, StoredMember]) -> dict[str, Adapter]:
        return {name: loaded.fitted(each.adapter(), name) for name, each in members.items()}

    now, before = fitted(members), fitted(earlier)
    tolerance = TOLERANCES[dtype]
    return [_verdict(name, server, loaded, tolerance, now, before) for name in now]


class _Server:
    def __init__(self, url: str, api_key: str | None) -> None:
        self._url = url.rstrip("/").removesuffix("/v1") + "/v1"
        self._headers = {"Content-Type": "application/json"}
        if api_key:
            self._headers["Authorization"] = f"Bearer {api_key}"

    def silence(self) -> str:
        """Why the server cannot be asked; empty if it answers."""
        try:
            self._ask("models", None)
        except (OSError, ValueError) as error:
            return f"{self._url} does not answer: {first_line(error)}"
        return ""

    def scores(self, name: str, text: list[int]) -> tuple[list[int], Tensor]:
        """Token ids, and the log-probabilities [tokens - 1] that the server gives those behind the
        first: of the text, and of what it writes behind it if it says which tokens these are."""
        request = {"model": name, "prompt": text, "temperature": 1, "seed": 1, "logprobs": 1}
        echoed = self._ask("completions", request | {"max_tokens": 1, "echo": True})
        values = echoed["choices"][0]["logprobs"]["token_logprobs"][1 : len(text)]
        if len(values) != len(text) - 1:
            raise ValueError("it does not echo the text's log-probabilities (echo, logprobs)")
        written = self._ask("completions", request | {"max_tokens": _CONTINUED} | _AS_IDS)
        choice = written["choices"][0]
        spelt = (str(token).partition("token_id:")[2] for token in choice["logprobs"]["tokens"])
        ids = choice.get("token_ids") or [int(id) for id in spelt if id.isdecimal()]
        log_probs = choice["logprobs"]["token_logprobs"]
        if len(ids) != len(log_probs):
            return text, torch.tensor(values)
        return [*text, *ids], torch.tensor(values + log_probs)

    def _ask(self, path: str, body: dict[str, Any] | None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self._url}/{path}", data, self._headers)
        try:
            with urllib.request.urlopen(request, timeout=_SECONDS) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            message = error.read(2000).decode("utf-8", "replace")
            raise OSError(f"HTTP {error.code}: {' '.join(message.split())[:200]}") from error
        except http.client.HTTPException as error:  # no server of HTTP, or no port
            raise OSError(f"{type(error).__name__}: {error}") from error


def _verdict(
    name: str,
    server: _Server,
    loaded: LoadedMembers,
    tolerance: float,
    adapters: Mapping[str, Adapter],
    old: Mapping[str, Adapter],
) -> ServedVerdict:
    try:
        ids, log_probs = server.scores(name, text_ids(loaded.tokenizer))
    except (OSError, KeyError, TypeError, IndexError, ValueError) as error:
        return ServedVerdict(name, MISSING, f"no log-probabilities: {first_line(error)}")

    def distance(adapter: Adapter | None) -> Tensor:
        """The distance of this adapter's scores from the server's [tokens], in nats."""
        return (loaded.token_scores(adapter, ids) - log_probs).abs()

    off_folder, off_base = distance(adapters[name]), distance(None)
    mean, exact = float(off_folder.mean()), TOLERANCES["float32"]
    others: list[tuple[str, str, Adapter | None]] = [(BASE, "the base", None)]
    if not mean <= exact:
        others += [("another one", other, a) for other, a in adapters.items() if other != name]
        others += [("an old one", f"the earlier {name}", old[name])] if name in old else []
        others += _variants(adapters[name])
    scored = [(verdict, description, distance(adapter)) for verdict, description, adapter in others]
    verdict, description, best = min(scored, key=lambda each: float(each[2].mean()))
    nearest = float(best.mean())
    if is_better(best, off_folder) and nearest <= tolerance:
        apart = f"its folder is {mean:.3f} nats a token off, {description} {nearest:.3f}"
        return ServedVerdict(name, verdict, apart)
    # NaN is not served.
    if is_better(best, off_folder) or not mean <= tolerance:
        return ServedVerdict(name, SOMETHING_ELSE, f"{mean:.3f} nats a token off its folder")
    weak = "" if is_better(off_folder, off_base) else "; so little differs from the base"
    return ServedVerdict(name, SERVED, f"{mean:.4f} nats a token off{weak}")


def _variants(adapter: Adapter) -> Iterator[tuple[str, str, Adapter]]:
    """Mistakes that servers make with an adapter: another scale, or only some of its layers."""
    root = adapter.spec.rank**0.5
    wrong = {1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 2.0, 4.0, 8.0, 16.0, 32.0, root, 1 / root}
    names = list(adapter.factors)
    for scale in sorted(wrong):
        yield "scaled otherwise", f"{scale:g} times its update", _scaled(adapter, names, scale)
    parts: dict[str, set[str]] = {
        "with its attention alone": {n for n in names if "attn" in n or "attention" in n},
        "with its first half of layers": set(names[: len(names) // 2]),
        "with every other layer": set(names[::2]),
    }
    for kind in {name.rpartition(".")[2] for name in names}:
        parts[f"with {kind} alone"] = {n for n in names if n.endswith(kind)}
    for part, layers in parts.items():
        others = set(names) - layers
        if layers and others:
            yield "some modules missing", part, _scaled(adapter, layers)
            yield "some modules missing", f"not {part}, but the rest", _scaled(adapter, others)


def _scaled(adapter: Adapter, layers: Collection[str], scale: float = 1.0) -> Adapter:
    """The updates of these layers times `scale`, of the others none."""
    factors = {
        name: Factors(pair.A, pair.B * (scale if name in layers else 0.0))
        for name, pair in adapter.factors.items()
    }
    return replace(adapter, factors=factors)


def exit_code(verdicts: Iterable[ServedVerdict]) -> int:
    """0: all are served; 1: under some name something else is; 3: some are not reachable."""
    kinds = {verdict.verdict for verdict in verdicts}
    return 0 if kinds <= {SERVED} else 3 if kinds <= {SERVED, MISSING} else 1
