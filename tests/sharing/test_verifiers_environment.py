"""The exported taskset and its self-play, the latter run by `vf-eval` against a scripted server."""

import asyncio
import json
import sys

import pytest
from fakes import http_server

from azr_population.config.schema import PopulationConfig
from azr_population.method.rewards import TEACHER_REWARDS, student_reward
from azr_population.sharing.export import export

vf = pytest.importorskip("verifiers.v1", reason="needs verifiers: pip install verifiers")

TASK = "```python\ndef f(x):\n    return x * 3 + 1\n```\n```input\n5\n```"
BANNED = "```python\nimport os\ndef f(x):\n    return os.getpid() + x\n```\n```input\n5\n```"
ANSWERS = ["```output\n16\n```", "```output\n17\n```", "I do not know", "It is\n```output\n16\n```"]


@pytest.fixture
def package(run, tmp_path, monkeypatch):
    """The run's tasks as an installed package."""
    export(str(run.path), "verifiers", tmp_path / "my-tasks")
    monkeypatch.syspath_prepend(str(tmp_path / "my-tasks"))
    yield
    for module in ("my_tasks", "my_tasks_self_play"):
        sys.modules.pop(module, None)


def scripted(proposal):
    """Streams `proposal` where a program is asked for, else the next of `ANSWERS`."""
    answers = iter(ANSWERS)

    def respond(path, headers, body):
        asked = str(json.loads(body)["messages"][-1]["content"])
        text = proposal if "Design a new" in asked else next(answers)
        choice = {"index": 0, "delta": {"role": "assistant", "content": text}}
        chunk = {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": "script"}
        chunk["choices"] = [{**choice, "finish_reason": "stop"}]
        return 200, f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode()

    return http_server(respond, "text/event-stream")


@pytest.mark.parametrize(
    ("proposal", "solved"), [(TASK, [True, False, False, True]), (BANNED, None)]
)
def test_rewards_are_a_runs(proposal, solved, package, tmp_path, monkeypatch):
    from verifiers.v1.cli.eval.main import main
    from verifiers.v1.runtimes.subprocess import SubprocessRuntime

    monkeypatch.setenv("SCRIPT_KEY", "none")
    program = tmp_path / "chat.py"

    async def without_network(self, source, env=None, *, activate=True):
        program.write_text(source)
        return [sys.executable, str(program)]

    monkeypatch.setattr(SubprocessRuntime, "prepare_uv_script", without_network)
    # fmt: off
    with scripted(proposal) as address:
        main(["my_tasks", "--env.id", "my_tasks_self_play", "-n", "1", "-m", "script",
              "--client.base-url", f"{address}/v1", "--client.api-key-var", "SCRIPT_KEY",
              "--no-rich", "--no-push", "-o", str(tmp_path), "--run.dir", "out"])
    # fmt: on
    [file] = (tmp_path / "out").glob("*.jsonl")
    [episode] = [json.loads(line) for line in file.read_text().splitlines()]
    proposed, *attempts = episode["traces"]
    config = PopulationConfig()
    rate = sum(solved) / 4 if solved else None
    reward = TEACHER_REWARDS.find(config.teacher_reward)
    worth = -1.0 if rate is None else reward(rate)
    assert proposed["rewards"][config.teacher_reward]["score"] == worth
    parsed = [True, True, False, True]
    expected = [student_reward(*seen) for seen in zip(parsed, solved or [], strict=False)]
    assert [attempt["rewards"]["azr"]["score"] for attempt in attempts] == expected


def scored(task, reply):
    """What this last reply of a model is worth."""
    traced = vf.TraceTask(type=type(task).__name__, data=task.data)
    trace = vf.Trace.model_construct(task=traced, rewards={}, metrics={}, root_reply=reply)
    asyncio.run(task.score(trace))
    return {name: reward.value for name, reward in trace.rewards.items()}


def test_right_answers_are_worth_one(package):
    from verifiers.v1.utils.loaders import load_taskset

    output, abduction = list(load_taskset(vf.TasksetConfig(id="my_tasks")))
    assert "What does f return" in output.data.prompt and output.data.idx == 0
    assert scored(output, "It is\n```output\n2\n```") == {"right": 1.0}
    assert scored(output, "It is\n```output\n3\n```") == {"right": 0.0}
    assert scored(output, "2") == {"right": 0.0}
    assert scored(abduction, "```input\n1\n```") == {"right": 1.0}
