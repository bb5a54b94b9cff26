"""Servers that hang, refuse, are busy or send too much: one line in bounded time, and going on."""

import json
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager

import needs
import pytest
from fakes import http_server
from made_up_problems import write_jsonl

from azr_population.cli import main

needs.module("inspect_ai", "-e '.[eval]'")
from refusals import refuses  # noqa: E402

from azr_population.evals.benchmark_run import BenchmarkSettings, run_benchmarks  # noqa: E402

OVER = threading.Event()
"""Never set: what a server waits for that says no more."""


def completion(*texts):
    choices = [{"index": n, "text": text, "finish_reason": "stop"} for n, text in enumerate(texts)]
    about = {"id": "1", "object": "text_completion", "created": 1, "model": "m"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return json.dumps({**about, "choices": choices, "usage": usage}).encode()


FINE = (200, completion("<answer>\\boxed{0}</answer>"))


@contextmanager
def server(*answers):
    """Gives these answers, the last one for ever: (status, body), or a function that makes it.

    Yields (URL, the bodies of the requests).
    """
    bodies = []

    def respond(path, headers, body):
        bodies.append(json.loads(body))
        answer = answers[min(len(bodies), len(answers)) - 1]
        return answer() if callable(answer) else answer

    with http_server(respond) as address:
        yield f"{address}/v1", bodies


def hangs():
    OVER.wait(60)
    return FINE


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    rows = [{"question": f"{n} + {n}?", "answer": f"#### {2 * n}"} for n in range(3)]
    write_jsonl(tmp_path / "data/gsm8k/test.jsonl", rows)
    return str(tmp_path / "data")


def ask(url, data, **more):
    arguments = {"benchmarks": "gsm8k", "data": data, "display": "none", "timeout": 1, "retries": 0}
    return run_benchmarks(["m"], BenchmarkSettings(**{**arguments, "server": url, **more}))


BAD = {
    "hangs": hangs,
    "refuses": (401, b"{}"),
    "busy": (429, b"{}"),
    "not JSON": (200, b"<html>Sign in</html>"),
    "no completion": (200, completion()),
    "one too many": (200, completion("4", "5")),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_server_is_an_error_and_not_a_wrong_answer(kind, data):
    with server(BAD[kind]) as (url, _), refuses("gsm8k"):
        ask(url, data, limit=1)


def test_what_fails_for_a_moment_is_tried_again(data):
    with server((429, b"{}"), FINE) as (url, bodies):
        result = ask(url, data, limit=1, retries=2, timeout=60)
    assert result["value"].tolist() == [1.0]
    assert len(bodies) == 2


def test_what_was_answered_is_kept_and_the_same_command_goes_on(data):
    with server(FINE, FINE, (401, b"{}")) as (url, first):
        label = url.partition("://")[2].replace("/", "_")
        typed = ["benchmark", "m", "--server", url, "--data", data, "--benchmarks", "gsm8k"]
        typed += ["--display", "none", "--retries", "0", "--logs", label]
        assert main(typed) == 2
        asked = len(first)
        first.clear()
    with server(FINE) as (url, second):
        typed[3] = url
        assert main(typed) == 0
    assert asked + len(second) <= 5 and len(second) < 3


@pytest.mark.slow
def test_ctrl_c_ends(data):
    asked = threading.Event()

    def answer():
        asked.set()
        return hangs()

    with server(answer) as (url, _):
        program = [sys.executable, "-m", "azr_population.cli", "benchmark", "m", "--server", url]
        program += ["--data", data, "--benchmarks", "gsm8k", "--display", "plain"]
        with subprocess.Popen(program, stderr=subprocess.PIPE, text=True) as run:
            assert asked.wait(240)
            run.send_signal(signal.SIGINT)
            run.communicate(timeout=60)
    assert run.returncode == 130
