"""Warming up a tiny chat base: what it learns from, and the folder that comes out."""

import json
from functools import partial

import pytest
from refusals import refuses
from tiny_chat_base import make_model, make_tokenizer
from train import Demonstrations
from warm_up import MIX, draw, warm_up

from azr_population.domains.code.formats import ShortFormat, base_format
from azr_population.engines.base_model import load_base


def first_batch(tokenizer, longest):
    drawn = partial(draw, ShortFormat(), MIX, 1)
    rows = iter(Demonstrations(drawn, tokenizer, True, 4, longest))
    return [next(rows) for _ in range(4)]


def test_rows_are_a_run_s_prompts_and_completions(tokenizer):
    format = ShortFormat()
    pairs = dict(draw(format, MIX, 1, 0))
    for row in first_batch(tokenizer, 2000):
        learned = [token for token in row["labels"] if token != -100]
        text = tokenizer.decode(row["input_ids"])
        completion = tokenizer.decode(learned).removesuffix("<|im_end|>")
        prompt = next(prompt for prompt in pairs if f"<|im_start|>{prompt}<|im_end|>" in text)
        assert text.endswith(f"<|im_start|>{completion}<|im_end|>")
        kinds = ("code_o", "code_i", "code_f")
        read = [format.parse_answer(kind, completion) for kind in kinds]
        assert any(read) or format.parse_proposal("code_o", completion), prompt


def test_rows_of_a_batch_are_about_equally_long(tokenizer):
    lengths = [len(row["input_ids"]) for row in first_batch(tokenizer, 2000)]
    assert max(lengths) - min(lengths) < 20


def test_examples_that_never_fit_are_refused(tokenizer):
    with refuses("--prompt-format short"):
        first_batch(tokenizer, 10)


def test_a_warmed_up_base_loads_and_names_its_prompts(tmp_path):
    pytest.importorskip("accelerate", reason="the Trainer needs accelerate")
    warm_up(make_model(), make_tokenizer(), tmp_path, steps=6, rows=2, longest=600)
    facts = json.loads((tmp_path / "warmup.json").read_text())
    losses = [row["loss"] for row in facts["log"] if "loss" in row]
    assert losses[-1] < losses[0]
    _, tokenizer = load_base(tmp_path, "float32", "cpu")
    assert base_format(tmp_path, tokenizer) == "short"
