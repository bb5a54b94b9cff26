"""Bases as transformers 4 and 5 write them, under whichever of the two is installed."""

import json

import pytest
import torch
import transformers
from refusals import refuses

from azr_population.config.load import load_config
from azr_population.engines.base_folder import meta_model, read_config, rope_overrides
from azr_population.engines.base_model import PROMPT_DATE, load_tokenizer, turn_end
from azr_population.engines.text import encode

OLD = transformers.__version__.startswith("4.")
SIZES = {
    "vocab_size": 64, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 128,
}  # fmt: skip
LINEAR, DYNAMIC = ({"rope_type": kind, "factor": 4.0} for kind in ("linear", "dynamic"))
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}
LLAMA3 = {
    "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}  # fmt: skip
CASES = {
    "theta": ("qwen2", {"rope_theta": 123.0}),
    "as by default": ("qwen2", {"rope_theta": 10_000.0}),
    "yarn": ("qwen2", {"rope_theta": 123.0, "rope_scaling": YARN}),
    "linear": ("qwen2", {"rope_theta": 1e6, "rope_scaling": LINEAR}),
    "dynamic": ("qwen3", {"rope_theta": 9.0, "rope_scaling": DYNAMIC}),
    "llama3": ("llama", {"rope_theta": 500_000.0, "rope_scaling": LLAMA3}),
    "partial": ("stablelm", {"rope_theta": 123.0, "partial_rotary_factor": 0.5}),
    "sliding": ("mistral", {"rope_theta": 123.0, "sliding_window": 4}),
}  # fmt: skip


def by_4(kind, fields):
    return {**SIZES, **fields, "model_type": kind, "torch_dtype": "float32"}


def by_5(kind, fields):
    rest = dict(fields)
    rope = {"rope_type": "default", **(rest.pop("rope_scaling", None) or {})}
    for name in ("rope_theta", "partial_rotary_factor"):
        if name in rest:
            rope[name] = rest.pop(name)
    return {**SIZES, **rest, "model_type": kind, "dtype": "float32", "rope_parameters": rope}


def folder(path, values):
    path.mkdir()
    (path / "config.json").write_text(json.dumps(values))
    return path


def logits(path):
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(read_config(path)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape) * 0.15)
        return model(torch.arange(3, 63).unsqueeze(0)).logits


@pytest.mark.parametrize("case", CASES)
def test_who_wrote_a_base_does_not_matter(tmp_path, case):
    first, second = (folder(tmp_path / w.__name__, w(*CASES[case])) for w in (by_4, by_5))
    assert torch.equal(logits(first), logits(second))
    meta_model(second)
    other = {**CASES[case][1], "rope_theta": 77.0}
    third = folder(tmp_path / "other", by_5(CASES[case][0], other))
    assert not torch.equal(logits(second), logits(third))


@pytest.mark.skipif(not OLD, reason="transformers 5 reads its own names")
@pytest.mark.parametrize(
    ("kind", "rope", "named"),
    [
        ("qwen2", {"rope_theta": 1e6, "partial_rotary_factor": 0.5}, "partial_rotary_factor"),
        ("qwen2", {"full_attention": {"rope_theta": 1.0}}, "full_attention"),
        ("gpt2", {"rope_theta": 1e6}, "rope_theta"),
    ],
)
def test_what_transformers_4_has_no_name_for_is_refused(tmp_path, kind, rope, named):
    path = folder(tmp_path / "base", {"model_type": kind, "rope_parameters": rope})
    with refuses(named):
        read_config(path)


def test_vllm_is_told_what_it_would_not_read(tmp_path):
    path = folder(tmp_path / "base", by_5(*CASES["yarn"]))
    fields = {"rope_theta": 123.0, "rope_scaling": YARN} if OLD else {}
    assert rope_overrides(transformers.AutoConfig.from_pretrained(path), path) == fields
    plain = folder(tmp_path / "plain", by_4(*CASES["yarn"]))
    assert rope_overrides(transformers.AutoConfig.from_pretrained(plain), plain) == {}


def test_special_tokens_as_transformers_5_lists_them(tmp_path):
    from azr_population.bases.nano import nano_base_path

    original = load_tokenizer(nano_base_path())
    original.save_pretrained(tmp_path)
    file = tmp_path / "tokenizer_config.json"
    fields = json.loads(file.read_text())
    fields.pop("additional_special_tokens", None)
    extra = original.convert_ids_to_tokens([3])
    file.write_text(json.dumps({**fields, "extra_special_tokens": extra}))
    read = load_tokenizer(tmp_path)
    assert extra[0] in read.all_special_tokens
    text = "def f(x):\n    return x"
    assert read(text)["input_ids"] == original(text)["input_ids"]


@pytest.mark.parametrize("file", ["tokenizer_config.json", "config.json"])
def test_a_general_fast_tokenizer_is_one_whichever_file_names_it(tmp_path, file):
    from azr_population.bases.nano import nano_base_path

    for name in ("config.json", "tokenizer_config.json", "tokenizer.json"):
        (tmp_path / name).write_bytes((nano_base_path() / name).read_bytes())
    for name in ("config.json", "tokenizer_config.json"):
        fields = json.loads((tmp_path / name).read_text())
        fields.pop("tokenizer_class", None)
        named = {"tokenizer_class": "PreTrainedTokenizerFast"} if name == file else {}
        (tmp_path / name).write_text(json.dumps(fields | named))
    text = "def f(x):\n    return x"
    tokenizer = load_tokenizer(tmp_path)
    assert tokenizer.decode(tokenizer(text)["input_ids"]) == text


DATED = (
    "Today: {{ strftime_now('%d %b %Y') }}|{% for m in messages %}{{ m['content'] }}{% endfor %}"
)


def templated(folder, template):
    from azr_population.bases.nano import nano_base_path

    tokenizer = load_tokenizer(nano_base_path())
    tokenizer.chat_template = template
    tokenizer.save_pretrained(folder)
    return folder


def test_a_template_that_asks_for_the_date_gets_the_run_s(tmp_path):
    folder = templated(tmp_path, DATED)
    for day, shown in ((PROMPT_DATE, "01 Jan 2026"), ("1999-12-31", "31 Dec 1999")):
        tokenizer = load_tokenizer(folder, day)
        (ids,) = encode(tokenizer, ["Solve it."], chat=True)
        assert tokenizer.decode(ids).startswith(f"Today: {shown}|Solve it.")
    assert load_config([]).base.prompt_date == PROMPT_DATE
    with refuses("base.prompt_date"):
        load_config(["base.prompt_date=tomorrow"])


@pytest.mark.parametrize("fault", ["raise_exception('no system')", "1 / 0", "'a' + 1", "nothing.x"])
def test_a_template_that_fails_is_named(tmp_path, fault):
    tokenizer = load_tokenizer(templated(tmp_path, "{{ " + fault + " }}"))
    assert turn_end(tokenizer) is None
    with refuses("chat template fails"):
        encode(tokenizer, ["Solve it."], chat=True)
