"""Self-play by OpenEnv's client against the served environment."""

import threading
from pathlib import Path

import needs
import pytest
import yaml

from azr_population.config.schema import PopulationConfig
from azr_population.sharing.episode import Episode

needs.module("openenv.core", "'openenv>=0.10' 'transformers>=5'")
MANIFEST = Path(__file__).parents[2] / "examples" / "openenv" / "openenv.yaml"
PROPOSAL = "```python\ndef f(x):\n    return x * 3 + 1\n```\n```input\n5\n```"
ANSWERS = ["```output\n16\n```", "```output\n17\n```", "I do not know", "```output\n16\n```"]


@pytest.fixture
def address(monkeypatch):
    import uvicorn

    monkeypatch.syspath_prepend(str(MANIFEST.parent))

    started = threading.Event()  # uvicorn has no event of its own for it

    class Server(uvicorn.Server):
        async def startup(self, sockets=None):
            await super().startup(sockets)
            started.set()

    manifest = yaml.safe_load(MANIFEST.read_text(encoding="utf-8"))
    server = Server(uvicorn.Config(manifest["app"], port=0, log_level="warning"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    assert started.wait(60)
    host, port = server.servers[0].sockets[0].getsockname()
    yield f"http://{host}:{port}"
    server.should_exit = True
    thread.join()


def test_rewards_are_a_runs(address):
    from openenv.core import GenericEnvClient

    episode = Episode("code_o", PROPOSAL)
    for answer in ANSWERS:
        episode.attempt(answer)
    expected = episode.reward(PopulationConfig())
    with GenericEnvClient(base_url=address).sync() as client:
        assert client.reset(type="code_o").observation["seat"] == "proposer"
        steps = [client.step({"text": text}) for text in (PROPOSAL, *ANSWERS)]
        assert [step.reward for step in steps] == [None, *expected[1]]
        assert [step.done for step in steps] == [False] * 4 + [True]
        assert steps[-1].observation["proposal_reward"] == expected[0] == 0.5
        client.reset(type="code_i")
        refused = client.step({"text": "no program"})
        assert (refused.done, refused.reward) == (True, -1.0)
