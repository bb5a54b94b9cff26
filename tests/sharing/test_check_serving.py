"""`check-serving` against a server of our own that makes the mistakes that servers make."""

import json
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import torch
from random_adapters import loud

from azr_population.bases.nano import nano_base_path
from azr_population.cli import main
from azr_population.engines.base_model import load_base, token_scores
from azr_population.sharing.check_serving import _Server, check_serving, exit_code
from azr_population.weights.adapter import Factors, LoraSpec
from azr_population.weights.bank import Bank
from azr_population.weights.peft_folder import save_adapter

NAMES = ("a", "b", "a_before")


class Server:
    """Answers under each name with the adapter in `served`; None is the base."""

    def __init__(self, folder):
        self.model, _ = load_base(nano_base_path(), "float32", "cpu")
        self.bank = Bank(self.model, LoraSpec(4, 8.0), 1)
        self.adapters = {n: loud(self.bank.read(0), seed) for seed, n in enumerate(NAMES)}
        self.folders = {name: folder / name for name in NAMES}
        for name, adapter in self.adapters.items():
            save_adapter(adapter, folder / name, "base")
        self.served, self.noise, self.sglang, self.mute = {}, 0.0, False, 0
        handler = type("Handler", (Handler,), {"server_side": self})
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"

    def scores(self, name, ids):
        if (adapter := self.served.get(name)) is None:
            return token_scores(self.model, ids)
        self.bank.write(0, adapter)
        with self.bank.adapters_active(torch.tensor([0])):
            return token_scores(self.model, ids)

    def check(self, **more):
        adapters = {name: self.folders[name] for name in ("a", "b")}
        return check_serving(self.url, nano_base_path(), adapters, **more)


class Handler(BaseHTTPRequestHandler):
    def answer(self, code, content):
        self.send_response(code)
        self.end_headers()
        self.wfile.write(json.dumps(content).encode())

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.answer(200, {"data": []})

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        side, ids = self.server_side, asked["prompt"]
        if asked["model"] not in side.served and not side.sglang:
            return self.answer(404, {"error": "no such model"})
        tokens = ids if asked.get("echo") else [*ids, *range(70, 70 + asked["max_tokens"])]
        values = side.scores(asked["model"], tokens)
        noise = torch.randn(len(values), generator=torch.Generator().manual_seed(0))
        values = values + side.noise * noise
        shown = [None, *values.tolist()][0 if asked.get("echo") else len(ids) :]
        shown = shown[side.mute if asked.get("echo") else 0 :]
        written = tokens[len(tokens) - len(shown) :]
        logprobs = {"token_logprobs": shown, "tokens": [f"token_id:{id}" for id in written]}
        choice = {"index": 0, "text": "", "logprobs": logprobs}
        if side.sglang:  # shows texts, has ids apart, and does not know the model's name
            logprobs |= {"tokens": ["x"] * len(shown), "text_offset": [-1] * len(shown)}
            choice["token_ids"] = written if asked.get("return_token_ids") else None
        self.answer(200, {"choices": [choice]})


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("adapters"))
    threading.Thread(target=server.http.serve_forever, daemon=True).start()
    yield server
    server.http.shutdown()


@pytest.fixture
def server(running):
    running.served = {name: running.adapters[name] for name in ("a", "b")}
    running.noise, running.sglang, running.mute = 0.0, False, 0
    return running


def times(adapter, scale):
    factors = {n: Factors(p.A, p.B * scale(n)) for n, p in adapter.factors.items()}
    return replace(adapter, factors=factors)


FAULTS = {
    "the base": lambda s: {"a": None},
    "another one": lambda s: {"a": s["b"], "b": s["a"]},
    "an old one": lambda s: {"a": s["a_before"]},
    "scaled otherwise": lambda s: {"a": times(s["a"], lambda _: 0.5)},
    "some modules missing": lambda s: {"a": times(s["a"], lambda name: "attn" in name)},
    "something else": lambda s: {"a": loud(s["a"], 9)},
    "not reachable": lambda s: None,
}


@pytest.mark.parametrize("verdict", FAULTS)
def test_what_a_server_does_wrong_is_named(server, verdict):
    server.noise, changed = 0.05, FAULTS[verdict](server.adapters)
    server.served = {"b": server.adapters["b"]} if changed is None else server.served | changed
    first, second = server.check(old={"a": server.folders["a_before"]})
    assert first.name == "a" and first.verdict == verdict
    swapped = changed is not None and "b" in changed
    assert second.verdict == ("another one" if swapped else "served")
    assert exit_code([first, second]) == (3 if verdict == "not reachable" else 1)


def test_a_server_that_does_not_echo_is_told_so(server):
    server.mute = 3  # log-probabilities that it leaves out
    for each in server.check():
        assert each.verdict == "not reachable" and "does not echo" in str(each)


def test_sglang_is_asked_by_base_and_adapter(server):
    """Its `model` is `BASE:ADAPTER`; by the adapter's name alone it answers as the base."""
    server.sglang, server.served = True, {"nano:a": server.adapters["a"]}
    asked = {name: server.folders["a"] for name in ("nano:a", "a")}
    served, alone = check_serving(server.url, nano_base_path(), asked, dtype="float32")
    assert (served.verdict, alone.verdict) == ("served", "the base")
    ids, told = _Server(server.url, None).scores("nano:a", [1, 2, 3])
    assert ids == [1, 2, 3, *range(70, 102)] and len(told) == len(ids) - 1


def test_an_adapter_that_changes_nothing_is_served_and_said_to_be_weak(server, tmp_path):
    fresh = times(server.adapters["a"], lambda _: 0.0)
    save_adapter(fresh, tmp_path / "fresh", "base")
    server.served = {"fresh": fresh}
    (verdict,) = check_serving(server.url, nano_base_path(), {"fresh": tmp_path / "fresh"})
    assert verdict.verdict == "served" and "little differs from the base" in verdict.detail


def test_the_command_prints_verdicts_and_has_exit_codes(server, capsys):
    asked = ["check-serving", server.url, "--base", str(nano_base_path())]
    asked += ["--adapter", f"a={server.folders['a']}"]
    assert main(asked) == 0 and capsys.readouterr().out.startswith("a: served (0.0000 nats")
    server.served["a"] = None
    assert main([*asked, "--dtype", "float32"]) == 1
    assert main([*asked, "--adapter", "a"]) == 2
    capsys.readouterr()
    for url in ("http://127.0.0.1:9", "http://127.0.0.1:80a"):
        assert main([asked[0], url, *asked[2:]]) == 3
        assert f"not reachable ({url}/v1 does not answer" in capsys.readouterr().out


def test_a_member_is_named_by_its_address_and_names_its_base(server, tmp_path):
    run = tmp_path / "run"
    save_adapter(server.adapters["a"], run / "members/student_0", str(nano_base_path()))
    (run / "config.yaml").write_text("seed: 1\n")
    typed = ["check-serving", server.url, "--dtype", "float32"]
    assert main([*typed, "--adapter", f"a={run / 'student_0'}"]) == 0
    assert main([*typed, "--adapter", f"b={run / 'student_0'}"]) == 1
