"""Servers that hang, drip, flood, lie or fail for a moment, and what each costs at most."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress

import pytest
from made_up_problems import write_jsonl

from azr_population.cli import main
from azr_population.errors import UserError
from azr_population.measuring.evaluation.contestants import Contestant
from azr_population.measuring.evaluation.prompts import Prompt
from azr_population.measuring.evaluation.sampling import server_sampler
from azr_population.measuring.evaluation.sampling.sampler import Request, Settings
from azr_population.measuring.evaluation.sampling.server_sampler import ServerSampler
from azr_population.measuring.evaluation.store import Store

pytest.importorskip("httpx")
SECONDS = 1.0


def response(body, status="200 OK", length=None, *headers):
    size = len(body) if length is None else length
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {size}", "Connection: close", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


def choices(*texts):
    made = [{"message": {"content": text}, "finish_reason": "stop"} for text in texts]
    return json.dumps({"choices": made}).encode()


FINE = response(choices("4"))
MODELS = response(json.dumps({"data": [{"id": "m"}]}).encode())


@contextmanager
def server(*answers):
    """Gives these answers, the last one for ever; one is bytes, or a function of the connection.

    Yields (URL, the requests' heads).
    """
    heads = []

    def serve(connection, number):
        with connection, suppress(OSError):
            with connection.makefile("rb") as asked:
                head = b"".join(iter(asked.readline, b"\r\n"))
                sizes = [line for line in head.splitlines() if line.startswith(b"Content-Length")]
                asked.read(int(sizes[0].partition(b":")[2]) if sizes else 0)
            heads.append(head)
            answer = MODELS if head.startswith(b"GET") else answers[min(number, len(answers) - 1)]
            answer(connection) if callable(answer) else connection.sendall(answer)

    def accept():
        number = 0
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=serve, args=(connection, number), daemon=True).start()
                number += 1

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1", heads


OVER = threading.Event()
"""Never set: what a server waits for that says no more."""


def hangs(connection):
    OVER.wait(60)


def hangs_in_the_middle(connection):
    connection.sendall(response(b'{"choices"', length=1000))
    OVER.wait(60)


def drips(connection):
    connection.sendall(response(b"", length=10_000))
    while not OVER.wait(0.05):
        connection.sendall(b" ")


def drips_its_head(connection):
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    while not OVER.wait(0.05):
        connection.sendall(b"X-More: 1\r\n")


def resets(connection):
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


def floods(connection):
    connection.sendall(response(b"", length=1 << 40))
    while True:
        connection.sendall(b" " * (1 << 20))


def ask(url, n=1, prompts=1, seconds=SECONDS):
    sampler = ServerSampler(url, seconds)
    asked = [Request(Contestant("m", "model", "m"), Prompt("2+2?", chat=True), n)] * prompts
    return sampler.sample(asked, Settings(9), 7)


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch):
    monkeypatch.setattr(server_sampler, "_PAUSES", (0.0, 0.0, 0.0))
    monkeypatch.setattr(server_sampler, "_MOST_BYTES", 4 << 20)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


BAD = {
    "hangs": (hangs, "gave no whole answer within 1 seconds"),
    "hangs in the middle": (hangs_in_the_middle, "gave no whole answer within 1 seconds"),
    "drips": (drips, "gave no whole answer within 1 seconds"),
    "drips its head": (drips_its_head, "gave no whole answer within 1 seconds"),
    "resets": (resets, "does not answer"),
    "closes": (lambda connection: None, "does not answer"),
    "closes in the middle": (response(b"{", length=1000), "does not answer"),
    "no HTTP": (b"SSH-2.0-OpenSSH_9.6\r\n", "does not answer"),
    "floods": (floods, "sent more than 4 MB"),
    "deep JSON": (response(b"[" * 200_000 + b"]" * 200_000), "sent what is no JSON"),
    "half of a JSON": (response(b'{"choices": ['), "sent what is no JSON"),
    "NaN": (response(b'{"choices": [{"text": NaN}]}'), "sent what is no JSON: NaN"),
    "no UTF-8": (response(b'{"choices": "\xff\xfe"}'), "sent what is no JSON"),
    "a page": (response(b"<html>Sign in</html>"), "sent what is no JSON"),
    "a list": (response(b"[]"), "an answer without completions"),
    "null": (response(b"null"), "an answer without completions"),
    "choices of null": (response(b'{"choices": null}'), "an answer without completions"),
    "choices that are texts": (response(b'{"choices": ["4"]}'), "an answer without completions"),
    "a text that is none": (response(b'{"choices": [{"text": [4]}]}'), "without completions"),
    "none": (response(choices()), "sent 0 completions where 1 were asked"),
    "one too many": (response(choices("4", "5")), "sent 2 completions where 1 were asked"),
    "no key": (response(b"\x1b[31mwho\nare you", "401 Unauthorized"), "401: [31mwho are you"),
    "always busy": (response(b"later", "429 Too Many Requests"), "429: later"),
    "always broken": (response(b"oh", "500 Internal Server Error"), "500: oh"),
    "sends away": (
        response(b"", "307 Temporary Redirect", None, "Location: http://127.0.0.2:1/v1"),
        "sends on to http://127.0.0.2:1/v1",
    ),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_server_is_one_line_in_its_time(kind):
    answer, said = BAD[kind]
    with server(answer) as (url, _):
        began = time.monotonic()
        with pytest.raises(UserError) as error:
            list(ask(url))
    assert time.monotonic() - began < 8 * SECONDS  # four tries and a busy machine
    assert said in str(error.value)
    assert "\n" not in str(error.value)
    assert "sk-secret" not in str(error.value)


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Temporary", "308 Permanent"])
def test_a_key_goes_to_no_other_host(status):
    with server(FINE) as (other, seen):
        away = response(b"", status, None, f"Location: {other}/chat/completions")
        with server(away) as (url, heads), pytest.raises(UserError, match="sends on to"):
            list(ask(url))
    assert b"sk-secret" in heads[0]
    assert seen == []


PASSING = {
    "resets": resets,
    "closes": lambda connection: None,
    "busy": response(b"", "429 Too Many Requests"),
    "broken": response(b"", "500 Internal Server Error"),
    "no gateway": response(b"", "502 Bad Gateway"),
    "away": response(b"", "503 Service Unavailable"),
}


@pytest.mark.parametrize("kind", PASSING)
@pytest.mark.parametrize("times", [1, 3])
def test_what_fails_for_a_moment_is_tried_again(kind, times):
    with server(*[PASSING[kind]] * times, FINE) as (url, heads):
        ((_, (drawn,)),) = ask(url)
    assert drawn.text == "4"
    assert len(heads) == times + 1


@pytest.mark.parametrize("status", ["401 Unauthorized", "404 Not Found", "501 Not Implemented"])
def test_what_fails_for_good_is_asked_once(status):
    with server(response(b"", status)) as (url, heads), pytest.raises(UserError):
        list(ask(url))
    assert len(heads) == 1


def test_half_a_surrogate_is_replaced():
    body = b'{"choices": [{"text": "a\\ud800b", "finish_reason": "stop"}]}'
    with server(response(body)) as (url, _):
        ((_, (drawn,)),) = ask(url)
    assert drawn.text == "a?b"


def test_what_came_before_a_failure_is_told():
    with server(FINE, FINE, FINE, hangs) as (url, _):
        told = []
        with pytest.raises(UserError, match="no whole answer"):
            for place, _ in ask(url, prompts=4):
                told.append(place)
    assert len(told) == 3


@pytest.fixture
def typed(tmp_path):
    rows = [{"question": f"{n} + {n}?", "answer": f"#### {2 * n}"} for n in range(3)]
    write_jsonl(tmp_path / "data/gsm8k/test.jsonl", rows)
    return lambda url, *more: [
        "evaluate", "--rollout", f"openai={url}", "--data", str(tmp_path / "data"),
        "--benchmarks", "gsm8k", "--processes", "1", "--records", str(tmp_path / "records"), *more,
    ]  # fmt: skip


def test_what_was_drawn_is_kept_and_the_command_goes_on(tmp_path, typed, capsys):
    with server(MODELS, FINE, FINE, hangs) as (url, _):
        assert main(typed(url, "--timeout", "1")) == 2
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "no whole" in line]
    assert "What was drawn is kept" in line
    assert len(Store(tmp_path / "records").completions) == 2
    with server(FINE) as (url, heads):
        assert main(typed(url)) == 0
    assert sum(head.startswith(b"POST") for head in heads) == 1


def test_a_second_evaluation_in_one_folder_is_refused(tmp_path, typed, capsys):
    with Store(tmp_path / "records").locked(), server(FINE) as (url, heads):
        assert main(typed(url)) == 2
    assert "is in use by another evaluation" in capsys.readouterr().err
    assert not [head for head in heads if head.startswith(b"POST")]


@pytest.mark.slow
@pytest.mark.parametrize("bad", [hangs, drips, floods])
def test_ctrl_c_ends_at_once(typed, bad):
    asked = threading.Event()

    def answer(connection):
        asked.set()
        bad(connection)

    with server(MODELS, answer) as (url, _):
        program = [sys.executable, "-m", "azr_population.cli", *typed(url)]
        with subprocess.Popen(program, stderr=subprocess.PIPE, text=True) as run:
            assert asked.wait(120)
            began = time.monotonic()
            run.send_signal(signal.SIGINT)
            _, said = run.communicate(timeout=30)
    assert run.returncode == 130
    assert said.strip().splitlines()[-1] == "azr-population: stopped"
    assert time.monotonic() - began < 5


def test_a_thread_with_a_loop_that_runs_can_sample():
    """As a notebook's thread has one."""

    async def cell(url):
        return names(url)

    def names(url):
        return ServerSampler(url, SECONDS).models()

    with server(MODELS) as (url, _):
        assert asyncio.run(cell(url)) == {"m": "m"}
