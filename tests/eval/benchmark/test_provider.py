"""The provider without Inspect around it, and its batches."""

import asyncio

import needs
import pytest

needs.module("inspect_ai", "-e '.[eval]'")
from inspect_ai.model import ChatMessageUser  # noqa: E402

from azr_population.eval.benchmark.batcher import Batcher  # noqa: E402
from azr_population.eval.benchmark.provider import Request, SharedRollout  # noqa: E402
from azr_population.eval.members import find_members  # noqa: E402


def test_a_lone_surrogate_ends_no_batch():
    target = find_members("nano")[-1]
    rollout = SharedRollout(target.base, "float32", "cpu", "torch", 4)
    rollout.targets.add(target)
    asked = [
        Request(target, [ChatMessageUser(content=text)], 4, (0.0, 1.0, 0), ())
        for text in ("\ud800 1?", "? 1?", "1?")
    ]
    surrogate, replaced, _ = rollout.generate(asked)
    assert surrogate.completion == replaced.completion


def test_a_request_without_a_key_fails_alone():
    batcher = Batcher(lambda requests: requests, 4, key=lambda request: request["k"], wait=0.01)

    async def ask():
        with pytest.raises(KeyError):
            await batcher.ask({})
        return await asyncio.wait_for(batcher.ask({"k": 1}), 60)

    assert asyncio.run(ask()) == {"k": 1}
