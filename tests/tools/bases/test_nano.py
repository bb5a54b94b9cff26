import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from nano import (
    CHARACTERS,
    Phase,
    Shape,
    build,
    build_tokenizer,
    new_model,
    save_tokenizer,
    vocabulary,
)
from transformers import AutoModelForCausalLM

from azr_population.bases.nano import nano_base_path
from azr_population.domains.code.formats import NanoFormat
from azr_population.domains.code.task_types import Task, TaskType
from azr_population.engines.base_model import load_base, load_tokenizer

TOKENIZER = build_tokenizer()


@given(st.text(alphabet=CHARACTERS, max_size=80))
@settings(max_examples=300, deadline=None)
def test_printable_ascii_survives(text):
    assert TOKENIZER.decode(TOKENIZER(text).input_ids) == text


def test_pieces_numbers_and_marks_are_single_tokens():
    text = "<SO>def f(n):\n    return n + 12<in>-345<out>7<eos>"
    words = TOKENIZER.convert_ids_to_tokens(TOKENIZER(text).input_ids)
    assert words == [
        "<SO>", "def f(", "n", "):\n    ", "return ", "n", " + ", "12", "<in>", "-", "3", "4", "5",
        "<out>", "7", "<eos>",
    ]  # fmt: skip


def test_size_and_ids():
    assert 255 <= len(TOKENIZER) <= 400
    assert TOKENIZER.get_vocab() == vocabulary()
    assert (TOKENIZER.pad_token_id, TOKENIZER.eos_token_id) == (0, 1)


def test_other_characters_are_unknown():
    assert TOKENIZER("é").input_ids == [TOKENIZER.unk_token_id]


@pytest.mark.parametrize("text", ["<SO>a<in>[1, 20]<out>[]", "''.join(sorted(s))"])
def test_a_saved_tokenizer_is_read_again(tmp_path, text):
    save_tokenizer(tmp_path)
    new_model(Shape(hidden=16, layers=1, heads=2, mlp=16), seed=0).config.save_pretrained(tmp_path)
    loaded = load_tokenizer(tmp_path)
    assert loaded(text).input_ids == TOKENIZER(text).input_ids
    # EvalScores are words, not special tokens: engines that skip special tokens keep them.
    assert loaded.decode(loaded(text + "<eos>").input_ids, skip_special_tokens=True) == text


def test_the_shipped_folder_loads_is_small_and_can_add():
    folder = nano_base_path()
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 6 * 1024**2
    tokenizer = load_tokenizer(folder)
    model = AutoModelForCausalLM.from_pretrained(folder)
    assert model.config.model_type == "qwen2"
    assert model.config.eos_token_id == tokenizer.eos_token_id == 1
    assert 1_000_000 <= model.num_parameters() <= 2_900_000
    task = Task(TaskType.CODE_O, "def f(a):\n    return a[::-1]", ("[1, 2, 3]",), ("[3, 2, 1]",))
    inputs = tokenizer(NanoFormat().solve_prompt(task), return_tensors="pt")
    with torch.inference_mode():
        ids = model.generate(**inputs, do_sample=False, max_new_tokens=20)[0]
    answer = tokenizer.decode(ids[inputs.input_ids.shape[1] :], skip_special_tokens=True)
    assert answer == "[3, 2, 1]"


def test_a_build_learns_and_is_a_base(tmp_path):
    pytest.importorskip("accelerate", reason="the Trainer needs accelerate")
    shape = Shape(hidden=32, layers=1, heads=2, mlp=32)
    phases = (Phase(12, 3e-3, strict=False), Phase(2, 1e-3, tail=True))
    facts = build(tmp_path / "base", shape=shape, phases=phases)
    losses = [row["loss"] for row in facts["phases"][0]["log"] if "loss" in row]
    assert losses[0] > 5 and losses[-1] < losses[0] - 0.3  # ln 270 = 5.6
    model, tokenizer = load_base(tmp_path / "base", "float32", "cpu")
    assert model.num_parameters() < 50_000 and len(tokenizer) == len(TOKENIZER)
