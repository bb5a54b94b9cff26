"""Loading the frozen base model and its tokenizer from a Hugging Face folder."""

import hashlib
import inspect
import json
import logging
import re
from datetime import date
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from pydantic import BaseModel, Field, ValidationError, model_validator
from torch import nn
from typing_extensions import Self

from azr_population.config.schema import PROMPT_DATE
from azr_population.engines.base_folder import base_folder, json_fields, loading, read_config
from azr_population.errors import NotInstalled, UserError, first_line, first_problem
from azr_population.files import read_json
from azr_population.versions import installed

_TODAY = re.compile(r"""strftime_now\(\s*(["'])(.*?)\1\s*\)""")
"""How a chat template asks for today's date."""

_SAMPLES, _SAMPLE_BYTES = 64, 1 << 16
"""Samples of a file of weights: 4 MB in all distinguish two bases without reading 15 GB."""

_ALIGNMENT = 64
"""Bytes. What torch's own allocator gives on a CPU, and what matrix kernels expect."""

SAMPLE_FILE = "sample.json"
"""File beside the weights: text that a base must tokenize and score as it did when the sample was
taken. A library that reads the files differently fails silently: a tokenizer without its spaces,
rotary tables with another period."""

TOLERANCE = 0.05
"""Nats, the mean over tokens of how far their log-probabilities are off. On the nano base bfloat16
is off by 0.006, a rotary table of period 1e6 in place of 1e4 by 0.28."""

NF4_TOLERANCE = 0.6
"""The same for a base in NF4: the nano base is off by 0.05, SmolLM2 of 135M by 0.35."""


class _Sample(BaseModel):
    """The content of `SAMPLE_FILE`; see `write_sample`."""

    text: str
    token_ids: list[int] = Field(min_length=2)
    logprobs: list[float]

    @model_validator(mode="after")
    def _score_each_token(self) -> Self:
        if len(self.logprobs) != len(self.token_ids) - 1:
            raise ValueError("logprobs should be one fewer than token_ids")
        return self


def fingerprint(path: str | Path) -> str:
    """Twelve hex digits that identify a base by its weights."""
    digest = hashlib.sha256()
    folder = base_folder(path)
    for file in sorted(folder.glob("*.safetensors")):
        size = file.stat().st_size
        digest.update(f"{file.name} {size}\n".encode())
        with file.open("rb") as weights:
            for sample in range(_SAMPLES):
                weights.seek(max(0, size - _SAMPLE_BYTES) * sample // (_SAMPLES - 1))
                digest.update(weights.read(_SAMPLE_BYTES))
    return digest.hexdigest()[:12]


def without_dropout(config: Any) -> Any:
    """The configuration with every dropout at 0 (GPT-2 has .1): members are trained as they are
    sampled, but gradient checkpointing needs the training mode, which would turn dropout on."""
    for part in (config, getattr(config, "text_config", None) or config):
        for name in dropout_fields(part):
            setattr(part, name, 0.0)
    return config


def dropout_fields(config: Any) -> dict[str, float]:
    """The rates of dropout that a configuration has, by their names there."""
    return {k: v for k, v in vars(config).items() if "drop" in k and isinstance(v, float)}


def load_base(
    path: str | Path,
    dtype: str,
    device: str,
    quantization: str | None = None,
    prompt_date: str = PROMPT_DATE,
) -> tuple[nn.Module, Any]:
    """The causal LM (eval mode, on `device`, `without_dropout`) and its fast tokenizer; for `path`
    see `base_folder`, for `prompt_date` see `load_tokenizer`.
    With `quantization="nf4"` its linear layers are quantised as they are read; what they compute in
    is `dtype`.

    Where the folder has a sample of its base (`check_sample`), the base is checked against it.

    Raises UserError: no such base, no model or tokenizer in it, no such device, or a base that does
    not read and score its sample as it did.
    """
    # Imported late: transformers takes seconds, and `--help` must not.
    import transformers

    folder = base_folder(path)
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise UserError(
            f"engine.device={device}: torch sees no GPU; use engine.device=cpu", key="engine.device"
        )
    # transformers 5 draws one in front of a run's lines, even where nothing can be redrawn.
    transformers.logging.disable_progress_bar()
    with loading(path):
        tokenizer = load_tokenizer(folder, prompt_date)
        # transformers 5 warns of the name that transformers 4 needs.
        argument = "torch_dtype" if transformers.__version__.startswith("4.") else "dtype"
        model = transformers.AutoModelForCausalLM.from_pretrained(
            folder,
            config=without_dropout(read_config(folder)),
            trust_remote_code=False,
            use_safetensors=True,
            **{argument: getattr(torch, dtype)},
            **(_nf4(dtype, device) if quantization else {}),
        )
    if "logits_to_keep" not in inspect.signature(model.forward).parameters:
        raise UserError(
            f"base.path={path}: {type(model).__name__} cannot keep part of its logits; use a model "
            "of a newer architecture, such as Qwen2, Qwen3, Llama or Gemma",
            key="base.path",
        )
    if tokenizer.eos_token_id is None:
        raise UserError(
            f"base.path={path}: its tokenizer has no end-of-sequence token", key="base.path"
        )
    _refuse_unknown_tokens(path, model, tokenizer)
    model = model.eval() if quantization else model.to(device).eval()
    if quantization:
        _keep_differentiable(model)
    else:
        align(model)
    check_sample(folder, model, tokenizer, NF4_TOLERANCE if quantization else TOLERANCE)
    return model, tokenizer


def use_fused_kernels(model: Any) -> None:
    """Replaces norms and gating of a loaded base by Liger's Triton kernels
    (github.com/linkedin/Liger-Kernel), in the model and in its module of transformers. Raises
    UserError: Liger is not installed, or does not take this transformers or such a base."""
    key = "fused_kernels"
    if not installed("liger-kernel"):
        raise NotInstalled(f"{key}=true needs Liger; install azr_population[gpu]", key=key)
    try:
        from liger_kernel.transformers import monkey_patch as liger
    except ImportError as error:  # Liger 0.8 refuses transformers 4
        raise UserError(f"{key}=true: {first_line(error)}; leave it out", key=key) from error

    kind = model.config.model_type
    if kind not in liger.MODEL_TYPE_TO_APPLY_LIGER_FN:
        raise UserError(f"{key}=true: Liger has no kernels for {kind}; leave it out", key=key)
    # Its rotary embedding works in place, on products that a learner may keep.
    liger._apply_liger_kernel_to_instance(
        model, rope=False, cross_entropy=False, fused_linear_cross_entropy=False
    )


def fast_cpu_dtype() -> torch.dtype:
    """bfloat16 where the CPU has AVX-512 or better. With AVX2 matrix products in bfloat16 take two
    to six times as long as in float32 (torch 2.13)."""
    slow = torch.backends.cpu.get_cpu_capability() in ("DEFAULT", "NO AVX", "AVX2")
    return torch.float32 if slow else torch.bfloat16


def _nf4(dtype: str, device: str) -> dict[str, Any]:
    """Arguments of `from_pretrained` that quantise as vLLM does: NF4 with double quantisation."""
    from transformers import BitsAndBytesConfig

    # It warns of a kernel that it would use in eval mode only.
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)
    quantization = BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=getattr(torch, dtype),
    )
    return {"quantization_config": quantization, "device_map": {"": device}}


def _keep_differentiable(model: nn.Module) -> None:
    """Keeps bitsandbytes' layers in the format that gradients pass through. In eval mode, on a CPU
    with AVX512-BF16, a layer packs its weight for a kernel that has no backward."""
    for layer in model.modules():
        if hasattr(layer, "support_avx512bf16_for_cpu"):
            vars(layer)["support_avx512bf16_for_cpu"] = False


def stop_ids(model: nn.Module, tokenizer: Any, chat: bool = True) -> frozenset[int]:
    """The token ids that end a completion of this base; with `chat` also the one that ends a turn
    in its chat template, which not every folder lists (Gemma's `<end_of_turn>`)."""
    config = getattr(model, "generation_config", None)
    listed = getattr(config, "eos_token_id", None)
    ids = listed if isinstance(listed, list) else [listed]
    end = turn_end(tokenizer) if chat else None
    return frozenset(i for i in [*ids, tokenizer.eos_token_id, end] if i is not None)


def turn_end(tokenizer: Any) -> int | None:
    """The special token that ends the assistant's turn in the chat template; None if there is no
    template, or it ends turns otherwise."""
    if not getattr(tokenizer, "chat_template", None):
        return None
    turns = [{"role": "user", "content": "Say it."}, {"role": "assistant", "content": "Said."}]
    try:
        text: str = tokenizer.apply_chat_template(turns, tokenize=False)
    except Exception:  # of any kind, from the base's own code: it may want other turns
        return None
    after = tokenizer(text.rpartition("Said.")[2], add_special_tokens=False)["input_ids"]
    special = {id for id, token in tokenizer.added_tokens_decoder.items() if token.special}
    return after[0] if after and after[0] in special else None


def _refuse_unknown_tokens(path: str | Path, model: Any, tokenizer: Any) -> None:
    """Raises UserError: text can become tokens that the base's embedding does not have. Special
    tokens beyond it, such as one for padding, come from no text."""
    rows = model.get_input_embeddings().num_embeddings
    added = tokenizer.added_tokens_decoder.items()
    beyond = [str(token) for id, token in added if id >= rows and not token.special]
    if beyond or tokenizer.vocab_size > rows:
        raise UserError(
            f"base.path={path}: its tokenizer has tokens that its embedding of {rows} has not"
            f"{f' ({beyond[0]!r})' if beyond else ''}; use the tokenizer that the base came with, "
            "or resize the embedding (resize_token_embeddings) and save it",
            key="base.path",
        )


def load_tokenizer(folder: Path, prompt_date: str | None = PROMPT_DATE) -> Any:
    """The tokenizer as its folder describes it, whichever transformers reads it. Its chat template
    has `prompt_date` (YYYY-MM-DD) where it asks for today's date; None leaves it as it is.

    A folder that names the general fast tokenizer means its tokenizer.json and nothing else.
    transformers 5 gives a Qwen2 base Qwen2's own splitting rules all the same, and then has neither
    its spaces nor its merges.
    """
    import transformers

    config = json_fields(folder / "tokenizer_config.json")
    # transformers 5.12 and later read the class in config.json only where the other file has none.
    key = "tokenizer_class"
    name = config.get(key) or json_fields(folder / "config.json").get(key)
    # transformers 5 writes the second name, which transformers 4 does not know.
    general = name in ("PreTrainedTokenizerFast", "TokenizersBackend")
    more: dict[str, Any] = {}
    extra = config.get("extra_special_tokens")
    if isinstance(extra, list) and transformers.__version__.startswith("4."):
        # transformers 4 calls them so, and wants a dict under the name that 5 gives them.
        more = {"additional_special_tokens": extra, "extra_special_tokens": {}}
    kind = transformers.PreTrainedTokenizerFast if general else transformers.AutoTokenizer
    tokenizer = kind.from_pretrained(folder, trust_remote_code=False, **more)
    if prompt_date:
        set_prompt_date(tokenizer, prompt_date)
    return tokenizer


def set_prompt_date(tokenizer: Any, prompt_date: str) -> bool:
    """Writes a day (YYYY-MM-DD) into the chat template where it asks for today's date. Returns
    whether it does, which `tokenizer.asks_for_date` says too."""
    template = getattr(tokenizer, "chat_template", None)
    if template:
        tokenizer.chat_template = _with_date(template, date.fromisoformat(prompt_date))
    tokenizer.asks_for_date = bool(template) and tokenizer.chat_template != template
    return tokenizer.asks_for_date


def _with_date(template: Any, day: date) -> Any:
    """A chat template, or several by name, with `day` in the place of today's. transformers 5 gives
    templates no functions of ours, so the calls are written out."""
    if isinstance(template, dict):
        return {name: _with_date(text, day) for name, text in template.items()}
    return _TODAY.sub(lambda call: repr(day.strftime(call[2])), template)


def align(model: nn.Module) -> None:
    """Copies tensors that are not aligned to 64 bytes, one after the other.

    Weights mapped from a safetensors file start where its header ends. On some processors (seen on
    an AMD EPYC) the matrix kernels then sum in another order, so weights read from a file would
    give other last digits than the same weights made in memory.
    """
    for tensor in chain(model.parameters(), model.buffers()):
        if tensor.data_ptr() % _ALIGNMENT:
            tensor.data = tensor.data.clone()


def write_sample(folder: str | Path, model: nn.Module, tokenizer: Any, text: str) -> None:
    """Writes the sample of the base that lies in `folder`: the text, its token ids, their
    log-probabilities (nats, each given those before it)."""
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    logprobs = [round(float(value), 4) for value in token_scores(model, ids)]
    sample = {"text": text, "token_ids": ids, "logprobs": logprobs}
    (Path(folder) / SAMPLE_FILE).write_text(json.dumps(sample) + "\n", encoding="utf-8")


def check_sample(
    folder: str | Path, model: nn.Module, tokenizer: Any, tolerance: float = TOLERANCE
) -> None:
    """Compares a loaded base with the sample in its folder; without one there is nothing to do.
    Its scores may be `tolerance` nats off, on average.
    Raises UserError: the text becomes other tokens, or they another text, or their scores are
    others."""
    file = Path(folder) / SAMPLE_FILE
    if not file.exists():
        return
    import transformers

    try:
        sample = _Sample.model_validate(read_json(file))
    except ValidationError as error:
        raise UserError(f"{file} is not a base's sample: {first_problem(error)}") from error
    text, ids, expected = sample.text, sample.token_ids, torch.tensor(sample.logprobs)
    if (encoded := tokenizer(text, add_special_tokens=False)["input_ids"]) != ids:
        what = f"encodes its sample as {len(encoded)} tokens, not as its {len(ids)}"
    elif (decoded := tokenizer.decode(ids, clean_up_tokenization_spaces=False)) != text:
        what = f"decodes its sample as {decoded!r}, not as {text!r}"
    elif not (off := float((token_scores(model, ids) - expected).abs().mean())) <= tolerance:
        what = f"scores the tokens of its sample {off:.2f} nats off, on average"
    else:
        return
    raise UserError(
        f"base.path={folder}: with transformers {transformers.__version__} this base {what}; "
        "use a release that this package was tested with (constraints/), or remove the folder's "
        f"{SAMPLE_FILE} if you changed the base on purpose",
        key="base.path",
    )


@torch.inference_mode()
def token_scores(model: nn.Module, ids: list[int]) -> torch.Tensor:
    """Log-probabilities [tokens - 1] of the tokens behind the first, in nats: float32, on the
    CPU."""
    tokens = torch.tensor([ids], device=next(model.parameters()).device)
    logits = model(input_ids=tokens).logits[0, :-1].float()
    return torch.log_softmax(logits, -1).gather(1, tokens[0, 1:, None])[:, 0].cpu()
