import math
from dataclasses import replace

import pytest
import torch
from refusals import refuses
from tokenizers.processors import TemplateProcessing
from torch.utils._python_dispatch import TorchDispatchMode

from azr_population.engines.engine import (
    NO_ADAPTER,
    Completion,
    Hyperparameters,
    PromptBatch,
    Sampling,
    TrainingSample,
)
from azr_population.engines.optimizers import moments
from azr_population.engines.text import encode
from azr_population.errors import UserError
from azr_population.registry import trust

RATES = {0: Hyperparameters(1e-2), 1: Hyperparameters(1e-2), 2: Hyperparameters(1e-2)}


def factors(engine, slot):
    return [factor.detach().clone() for factor in engine.bank.parameters_of(slot)]


def same(first, second):
    return all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def sampled(engine, member, rows=8, seed=3):
    groups = engine.generate(["abc de"] * rows, [member] * rows, Sampling(10), seed)
    return [completion for (completion,) in groups]


def samples_of(engine, member, *advantages):
    """Eight completions with these advantages in turn."""
    return [
        TrainingSample(completion, advantages[place % len(advantages)])
        for place, completion in enumerate(sampled(engine, member))
    ]


def logprob(engine, completion):
    ids = torch.tensor([completion.prompt_ids + completion.token_ids])
    with torch.inference_mode(), engine.bank.adapters_active(torch.tensor([completion.slot])):
        logits = engine.model(input_ids=ids).logits[0, :-1]
    chosen = torch.log_softmax(logits, -1).gather(1, ids[0, 1:, None])[:, 0]
    return float(chosen[len(completion.prompt_ids) - 1 :].sum())


def test_an_update_makes_rewarded_completions_likelier_and_others_less_likely(engine):
    good, bad = sampled(engine, 1)[:2]
    before = logprob(engine, good), logprob(engine, bad)
    for _ in range(3):
        engine.update({1: [TrainingSample(good, 1.0), TrainingSample(bad, -1.0)]}, RATES)
    assert logprob(engine, good) > before[0]
    assert logprob(engine, bad) < before[1]


def test_an_update_of_one_member_leaves_the_others_bit_for_bit(engine):
    others = factors(engine, 0), factors(engine, 2)
    mine = factors(engine, 1)
    samples = samples_of(engine, 1, -0.5, 0.5)
    metrics = engine.update({1: samples, 2: []}, RATES)
    assert same(others[0], factors(engine, 0)) and same(others[1], factors(engine, 2))
    assert metrics[2] == {"updates": 0.0, "tokens": 0.0}
    assert not same(mine, factors(engine, 1))
    assert metrics[1]["updates"] == 1 and metrics[1]["grad_norm"] > 0
    assert metrics[1]["tokens"] == sum(len(s.completion.token_ids) for s in samples)


def test_the_gradient_does_not_depend_on_the_micro_batches(engine, another_engine):
    other = another_engine(micro_batch_tokens=1)
    samples = samples_of(engine, 0, -1.0, 0.0, 1.0)
    whole, pieces = (e.update({0: samples}, RATES)[0] for e in (engine, other))
    for name in ("loss", "grad_norm", "entropy"):
        assert whole[name] == pytest.approx(pieces[name], rel=1e-4, abs=1e-6)


class Products(TorchDispatchMode):
    """Counts products with weights."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += func._overloadpacket.__name__ in ("mm", "addmm", "addmm_")
        return func(*args, **(kwargs or {}))


def test_a_piece_that_keeps_its_products_multiplies_no_matrices_again(another_engine):
    engines = {
        keep: another_engine(
            gradient_checkpointing=keep is not None,
            recompute_above_tokens=keep,
            micro_batch_tokens=1000,
        )
        for keep in (None, 0, 1000)
    }
    samples = samples_of(engines[None], 0, -1.0, 0.0, 1.0)
    metrics, products = {}, {}
    for keep, other in engines.items():
        with Products() as counted:
            metrics[keep] = other.update({0: samples}, RATES)[0]
        products[keep] = counted.count
        assert not other.model.training
    assert engines[1000].engine.learner.config.most_tokens == 1000
    # With checkpointing transformers 5 has gradients by the embeddings too, through q, k and v.
    assert products[1000] - products[None] in (0, 2 * 3)
    # Two layers of seven: the base's, A's and B's, but for the last, which nothing asks for.
    assert 2 * (7 * 3 - 2) <= products[0] - products[1000] <= 2 * 7 * 3
    assert metrics[None] == metrics[0] == metrics[1000]
    assert all(same(factors(engines[None], 0), factors(other, 0)) for other in engines.values())


def test_log_probabilities_of_several_members_in_one_batch_are_those_of_rows_alone(
    engine, another_engine
):
    prompts, slots = [[1, 2, 3], [4], [5, 6, 7, 8], [9, 10]], [2, 0, 1, 2]
    responses = [[11, 12], [13, 14, 15], [], [16]]
    together = engine.engine.log_probs(prompts, responses, slots)
    assert len(together[2]) == 0
    for row in (0, 1, 3):
        done = Completion(slots[row], tuple(prompts[row]), tuple(responses[row]), (), True)
        assert float(together[row].sum()) == pytest.approx(logprob(engine, done), abs=1e-4)
    alone = another_engine(micro_batch_tokens=1).engine.log_probs(prompts, responses, slots)
    assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(together, alone, strict=True))


def test_gradients_are_clipped_to_the_norm(another_engine, monkeypatch):
    engine = another_engine(max_grad_norm=1e-3)
    samples = samples_of(engine, 0, -50.0, 50.0)
    norms = []

    def spy(optimizer, *ignored):
        grads = [p.grad for group in optimizer.param_groups for p in group["params"]]
        norms.append(float(torch.stack([grad.norm() for grad in grads]).norm()))

    monkeypatch.setattr(torch.optim.AdamW, "step", spy)
    assert engine.update({0: samples}, RATES)[0]["grad_norm"] > 1e-3
    assert norms == pytest.approx([1e-3], rel=1e-3)


def test_chat_prompts_go_through_the_tokenizers_template(another_engine):
    engine = another_engine(chat=True)
    engine.tokenizer.chat_template = "{% for m in messages %}u {{ m.content }} {% endfor %}a"
    (completion,) = engine.generate(["hi"], [0], Sampling(1), 0)[0]
    assert engine.tokenizer.decode(completion.prompt_ids) == "u hi a"


def test_without_a_template_chat_prompts_begin_as_the_base_expects(engine):
    start = TemplateProcessing(single="<eos> $A", special_tokens=[("<eos>", 1)])
    engine.tokenizer.backend_tokenizer.post_processor = start
    (plain,), (chat,) = (encode(engine.tokenizer, ["hi"], chat) for chat in (False, True))
    assert chat == [1, *plain] and 1 not in plain


def test_the_likelihood_of_an_answer_is_that_of_its_tokens_and_of_the_end(engine):
    prompts, answers, slots = ["abc", "x"], ["he", "1 2"], [2, 0]
    likelihoods = engine.likelihoods(prompts, answers, slots)
    for prompt, answer, slot, likelihood in zip(prompts, answers, slots, likelihoods, strict=True):
        ids = [engine.tokenizer(text)["input_ids"] for text in (prompt, answer)]
        whole = (*ids[1], engine.tokenizer.eos_token_id)
        done = Completion(slot, tuple(ids[0]), whole, (), True)
        assert likelihood == pytest.approx(math.exp(logprob(engine, done)), rel=1e-3)


def test_a_non_finite_gradient_is_not_applied(engine):
    before = factors(engine, 0)
    samples = samples_of(engine, 0, float("inf"))
    metrics = engine.update({0: samples}, RATES)
    assert metrics[0]["updates"] == 0
    assert same(before, factors(engine, 0))


def test_going_on_from_a_saved_state_is_bit_identical(engine, another_engine):
    samples = samples_of(engine, 1, -0.5, 0.5)
    engine.update({1: samples}, RATES)
    state = engine.state_dict()
    other = another_engine()
    other.load_state_dict(state)
    for e in (engine, other):
        e.update({1: samples}, RATES)
    assert same(factors(engine, 1), factors(other, 1))


def test_a_written_member_starts_with_a_fresh_optimizer(engine):
    samples = samples_of(engine, 1, -0.5, 0.5)
    start = engine.read(1)
    engine.update({1: samples}, RATES)
    first = factors(engine, 1)
    engine.write(1, start)
    assert not engine.state_dict()["optimizers"][1]["state"]
    engine.update({1: samples}, RATES)
    assert same(first, factors(engine, 1))


def test_the_optimizer_is_the_one_that_the_configuration_names(another_engine):
    trust(["torch.optim.SGD"])
    engine = another_engine(optimizer="torch.optim.SGD")
    before = factors(engine, 1)
    engine.update({1: samples_of(engine, 1, 1.0)}, {1: Hyperparameters(1e-3)})
    # AdamW's first step is 1e-3 for every weight.
    moved = max(float((a - b).abs().max()) for a, b in zip(before, factors(engine, 1), strict=True))
    assert moved > 0 and abs(moved - 1e-3) > 1e-5


@pytest.mark.parametrize("parallel", [False, True])
def test_a_step_is_down_the_slope_of_the_mean_over_tokens(another_engine, parallel):
    """By plain gradient descent, held against the rows one by one."""
    trust(["torch.optim.SGD"])
    lr, decay, coefficient = 0.02, 0.1, 0.3
    engine = another_engine(optimizer="torch.optim.SGD", weight_decay=decay, max_grad_norm=1e3)
    engine.engine.learner.parallel = parallel
    groups = engine.generate(["abc de"] * 3, [1] * 3, Sampling((3, 6, 9)), 3)
    samples = [
        TrainingSample(done, advantage)
        for (done,), advantage in zip(groups, (1.0, -0.5, 0.25), strict=True)
    ]

    def scores(done, slot):
        ids = torch.tensor([done.prompt_ids + done.token_ids])
        with engine.bank.adapters_active([slot]):
            every = torch.log_softmax(engine.model(input_ids=ids).logits[0, :-1], -1)
        chosen = every.gather(1, ids[0, 1:, None])[:, 0]
        return chosen[len(done.prompt_ids) - 1 :]

    loss, tokens = torch.zeros(()), 0
    for sample in samples:
        ours, base = scores(sample.completion, 1), scores(sample.completion, NO_ADAPTER).detach()
        divergence = (base - ours).exp() - 1 - (base - ours)
        loss = loss + (coefficient * divergence - sample.advantage * ours).sum()
        tokens += len(ours)
    before, parameters = factors(engine, 1), engine.bank.parameters_of(1)
    slopes = torch.autograd.grad(loss / tokens, parameters)
    figures = engine.update({1: samples}, {1: Hyperparameters(lr, coefficient)})[1]
    norm = torch.cat([slope.flatten() for slope in slopes]).norm()
    assert figures["grad_norm"] == pytest.approx(float(norm), rel=1e-4)
    for old, slope, new in zip(before, slopes, factors(engine, 1), strict=True):
        torch.testing.assert_close(new, old - lr * (slope + decay * old), rtol=1e-4, atol=1e-6)


def test_an_optimizer_that_there_is_not_is_refused(check):
    with pytest.raises(UserError) as caught:
        check("torch", optimizer="adam")
    assert caught.value.key == "engine.optimizer"


def test_moments_are_counted_not_known():
    trust(["torch.optim.SGD"])
    assert moments("adamw") == ("AdamW", 2)
    assert moments("torch.optim.SGD") == ("SGD", 0)


def test_an_update_that_fails_midway_leaves_nothing_for_the_next(another_engine):
    tried, plain = (another_engine(micro_batch_tokens=20) for _ in range(2))
    samples = samples_of(plain, 1, -0.5, 0.5)
    calls = []

    def fail_in_the_second_piece(*_):
        calls.append(0)
        if len(calls) == 2:
            raise RuntimeError("out of memory")

    handle = tried.model.model.layers[1].register_forward_hook(fail_in_the_second_piece)
    with pytest.raises(RuntimeError, match="out of memory"):
        tried.update({1: samples}, RATES)
    handle.remove()
    assert all(factor.grad is None for factor in tried.bank.parameters_of(1))
    tried.update({1: samples}, RATES)
    plain.update({1: samples}, RATES)
    assert same(factors(tried, 1), factors(plain, 1))


def test_members_updated_before_a_failure_are_pushed(engine, monkeypatch):
    pushed, local = [], engine.engine
    monkeypatch.setattr(local.rollout, "push", lambda slot, adapter: pushed.append(slot))
    samples = samples_of(engine, 0, 1.0)
    with pytest.raises(KeyError):
        engine.update({0: samples, 1: samples}, {0: RATES[0]})  # no rate for the second
    assert pushed == [0, 1]
    engine.update({0: samples, 2: []}, RATES)
    assert pushed == [0, 1, 0]


def test_the_state_of_another_optimizer_is_refused(engine, another_engine):
    trust(["torch.optim.SGD"])
    engine.update({1: samples_of(engine, 1, 1.0)}, RATES)
    other = another_engine(optimizer="torch.optim.SGD")
    with refuses("engine.optimizer"):
        engine.load_state_dict(other.state_dict())


def test_a_log_probability_that_is_no_number_names_the_sampler_and_its_member(engine, monkeypatch):
    stream = engine.engine.rollout.stream

    def broken(batch, sampling, seed):
        for rows in stream(batch, sampling, seed):
            yield [(row, [replace(d, logprobs=(math.nan,)) for d in group]) for row, group in rows]

    monkeypatch.setattr(engine.engine.rollout, "stream", broken)
    with refuses("TorchRollout gave NaN as a token's log-probability (the member in slot 2)"):
        engine.generate(["abc"], [2], Sampling(4), 0)


def test_a_sampler_s_stream_is_closed_when_its_reader_fails(engine, monkeypatch):
    closed = []

    def stream(batch, sampling, seed):
        try:
            yield [(0, [])]
            yield [(1, [])]
        finally:
            closed.append(seed)

    monkeypatch.setattr(engine.engine.rollout, "stream", stream)
    reader = engine.engine.stream(PromptBatch([[3]], [0], [0]), Sampling(4), 7)
    assert next(reader) == [(0, [])]
    with pytest.raises(ValueError, match="a reader's"):
        reader.throw(ValueError("a reader's"))
    assert closed == [7]


class ThroughData(torch.optim.SGD):
    """As optimizers of other packages write: torch's version counters do not see it."""

    def step(self, closure=None):
        for parameter in self.param_groups[0]["params"]:
            parameter.data.sub_(0.05 * parameter.grad.sign())


def test_what_an_optimizer_writes_through_data_is_sampled(engine):
    engine.model.bfloat16()  # whose sampler and learner use copies of the members
    learner = engine.engine.learner
    learner._optimizers[1] = ThroughData(learner.bank.parameters_of(1), lr=1.0)
    samples = samples_of(engine, 1, 1.0, -1.0)
    before = {name: stack.served(torch.bfloat16) for name, stack in engine.bank._stacks.items()}
    engine.update({1: samples}, RATES)
    for name, stack in engine.bank._stacks.items():
        A, B = stack.served(torch.bfloat16)
        assert not torch.equal(A, before[name][0])
        assert torch.equal(A, stack.A.bfloat16()) and torch.equal(B, stack.B.bfloat16())


def test_float16_keeps_the_slopes_of_large_batches(another_engine):
    """A token's slope of 1 / tokens is below float16's normal numbers from 16,000 tokens on."""
    found = {}
    for dtype in (torch.float32, torch.float16):
        engine = another_engine(micro_batch_tokens=20_000)
        rows = samples_of(engine, 1, 1.0, -0.5) * 2_000
        engine.model.to(dtype)
        before = torch.cat([factor.flatten() for factor in factors(engine, 1)])
        learner = engine.engine.learner
        learner._optimizers[1] = torch.optim.SGD(learner.bank.parameters_of(1), lr=1.0)
        updates = engine.update({1: rows}, {1: Hyperparameters(1.0)})
        assert updates[1]["tokens"] > 100_000
        found[dtype] = torch.cat([factor.flatten() for factor in factors(engine, 1)]) - before
    exact, half = found.values()
    assert float((half - exact).norm() / exact.norm()) < 0.02
