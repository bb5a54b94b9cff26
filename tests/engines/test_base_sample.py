"""A base that its library reads differently is refused, with what differs."""

import json

import pytest
import torch
from refusals import refuses

from azr_population.bases.nano import nano_base_path
from azr_population.engines.base_model import SAMPLE_FILE as FILE
from azr_population.engines.base_model import check_sample, load_base, write_sample

TEXT = "abc de 12"


@pytest.fixture
def tokenizer(engine):
    return engine.tokenizer


@pytest.fixture
def folder(tmp_path, model, tokenizer):
    write_sample(tmp_path, model, tokenizer, TEXT)
    return tmp_path


def test_a_base_passes_its_own_sample(folder, model, tokenizer):
    check_sample(folder, model, tokenizer)
    sample = json.loads((folder / FILE).read_text())
    assert sample["text"] == TEXT and len(sample["token_ids"]) == len(TEXT)
    with torch.inference_mode():
        logits = model(torch.tensor([sample["token_ids"]])).logits[0, :-1]
    target = torch.tensor(sample["token_ids"][1:])
    loss = torch.nn.functional.cross_entropy(logits, target)
    assert sum(sample["logprobs"]) / len(target) == pytest.approx(-float(loss), abs=1e-4)


def test_a_tokenizer_without_its_spaces_is_refused(folder, model, tokenizer):
    class Without:
        def __call__(self, text, **choices):
            return tokenizer(text.replace(" ", ""), **choices)

    with refuses("7 tokens"):
        check_sample(folder, model, Without())


@pytest.mark.parametrize(
    ("spoil", "named"),
    [
        (lambda model: model.model.rotary_emb.inv_freq.mul_(0.01), "nats off"),
        (lambda model: model.model.norm.weight[0].fill_(float("nan")), "nan"),
    ],
    ids=["positions", "not a number"],
)
def test_a_base_that_scores_otherwise_is_refused(folder, model, tokenizer, spoil, named):
    with torch.no_grad():
        spoil(model)
    with refuses(named):
        check_sample(folder, model, tokenizer)


def test_load_base_checks(tmp_path):
    for file in nano_base_path().iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    sample = json.loads((tmp_path / FILE).read_text())
    sample["logprobs"] = [value - 1.0 for value in sample["logprobs"]]
    (tmp_path / FILE).write_text(json.dumps(sample))
    with refuses("1.00"):
        load_base(tmp_path, "float32", "cpu")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"token_ids": None}, "token_ids"),
        ({"token_ids": [3]}, "token_ids"),
        ({"logprobs": [0.5]}, "logprobs"),
        ({"text": 7}, "text"),
    ],
)
def test_a_sample_in_another_form_is_refused(folder, model, tokenizer, change, named):
    sample = json.loads((folder / FILE).read_text()) | change
    (folder / FILE).write_text(json.dumps(sample))
    with refuses(named):
        check_sample(folder, model, tokenizer)
