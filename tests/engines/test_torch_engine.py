import pytest
import torch
from refusals import refuses

from azr_population.engines.base_model import load_base
from azr_population.engines.engine import Hyperparameters, Sampling, TrainingSample
from azr_population.engines.optimizers import moments
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


def test_a_piece_that_keeps_its_activations_runs_no_layer_twice(engine, another_engine):
    samples = samples_of(engine, 0, -1.0, 0.0, 1.0)
    metrics = []
    for keep, passes in ((0, 2), (1000, 1)):
        other = another_engine(
            gradient_checkpointing=True, recompute_above_tokens=keep, micro_batch_tokens=1000
        )
        runs = []
        first = other.model.model.layers[0].input_layernorm
        first.register_forward_hook(lambda *ran, runs=runs: runs.append(1))
        metrics.append(other.update({0: samples}, RATES)[0])
        assert len(runs) == passes and not other.model.training
        assert other.engine.learner.config.most_tokens == (keep or 1000)
    assert metrics[0] == metrics[1]


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


def test_a_base_folder_that_does_not_load_is_named(tmp_path):
    with refuses("nowhere"):
        load_base(tmp_path / "nowhere", "float32", "cpu")
    with refuses("base.path"):
        load_base(tmp_path, "float32", "cpu")


def test_the_optimizer_is_the_one_that_the_configuration_names(another_engine):
    trust(["torch.optim.SGD"])
    engine = another_engine(optimizer="torch.optim.SGD")
    before = factors(engine, 1)
    engine.update({1: samples_of(engine, 1, 1.0)}, {1: Hyperparameters(1e-3)})
    # AdamW's first step is 1e-3 for every weight.
    moved = max(float((a - b).abs().max()) for a, b in zip(before, factors(engine, 1), strict=True))
    assert moved > 0 and abs(moved - 1e-3) > 1e-5


def test_an_optimizer_that_there_is_not_is_refused(check):
    with pytest.raises(UserError) as caught:
        check("torch", optimizer="adam")
    assert caught.value.key == "engine.optimizer"


def test_moments_are_counted_not_known():
    trust(["torch.optim.SGD"])
    assert moments("adamw") == ("AdamW", 2)
    assert moments("torch.optim.SGD") == ("SGD", 0)
