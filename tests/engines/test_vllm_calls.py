"""Calls of vLLM that end early, one after the other and at once, by an engine that keeps requests
as vLLM does."""

from types import SimpleNamespace

import pytest

from azr_population.engines import vllm_versions
from azr_population.engines.engine import PromptBatch, Sampling
from azr_population.engines.vllm_rollout import VllmRollout

END = 9


class Engine:
    """Answers a prompt by itself and END, in as many steps as its first token says."""

    def __init__(self):
        self.left, self.prompts, self.names = {}, {}, []

    def add_request(self, name, prompt, parameters, lora_request=None):
        if name in self.names:
            raise ValueError(f"Request {name} already exists")
        self.names.append(name)
        self.prompts[name] = prompt["prompt_token_ids"]
        self.left[name] = self.prompts[name][0]

    def abort_request(self, names):
        for name in names:
            del self.left[name]

    def has_unfinished_requests(self):
        return bool(self.left)

    def step(self):
        self.left = {name: steps - 1 for name, steps in self.left.items()}
        outputs = []
        for name in [name for name, steps in self.left.items() if steps <= 0]:
            del self.left[name]
            ids = [*self.prompts[name], END]
            logprobs = [{token: SimpleNamespace(logprob=-0.5)} for token in ids]
            completion = SimpleNamespace(token_ids=ids, logprobs=logprobs)
            outputs.append(SimpleNamespace(request_id=name, finished=True, outputs=[completion]))
        return outputs


@pytest.fixture
def rollout(monkeypatch):
    monkeypatch.setattr(vllm_versions, "sampling_params", SimpleNamespace)
    made = object.__new__(VllmRollout)
    made._stop_ids, made._requests, made._stale_prefixes, made.longest = [END], {0: None}, False, 0
    made.llm = SimpleNamespace(llm_engine=Engine())
    return made


def call(rollout, *prompts):
    batch = PromptBatch(
        [list(prompt) for prompt in prompts], [0] * len(prompts), range(len(prompts))
    )
    return rollout.stream(batch, Sampling(8), 5)


def answers(stream):
    return {row: group[0].token_ids for ended in stream for row, group in ended}


@pytest.mark.parametrize("how", ["closed", "forgotten", "interrupted"])
def test_what_is_abandoned_is_aborted_and_the_next_call_gets_its_own(rollout, how):
    stream = call(rollout, (1, 1), (3, 2), (4, 3))
    assert next(stream)[0][0] == 0
    assert rollout.llm.llm_engine.has_unfinished_requests()
    if how == "closed":
        stream.close()
    elif how == "interrupted":
        with pytest.raises(KeyboardInterrupt):
            stream.throw(KeyboardInterrupt)
    else:
        del stream
    assert not rollout.llm.llm_engine.has_unfinished_requests()
    assert answers(call(rollout, (2, 7), (1, 8))) == {0: (2, 7, END), 1: (1, 8, END)}
    assert len(rollout.llm.llm_engine.names) == 5


def test_a_second_call_at_once_is_refused_and_the_first_goes_on(rollout):
    first = call(rollout, (1, 1), (3, 2))
    next(first)
    with pytest.raises(RuntimeError, match="one call"):
        next(call(rollout, (1, 5)))
    assert answers(first) == {1: (3, 2, END)}
