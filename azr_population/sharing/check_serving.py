"""`check-serving`: whether a server answers with the adapters that it was given.

A server of the OpenAI API (vLLM, SGLang) can answer as the base, as another adapter or as an older
one under the same name, without a word. So it is asked for log-probabilities of one text under each
name, and of a short continuation; the folders, read here, must explain them. The rule is that of
the canary in our own engines (`engines/canary.py`).
"""

import json
import urllib.error
import urllib.request
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from azr_population.engines.base_model import load_base, token_scores
from azr_population.engines.canary import TOLERANCES, is_better
from azr_population.errors import UserError, first_line
from azr_population.weights.adapter import Adapter, Factors, LoraSpec
from azr_population.weights.bank import Bank
from azr_population.weights.founders import as_member
from azr_population.weights.peft_folder import load_adapter

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
"""Of the text (more than a block of a server's prefix cache), and of its continuation."""
_AS_IDS = {"return_tokens_as_token_ids": True, "return_token_ids": True}
"""How vLLM and SGLang (the second alone) are asked for the ids of what they write."""
_SECONDS = 120.0

SERVED, SOMETHING_ELSE, MISSING = "served", "something else", "not reachable"
BASE = "the base"


@dataclass(frozen=True)
class ServedVerdict:
    """What a server answers with under a name."""

    name: str
    verdict: str
    """`served`, `the base`, `another one`, `an old one`, `scaled otherwise`, `some modules
    missing`, `something else` or `not reachable`."""
    detail: str

    def __str__(self) -> str:
        return f"{self.name}: {self.verdict} ({self.detail})"


def check_serving(
    url: str,
    base: str | Path,
    adapters: Mapping[str, str | Path],
    old: Mapping[str, str | Path] | None = None,
    dtype: str = "bfloat16",
    device: str = "cpu",
    api_key: str | None = None,
) -> list[ServedVerdict]:
    """A verdict for each name in `adapters`, whose values are PEFT folders on `base`; `old` are
    earlier folders of names. `dtype` is the server's: it decides what rounding explains. Raises
    UserError: a folder does not load, or nothing answers at `url`."""
    model, tokenizer = load_base(base, dtype if device != "cpu" else "float32", device)
    read = {name: load_adapter(folder) for name, folder in adapters.items()}
    earlier = {name: load_adapter(folder) for name, folder in (old or {}).items()}
    specs = [adapter.spec for adapter in (*read.values(), *earlier.values())]
    rank = max(spec.rank for spec in specs)
    layers = tuple(sorted({layer for spec in specs for layer in spec.target_modules}))
    judge = _Judge(model, tokenizer, LoraSpec(rank, float(rank), layers), TOLERANCES[dtype])
    server = _Server(url, api_key, judge.text)
    server.models()
    for all in (read, earlier):
        for name, adapter in all.items():
            all[name] = as_member(adapter, judge.fresh, torch.Generator(), f"{name} and the base")
    return [judge.verdict(name, server, read, earlier) for name in read]


class _Server:
    def __init__(self, url: str, api_key: str | None, text: list[int]) -> None:
        self._url = url.rstrip("/").removesuffix("/v1") + "/v1"
        self._headers = {"Content-Type": "application/json"}
        if api_key:
            self._headers["Authorization"] = f"Bearer {api_key}"
        self._text = text

    def models(self) -> None:
        """Raises UserError: nothing answers there."""
        try:
            self._ask("models", None)
        except (OSError, ValueError) as error:
            raise UserError(f"{self._url} does not answer: {first_line(error)}") from error

    def scores(self, name: str) -> tuple[list[int], Tensor]:
        """Token ids, and the log-probabilities [tokens - 1] that the server gives those behind the
        first: of the text, and of what it writes behind it if it says which tokens these are."""
        asked = {"model": name, "prompt": self._text, "temperature": 1, "seed": 1, "logprobs": 1}
        echoed = self._ask("completions", asked | {"max_tokens": 1, "echo": True})
        values = echoed["choices"][0]["logprobs"]["token_logprobs"][1 : len(self._text)]
        written = self._ask("completions", asked | {"max_tokens": _CONTINUED} | _AS_IDS)
        choice = written["choices"][0]
        spelt = (str(token).partition("token_id:")[2] for token in choice["logprobs"]["tokens"])
        ids = choice.get("token_ids") or [int(id) for id in spelt if id.isdecimal()]
        log_probs = choice["logprobs"]["token_logprobs"]
        if len(ids) != len(log_probs):
            return self._text, torch.tensor(values)
        return [*self._text, *ids], torch.tensor(values + log_probs)

    def _ask(self, path: str, body: dict[str, Any] | None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self._url}/{path}", data, self._headers)
        try:
            with urllib.request.urlopen(request, timeout=_SECONDS) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            said = error.read(2000).decode("utf-8", "replace")
            raise OSError(f"HTTP {error.code}: {' '.join(said.split())[:200]}") from error


class _Judge:
    """The base with one slot, in which any adapter can score what a server said."""

    def __init__(self, model: Any, tokenizer: Any, spec: LoraSpec, tolerance: float) -> None:
        self._model, self._tolerance = model, tolerance
        self._bank = Bank(model, spec, 1)
        self.fresh = self._bank.read(0)
        self.text: list[int] = tokenizer(TEXT, add_special_tokens=False)["input_ids"][:_TOKENS]

    def verdict(
        self,
        name: str,
        server: _Server,
        adapters: Mapping[str, Adapter],
        old: Mapping[str, Adapter],
    ) -> ServedVerdict:
        try:
            ids, log_probs = server.scores(name)
        except (OSError, KeyError, TypeError, IndexError, ValueError) as error:
            return ServedVerdict(name, MISSING, f"no log-probabilities: {first_line(error)}")

        def distance(adapter: Adapter | None) -> Tensor:
            """How far this adapter's scores are from the server's [tokens], in nats."""
            return (self._scores(adapter, ids) - log_probs).abs()

        off_folder, off_base = distance(adapters[name]), distance(None)
        mean, exact = float(off_folder.mean()), TOLERANCES["float32"]
        others: list[tuple[str, str, Adapter | None]] = [(BASE, "the base", None)]
        if not mean <= exact:
            others += [("another one", other, a) for other, a in adapters.items() if other != name]
            others += [("an old one", f"the earlier {name}", old[name])] if name in old else []
            others += _variants(adapters[name])
        scored = [(verdict, what, distance(adapter)) for verdict, what, adapter in others]
        verdict, what, best = min(scored, key=lambda each: float(each[2].mean()))
        nearest = float(best.mean())
        if is_better(best, off_folder) and nearest <= self._tolerance:
            apart = f"its folder is {mean:.3f} nats a token off, {what} {nearest:.3f}"
            return ServedVerdict(name, verdict, apart)
        # NaN is not served.
        if is_better(best, off_folder) or not mean <= self._tolerance:
            return ServedVerdict(name, SOMETHING_ELSE, f"{mean:.3f} nats a token off its folder")
        weak = "" if is_better(off_folder, off_base) else "; so little differs from the base"
        return ServedVerdict(name, SERVED, f"{mean:.4f} nats a token off{weak}")

    def _scores(self, adapter: Adapter | None, ids: list[int]) -> Tensor:
        if adapter is None:
            return token_scores(self._model, ids)
        self._bank.write(0, adapter)
        with self._bank.adapters_active(torch.tensor([0])):
            return token_scores(self._model, ids)


def _variants(adapter: Adapter) -> Iterator[tuple[str, str, Adapter]]:
    """What a server makes of an adapter by mistake: another scale, or only some of its layers."""
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
        rest = set(names) - layers
        if layers and rest:
            yield "some modules missing", part, _scaled(adapter, layers)
            yield "some modules missing", f"not {part}, but the rest", _scaled(adapter, rest)


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
