"""The embedded base: its tokenizer, its making, and the weights that ship."""

import json
from random import Random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from nano import CHARACTERS, EASY, MIX, build_tokenizer, draw_document, pretrain
from transformers import AutoModelForCausalLM

from azr_population.bases.nano import nano_base_path
from azr_population.domains.code import chains
from azr_population.domains.code.chain_tasks import draw_tasks
from azr_population.domains.code.formats import NanoFormat
from azr_population.engines.base_model import load_base, load_tokenizer

TOKENIZER = build_tokenizer()


@given(st.text(alphabet=CHARACTERS, max_size=80))
@settings(max_examples=300, deadline=None)
def test_printable_ascii_survives(text):
    assert TOKENIZER.decode(TOKENIZER(text).input_ids) == text


def test_a_list_is_a_token_for_each_digit_and_bracket():
    rng = Random(2)
    program = chains.source(chains.draw_chain(rng, 9))
    trace = chains.trace(program, "[1, 2, 3, 4]")
    for text in (program, trace):
        assert TOKENIZER.decode(TOKENIZER(text).input_ids) == text
    assert len(TOKENIZER("[1, 2, 3, 4]").input_ids) == 6
    assert len(TOKENIZER("<SO><in><out><eos>").input_ids) == 4
    assert TOKENIZER("é").input_ids == [TOKENIZER.unk_token_id]


def test_the_longest_proposals_and_answers_fit_the_format_s_limits():
    rng, format = Random(4), NanoFormat()
    for type in ("code_o", "code_i"):
        for task in (draw_tasks(rng, type, chains.MAX_STATEMENTS)[0] for _ in range(50)):
            for phase, text in (
                ("propose", format.write_proposal(task)),
                ("solve", format.write_answer(task)),
            ):
                assert len(TOKENIZER(text).input_ids) < format.max_new_tokens(type, phase)


def test_the_tokenizer_that_ships_is_this_one():
    shipped = load_tokenizer(nano_base_path())
    assert shipped.get_vocab() == TOKENIZER.get_vocab()
    assert (shipped.pad_token_id, shipped.eos_token_id) == (0, 1)


def test_the_shipped_folder_loads_is_small_and_can_follow_three_statements():
    folder = nano_base_path()
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 3 * 1024**2
    tokenizer = load_tokenizer(folder)
    model = AutoModelForCausalLM.from_pretrained(folder)
    assert model.config.model_type == "qwen2" and model.num_parameters() <= 1_500_000
    format, rng = NanoFormat(), Random(5)
    for task in (draw_tasks(rng, "code_o", 3, held_out=True)[0] for _ in range(5)):
        inputs = tokenizer(format.solve_prompt(task), return_tensors="pt")
        with torch.inference_mode():
            ids = model.generate(**inputs, do_sample=False, max_new_tokens=60)[0]
        answer = tokenizer.decode(ids[inputs.input_ids.shape[1] :], skip_special_tokens=True)
        assert answer == format.write_answer(task)


@pytest.mark.parametrize("mix", [EASY, MIX])
def test_an_answer_sees_its_own_tokens_and_the_prompt_carries_no_loss(mix):
    rng = Random(6)
    for _ in range(40):
        columns = draw_document(rng, TOKENIZER, mix)
        last = max(answer for _, _, _, answer, _ in columns)
        for number in range(1, last + 1):
            ids = [id for id, _, _, answer, _ in columns if answer in (0, number)]
            text = TOKENIZER.decode(ids)
            learned = [id for id, _, _, answer, weight in columns if answer == number and weight]
            assert text.endswith("<eos>") and TOKENIZER.decode(learned).endswith("<eos>")
            assert text.startswith(("<P", "<S")) and not TOKENIZER.decode(learned).startswith("<")
            places = [place for _, place, _, answer, _ in columns if answer in (0, number)]
            assert places == list(range(len(ids)))


@pytest.mark.slow
def test_a_build_learns_and_is_a_base(tmp_path):
    curve = pretrain(tmp_path / "base", 60, tokens=120_000, rows=4, compile=False)
    assert curve[0]["loss"] > curve[-1]["loss"] + 0.2
    _, tokenizer = load_base(tmp_path / "base", "float32", "cpu")
    assert len(tokenizer) == len(TOKENIZER)
    assert json.loads((tmp_path / "base" / "build.json").read_text())["rows"] == 4
