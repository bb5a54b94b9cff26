"""Pre-training of the nano base, in the spirit of nanochat, by the loop of `bases/sft_trainer.py`.

The corpus is made on the fly in a child process, so every document is new. A build is reproducible
(same seed, machine, threads and versions) if it ends by its token budget, not by its minutes.
"""

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch._dynamo

from azr_population.bases.nano import corpus
from azr_population.bases.nano.executor import in_child
from azr_population.bases.nano.tokenizer import EOS, build_tokenizer, save_tokenizer, vocabulary
from azr_population.bases.sft_trainer import (
    Document,
    Progress,
    TrainingSchedule,
    pack,
    save_base,
    train,
)
from azr_population.domains.code.formats import CODE, IN, OUT, PROPOSE, SOLVE
from azr_population.domains.code.task_types import TaskType

_IDS = vocabulary()
_IN, _OUT, _CODE, _EOS = (_IDS[mark] for mark in (IN, OUT, CODE, EOS))
_O, _I, _F = TaskType.CODE_O, TaskType.CODE_I, TaskType.CODE_F

# mark -> (token that opens a branch, token after which the completion begins, its weight)
_RULES: dict[int, tuple[int | None, int | None, float]] = {
    _IDS[PROPOSE[_O]]: (_IN, None, 1.0),
    _IDS[PROPOSE[_I]]: (_IN, None, 1.0),
    _IDS[PROPOSE[_F]]: (None, None, 1.0),
    _IDS[SOLVE[_O]]: (_IN, _OUT, 3.0),
    _IDS[SOLVE[_I]]: (_OUT, _IN, 2.0),
    _IDS[SOLVE[_F]]: (None, _CODE, 2.0),
}

_CHUNKS = 10**6
"""Chunks of the corpus that a phase can draw on."""

ROPE_THETA = 10_000.0
"""Period of the rotary tables; transformers 4 and 5 keep it in different fields of the config."""

SAMPLE = (
    "<PO>def f(n):\n    x = 0\n    for i in range(2):\n        x -= i - 7\n"
    "    x = [i + n for i in range(4)]\n    return [i - n for i in range(4)]<in>5<eos>"
)
"""A base proves itself on this text when loaded; see `base_model.check_sample`."""


@dataclass(frozen=True)
class Phase:
    """A part of the training, with a new optimizer and learning-rate schedule."""

    tokens: int
    minutes: float
    """Share of the build's minutes that it may take."""
    learning_rate: float
    strict: bool
    tail: bool = False
    """Which documents: see `corpus.documents`."""


PHASES = (
    Phase(tokens=36_500_000, minutes=0.77, learning_rate=3e-3, strict=False),
    Phase(tokens=8_000_000, minutes=0.17, learning_rate=1.2e-3, strict=True),
    Phase(tokens=2_500_000, minutes=0.06, learning_rate=1.2e-3, strict=True, tail=True),
)
"""First all kinds of programs; then a shorter phase with strictly valid proposals; then a short one
that adds the long tail."""


@dataclass(frozen=True)
class BuildRecipe:
    """Everything that a build depends on, except the seed."""

    hidden: int = 128
    layers: int = 6
    heads: int = 4
    mlp: int = 384
    rows: int = 32
    length: int = 192
    phases: tuple[Phase, ...] = PHASES
    warmup_steps: int = 200
    weight_decay: float = 0.05
    betas: tuple[float, float] = (0.9, 0.95)
    max_grad_norm: float = 1.0
    chunk: int = corpus.CHUNK
    """Documents that a child makes at a time."""


def new_model(recipe: BuildRecipe, seed: int) -> Any:
    """A fresh `Qwen2ForCausalLM`, float32."""
    from transformers import Qwen2Config, Qwen2ForCausalLM

    tokenizer = build_tokenizer()
    config = Qwen2Config(
        vocab_size=-(-len(tokenizer) // 16) * 16,
        hidden_size=recipe.hidden,
        intermediate_size=recipe.mlp,
        num_hidden_layers=recipe.layers,
        num_attention_heads=recipe.heads,
        num_key_value_heads=recipe.heads,
        max_position_embeddings=512,
        rope_theta=ROPE_THETA,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        tokenizer_class="PreTrainedTokenizerFast",  # see `save_tokenizer`
    )
    torch.manual_seed(seed)
    model = Qwen2ForCausalLM(config)
    # As in GPT-2: the deeper the model, the smaller the first updates of the residual stream.
    with torch.no_grad():
        for layer in model.model.layers:
            for module in (layer.self_attn.o_proj, layer.mlp.down_proj):
                module.weight.mul_((2 * recipe.layers) ** -0.5)
    return model


def build(
    out_dir: str | Path,
    minutes: float = 50.0,
    seed: int = 1,
    threads: int = 2,
    recipe: BuildRecipe | None = None,
    compile: bool = True,
    log: Callable[[str], None] = print,
    log_seconds: float = 20.0,
) -> dict[str, Any]:
    """Make corpus, tokenizer and weights; write a folder that the Auto classes load.

    Args:
        out_dir: written at every checkpoint and at the end; `build.json` there has the log.
        minutes: wall-clock limit. A phase's learning rate is at zero when its share of them or its
            token budget ends.
        threads: torch threads. The corpus needs about a sixth of another core.

    Returns the facts of the build: per phase steps, tokens, seconds and the loss curve.
    """
    recipe = recipe or BuildRecipe()
    out = Path(out_dir)
    out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(threads)
    tokenizer, model = build_tokenizer(), new_model(recipe, seed)
    facts: dict[str, Any] = {"seed": seed, "recipe": asdict(recipe), "torch": torch.__version__,
                             "threads": threads, "phases": []}  # fmt: skip
    if compile and shutil.which("g++"):
        # A compiler that fails (without Python's headers, say) costs speed only.
        torch._dynamo.config.suppress_errors = True
        model.base_model.compile(dynamic=False)
    elif compile:
        log("no g++: training without torch.compile, about half as fast")
    log(f"parameters {model.num_parameters():,}, vocabulary {len(tokenizer)}")

    def save() -> None:
        save_base(model, tokenizer, out, SAMPLE)
        save_tokenizer(out)

    for number, phase in enumerate(recipe.phases):
        documents = _documents(tokenizer, seed, recipe, number, phase)
        batches = pack(documents, recipe.rows, recipe.length)
        schedule = TrainingSchedule(
            learning_rate=phase.learning_rate,
            warmup_steps=recipe.warmup_steps,
            minutes=minutes * phase.minutes,
            tokens=phase.tokens,
            max_grad_norm=recipe.max_grad_norm,
        )
        progress, optimizer = Progress(), _optimizer(model, recipe)
        train(
            model, batches, optimizer, schedule, progress, save, log,
            log_seconds=log_seconds,
        )  # fmt: skip
        facts["phases"].append(asdict(progress))
    (out / "build.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    return facts


def _documents(
    tokenizer: Any, seed: int, recipe: BuildRecipe, number: int, phase: Phase
) -> Iterator[Document]:
    chunks = range(number * _CHUNKS, (number + 1) * _CHUNKS)  # no program stream comes twice
    make = partial(corpus.documents, seed, size=recipe.chunk, strict=phase.strict, tail=phase.tail)
    for texts in in_child(make, chunks):
        for encoding in tokenizer.backend_tokenizer.encode_batch(texts):
            yield read_document(encoding.ids)


def _optimizer(model: Any, recipe: BuildRecipe) -> torch.optim.Optimizer:
    """AdamW; biases and norms do not decay."""
    matrices = [p for p in model.parameters() if p.ndim == 2]
    vectors = [p for p in model.parameters() if p.ndim < 2]
    groups = [
        {"params": matrices, "weight_decay": recipe.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=0.0, betas=recipe.betas, fused=True)


def read_document(ids: Sequence[int]) -> Document:
    """Branches and weights by the document's mark, its first token."""
    opens, begins, weight = _RULES[ids[0]]
    tokens = np.asarray(ids, dtype=np.int64)
    length = len(tokens)
    starts = np.flatnonzero(tokens == opens) if opens is not None else np.empty(0, dtype=np.int64)
    branches = np.zeros(length, dtype=np.int64)
    positions = np.arange(length)
    for branch, start in enumerate(starts, 1):
        branches[start:] = branch
        positions[start:] = np.arange(length - start) + starts[0]
    weights = np.zeros(length, dtype=np.float32)
    if begins is None:
        weights[1:] = weight
        weights[starts[1:]] = 0.0
    else:
        answering = False
        for place, token in enumerate(ids):
            if answering:
                weights[place] = weight
            if token == begins:
                answering = True
            elif token == _EOS:
                answering = False
    return Document(tokens, positions, branches, weights)
