"""The provider without Inspect around it, and its batches."""

import asyncio
import shutil
from dataclasses import replace

import needs
import pytest
import torch

needs.module("inspect_ai", "-e '.[eval]'")
from inspect_ai.model import ChatMessageAssistant, ChatMessageUser  # noqa: E402
from made_up_problems import adapter  # noqa: E402

from azr_population.engines.engine import Completion  # noqa: E402
from azr_population.eval.benchmark.batcher import Batcher  # noqa: E402
from azr_population.eval.benchmark.provider import (  # noqa: E402
    Request,
    SharedRollout,
    _output,
    _render,
)
from azr_population.eval.members import find_members  # noqa: E402


def test_a_lone_surrogate_ends_no_batch():
    target = find_members("nano")[-1]
    rollout = SharedRollout(target.base, "float32", "cpu", "torch", 4)
    rollout.targets[target] = ""
    asked = [
        Request(target, [ChatMessageUser(content=text)], 4, (0.0, 1.0, 0), ())
        for text in ("\ud800 1?", "? 1?", "1?")
    ]
    surrogate, replaced, _ = rollout.generate(asked)
    assert surrogate.completion == replaced.completion


class Chat:
    """A tokenizer with a chat template."""

    chat_template, bos_token, bos_token_id = "one", "<s>", 1

    def apply_chat_template(self, turns, **_):
        return "".join(f"<{turn['role']}>{turn['content']}" for turn in turns) + "<assistant>"

    def __call__(self, text):
        return {"input_ids": [1]}


def test_a_begun_answer_stands_behind_the_template_and_a_raw_prompt_has_none():
    asked = [ChatMessageUser(content="1?"), ChatMessageAssistant(content="Here:")]
    begun = Request(find_members("nano")[-1], asked, 4, (0.0, 1.0, 0), ())
    assert _render(Chat(), begun) == ("<user>1?<assistant>Here:", False)
    raw = [ChatMessageUser(content="1?", metadata={"raw": True})]
    assert _render(Chat(), replace(begun, messages=raw)) == ("<s>1?", True)


def test_a_member_that_was_trained_on_is_loaded_again(tmp_path):
    folder = adapter(tmp_path / "mine", seed=1)
    rollout = SharedRollout(find_members(folder)[0].base, "float32", "cpu", "torch", 4)
    held = []
    for seed in (1, 2):
        adapter(shutil.rmtree(folder) or folder, seed=seed)
        (target,) = find_members(folder)[1:]
        rollout.targets[target] = target.weights
        loaded = rollout._load({target})
        held.append(loaded.engine.read(loaded.load(target).slot))
    one, other = (next(iter(each.factors.values())).A for each in held)
    assert not torch.equal(one, other)


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
