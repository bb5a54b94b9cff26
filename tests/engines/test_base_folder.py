"""Bases by their names on the Hub: from Hugging Face's cache, and without a network."""

import json
import shutil

import huggingface_hub
import pytest
import transformers
from refusals import refuses
from transformers import Qwen2Config

from azr_population.bases.nano import nano_base_path
from azr_population.engines.base_folder import base_folder, context_of
from azr_population.engines.base_model import fingerprint, load_base
from azr_population.errors import UserError


@pytest.fixture
def offline(tmp_path, monkeypatch):
    """An empty cache of Hugging Face's, and no network."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(
        "huggingface_hub._snapshot_download.constants.HF_HUB_CACHE", str(tmp_path / "hub")
    )
    return tmp_path / "hub"


def test_a_base_of_the_hub_is_taken_from_the_cache(offline):
    held = offline / "models--someone--tiny"
    (held / "refs").mkdir(parents=True)
    (held / "refs" / "main").write_text("abc123")
    shutil.copytree(nano_base_path(), held / "snapshots" / "abc123")
    assert base_folder("someone/tiny") == held / "snapshots" / "abc123"
    model, tokenizer = load_base("someone/tiny", "float32", "cpu")
    assert model.config.vocab_size >= len(tokenizer)
    assert fingerprint("someone/tiny") == fingerprint(nano_base_path())


def test_without_a_network_it_says_what_to_type(offline):
    with pytest.raises(UserError) as caught:
        base_folder("Qwen/Qwen2.5-0.5B")
    for step in ("hf download Qwen/Qwen2.5-0.5B", "base.path=./Qwen2.5-0.5B"):
        assert step in str(caught.value)


@pytest.mark.parametrize(
    "path", ["./bases/smollm2", "/nowhere/at/all", "~/none", "nowhere", "a/b/c"]
)
def test_what_cannot_be_a_name_is_looked_for_as_a_folder_only(path, monkeypatch):
    monkeypatch.setattr(huggingface_hub, "snapshot_download", None)
    with pytest.raises(UserError):
        base_folder(path)


@pytest.mark.parametrize(
    ("scaling", "context"),
    [
        (None, 32_768),
        ({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32_768}, 131_072),
        ({"rope_type": "yarn", "factor": 40.0, "original_max_position_embeddings": 4096}, 163_840),
        ({"rope_type": "linear", "factor": 2.0}, 65_536),
    ],
)
def test_a_context_that_is_stretched_counts_as_far_as_it_is_stretched(scaling, context):
    class Model:
        config = Qwen2Config(max_position_embeddings=32_768, rope_scaling=scaling)

    assert context_of(Model) == context


LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 123456\n"
DAMAGE = {
    "model.safetensors": ["", LFS],
    "tokenizer.json": [None, LFS],
    "tokenizer_config.json": ["{"],
    "config.json": [
        {"model_type": "qwen9"},
        {"hidden_size": 96},
        {"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128}},
    ],
}


@pytest.mark.parametrize(("file", "damage"), [(f, d) for f, all in DAMAGE.items() for d in all])
def test_a_damaged_folder_is_refused_in_one_line(tmp_path, file, damage):
    shutil.copytree(nano_base_path(), tmp_path / "base")
    place = tmp_path / "base" / file
    if damage is None:
        place.unlink()
    elif isinstance(damage, dict):
        place.write_text(json.dumps(json.loads(place.read_text()) | damage))
    else:
        place.write_text(damage)
    with refuses("base.path"):
        load_base(tmp_path / "base", "float32", "cpu")


@pytest.mark.parametrize("part", ["AutoConfig", "AutoModelForCausalLM", "AutoTokenizer"])
def test_code_in_the_folder_of_a_base_is_not_run_and_not_asked_for(tmp_path, monkeypatch, part):
    shutil.copytree(nano_base_path(), folder := tmp_path / "base")
    file = folder / ("tokenizer_config.json" if part == "AutoTokenizer" else "config.json")
    kind = json.loads(file.read_text())
    names = {"AutoTokenizer": ["own.Own", None]}
    kind |= {"auto_map": {part: names.get(part, "own.Own")}, "model_type": "own_kind"}
    kind |= {"tokenizer_class": "Own"} if part == "AutoTokenizer" else {}
    file.write_text(json.dumps(kind))
    (folder / "own.py").write_text(f"open({str(tmp_path / 'was_run')!r}, 'w')\n")
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("it asks"))
    if part == "AutoTokenizer" and int(transformers.__version__.split(".")[0]) >= 5:
        # It reads tokenizer.json by itself and leaves the class out.
        texts = [
            load_base(path, "float32", "cpu")[1]("def f(a):")["input_ids"]
            for path in (folder, nano_base_path())
        ]
        assert texts[0] == texts[1]
    else:
        with refuses("base.path"):
            load_base(folder, "float32", "cpu")
    assert not (tmp_path / "was_run").exists()
