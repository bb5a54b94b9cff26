"""The provider without Inspect around it, and its batches."""

import asyncio

import needs
import pytest

needs.module("inspect_ai", "-e '.[eval]'")
from inspect_ai.model import ChatMessageUser  # noqa: E402

from azr_population.engines.engine import Completion  # noqa: E402
from azr_population.eval.benchmark.batcher import Batcher  # noqa: E402
from azr_population.eval.benchmark.provider import (  # noqa: E402
    Request,
    SharedRollout,
    _output,
)
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


def request(target="nano", stops=(), **notes):
    asked = [ChatMessageUser(content="1?", metadata=notes)]
    return Request(find_members(target)[-1], asked, 4, (0.8, 0.95, 1), stops)


def test_every_sample_epoch_and_member_draws_for_itself(played):
    rows = [
        request(target, sample=sample, epoch=epoch).row
        for target in ("nano", played / "student_0")
        for sample in ("gsm8k/1", "gsm8k/2")
        for epoch in (1, 2)
    ]
    assert len(set(rows)) == 8


def test_an_answer_ends_at_the_first_of_its_stops():
    class Recited:
        def decode(self, ids, **_):
            return "a = 1; print(a); end; print(2)"

    done = Completion(0, (1,), (2, 3), (0.0, 0.0), False)
    asked = request(stops=("; end", "; print"), plain_stops=("; end",))
    for plain, text in ((False, "a = 1"), (True, "a = 1; print(a)")):
        output = _output(Recited(), asked, done, 1, plain)
        assert (output.completion, output.stop_reason) == (text, "stop")


def test_a_request_without_a_key_fails_alone():
    batcher = Batcher(lambda requests: requests, 4, key=lambda request: request["k"], wait=0.01)

    async def ask():
        with pytest.raises(KeyError):
            await batcher.ask({})
        return await asyncio.wait_for(batcher.ask({"k": 1}), 60)

    assert asyncio.run(ask()) == {"k": 1}
