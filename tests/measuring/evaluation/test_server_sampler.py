"""A server of our own that speaks as much of the OpenAI protocol as is asked of it."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from azr_population.errors import UserError
from azr_population.measuring.evaluation.prompts import Prompt
from azr_population.measuring.evaluation.sampling import server_sampler
from azr_population.measuring.evaluation.sampling.sampler import Request, Settings
from azr_population.measuring.evaluation.sampling.server_sampler import ServerSampler


class Speaks(BaseHTTPRequestHandler):
    def do_GET(self):
        models = [{"id": "base", "root": "/models/base"}, {"id": "teacher_0"}]
        self.answer(200, {"data": models} if self.path == "/v1/models" else {})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.path, body))
        text = json.dumps(body.get("messages") or body["prompt"])
        if "too long" in text:
            return self.answer(400, {"message": "maximum context length"})
        if "break" in text:
            return self.answer(500, {"message": "out of order"})
        said = f"{body['model']} says 4\nprint( the rest"
        choice = {"text": said} if "prompt" in body else {"message": {"content": said}}
        self.answer(200, {"choices": [{**choice, "finish_reason": "stop"}] * body["n"]})

    def answer(self, code, content):
        data = json.dumps(content).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), Speaks) as made:
        made.asked = []
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield made
        made.shutdown()


@pytest.fixture
def sampler(server, monkeypatch):
    monkeypatch.setattr(server_sampler, "_PAUSES", (0.0, 0.0, 0.0))
    return ServerSampler(f"http://127.0.0.1:{server.server_port}/v1/", seconds=20)


def drawn(sampler, *prompts, n=1):
    (model,) = sampler.contestants(["teacher_0"])
    requests = [Request(model, prompt, n) for prompt in prompts]
    return [d for _, d in sorted(sampler.sample(requests, Settings(9, 0.5, 0.9), 7))]


def test_models_are_contestants(sampler):
    assert [(c.name, c.weights) for c in sampler.contestants([])] == [
        ("base", "/models/base"),
        ("teacher_0", "teacher_0"),
    ]
    with pytest.raises(UserError, match="does not serve student_9; it has base, teacher_0"):
        sampler.contestants(["student_9"])


def test_chat_and_plain_prompts(sampler, server):
    chat = Prompt("2+2?", chat=True, system="be brief", stops=("\nprint(",))
    plain = Prompt("Question: 2+2?\nAnswer:")
    (one, two), (other, _) = drawn(sampler, chat, plain, n=2)
    assert (one.text, one.finished, one.continued) == ("teacher_0 says 4", True, False)
    assert two == one
    assert (other.text, other.continued) == ("teacher_0 says 4\nprint( the rest", True)
    bodies = dict(server.asked)
    assert bodies["/v1/chat/completions"]["messages"] == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "2+2?"},
    ]
    sent = bodies["/v1/completions"]
    assert (sent["max_tokens"], sent["temperature"], sent["top_p"], sent["n"]) == (9, 0.5, 0.9, 2)


def test_a_prompt_that_is_refused_is_noted_and_the_rest_goes_on(sampler):
    refused, fine = drawn(sampler, Prompt("too long"), Prompt("fine"))
    assert (refused[0].text, fine[0].note) == ("", "")
    assert "maximum context length" in refused[0].note


def test_a_broken_server_is_one_line(sampler):
    with pytest.raises(UserError, match=r"chat/completions: 500: .*out of order"):
        drawn(sampler, Prompt("break", chat=True))


def test_nobody_answers(server):
    url = f"http://127.0.0.1:{server.server_port}"
    with pytest.raises(UserError, match="does not list models; is it an API root"):
        ServerSampler(url + "/other").models()
    server.shutdown()
    server.server_close()
    with pytest.raises(UserError, match=r"does not answer .*; is the server up\?"):
        ServerSampler(url + "/v1").models()
