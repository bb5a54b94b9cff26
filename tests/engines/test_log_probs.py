"""Log-probabilities of rows of several members are those of each row by itself."""

import torch

from azr_population.config.schema import LearnerConfig
from azr_population.engines.torch_learner import TorchLearner
from azr_population.engines.torch_rollout import make_bank
from azr_population.weights.adapter import LoraSpec


def learner(micro_batch_tokens=100):
    from transformers import Qwen2Config, Qwen2ForCausalLM

    torch.manual_seed(0)
    sizes = Qwen2Config(
        vocab_size=40, hidden_size=16, intermediate_size=32, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=1,
    )  # fmt: skip
    model = Qwen2ForCausalLM(sizes).eval()
    generator = torch.Generator().manual_seed(1)
    bank = make_bank(model, LoraSpec(2, 4.0), [generator] * 3)
    config = LearnerConfig(micro_batch_tokens=micro_batch_tokens)
    trained = TorchLearner(model, bank, config, parallel=True)
    with torch.no_grad():
        for slot in range(3):
            for parameter in trained.bank.parameters_of(slot):
                parameter.normal_(0, 0.3, generator=generator)
    return trained


PROMPTS = [[1, 2, 3], [4], [5, 6, 7, 8], [9, 10]]
RESPONSES = [[11, 12], [13, 14, 15], [], [16]]
SLOTS = [2, 0, 1, 2]


def test_rows_in_one_batch_are_as_rows_alone():
    trained = learner()
    together = trained.log_probs(PROMPTS, RESPONSES, SLOTS)
    for row in range(4):
        if not RESPONSES[row]:
            assert len(together[row]) == 0
            continue
        ids = torch.tensor([PROMPTS[row] + RESPONSES[row]])
        with torch.no_grad(), trained.bank.adapters_active(torch.tensor([SLOTS[row]])):
            logits = trained.model(input_ids=ids).logits[0, len(PROMPTS[row]) - 1 : -1]
        every = torch.log_softmax(logits, -1)
        expected = every.gather(1, torch.tensor(RESPONSES[row]).unsqueeze(1)).squeeze(1)
        assert torch.allclose(together[row], expected, atol=1e-5)
    alone = learner(1).log_probs(PROMPTS, RESPONSES, SLOTS)
    assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(together, alone, strict=True))
