"""Bases by their names on the Hub: from Hugging Face's cache, and without a network."""

import json
import shutil

import huggingface_hub
import pytest
import torch
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


@pytest.fixture
def cached(offline):
    """The folder of `someone/tiny` in the cache."""
    held = offline / "models--someone--tiny"
    (held / "refs").mkdir(parents=True)
    (held / "refs" / "main").write_text("abc123")
    return shutil.copytree(nano_base_path(), held / "snapshots" / "abc123")


def test_a_base_of_the_hub_is_taken_from_the_cache(cached):
    assert base_folder("someone/tiny") == cached
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
        {"num_attention_heads": 7},
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


def _custom_generate(folder):
    (folder / "custom_generate").mkdir()
    (folder / "custom_generate" / "generate.py").write_text("open('was_run', 'w')\n")


def _fields(file, **more):
    def edit(folder):
        fields = json.loads((folder / file).read_text())
        (folder / file).write_text(json.dumps(fields | more))

    return edit


CODE = {
    "custom_generate": _custom_generate,
    "modeling_own.py": lambda folder: (folder / "modeling_own.py").write_text("1 / 0\n"),
    "pytorch_model.bin": lambda folder: torch.save({}, folder / "pytorch_model.bin"),
    "Weights.PT": lambda folder: torch.save({}, folder / "Weights.PT"),
    "adapter_config.json": lambda folder: (folder / "adapter_config.json").write_text("{}"),
    "auto_map in config.json": _fields("config.json", auto_map={"AutoConfig": "own.Own"}),
    "auto_map in tokenizer_config.json": _fields("tokenizer_config.json", auto_map={}),
    "num_hidden_layers=1,000,000,000; at most 10,000": _fields(
        "config.json", num_hidden_layers=10**9
    ),
    "num_experts=20,000; at most 10,000": _fields(
        "config.json", text_config={"num_experts": 20_000}
    ),
}


@pytest.mark.parametrize("named", CODE)
def test_a_base_that_holds_code_is_refused_before_it_is_loaded(tmp_path, monkeypatch, named):
    shutil.copytree(nano_base_path(), folder := tmp_path / "base")
    monkeypatch.chdir(tmp_path)
    CODE[named](folder)
    for use in (base_folder, fingerprint, lambda path: load_base(path, "float32", "cpu")):
        with refuses(named):
            use(folder)
    assert not (tmp_path / "was_run").exists()


def test_code_in_the_cache_of_the_hub_is_refused(cached):
    _custom_generate(cached)
    with refuses("custom_generate"):
        load_base("someone/tiny", "float32", "cpu")
