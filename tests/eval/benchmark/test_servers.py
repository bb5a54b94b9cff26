"""Servers by Inspect's providers: what hangs, refuses or sends too much is never a wrong answer."""

import json
import threading

import needs
import pytest
from fakes import http_server
from made_up_problems import write_jsonl

needs.module("inspect_ai", "-e '.[eval]'")
from inspect_ai import eval as inspect_eval  # noqa: E402
from inspect_ai.model import get_model  # noqa: E402

from azr_population.eval.benchmark.tasks import TASKS  # noqa: E402

OVER = threading.Event()
"""Never set: what a server waits for that says no more."""


def completion(*texts):
    choices = [{"index": n, "text": text, "finish_reason": "stop"} for n, text in enumerate(texts)]
    about = {"id": "1", "object": "text_completion", "created": 1, "model": "m"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return json.dumps({**about, "choices": choices, "usage": usage}).encode()


FINE = (200, completion("<answer>\\boxed{0}</answer>"))
BAD = {
    "hangs": lambda: (OVER.wait(20), FINE)[1],
    "refuses": (401, b"{}"),
    "busy": (429, b"{}"),
    "not JSON": (200, b"<html>Sign in</html>"),
    "no completion": (200, completion()),
    "one too many": (200, completion("4", "5")),
}


@pytest.fixture
def ask(tmp_path, monkeypatch):
    """Asks a server that gives this answer, or what it returns; the log."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    write_jsonl(tmp_path / "gsm8k/test.jsonl", [{"question": "0 + 0?", "answer": "#### 0"}])

    def asked(answer, seconds=600):
        def respond(path, headers, body):
            assert path == "/v1/completions" and "boxed" in json.loads(body)["prompt"]
            return answer() if callable(answer) else answer

        with http_server(respond) as address:
            model = get_model(
                "openai-api-completions/server/m", base_url=f"{address}/v1", api_key="none"
            )
            (log,) = inspect_eval(
                TASKS["gsm8k"](data=str(tmp_path)),
                model=model,
                attempt_timeout=seconds,
                max_retries=0,
                display="none",
                log_dir=str(tmp_path / "logs"),
            )
        return log

    return asked


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_server_is_an_error_and_not_a_wrong_answer(kind, ask):
    log = ask(BAD[kind], 1)
    assert log.status == "error"
    assert not any(sample.scores for sample in log.samples or [])


def test_a_server_s_model_is_asked(ask):
    log = ask(FINE)
    assert log.status == "success"
    assert next(iter(log.samples[0].scores.values())).value == "C"
