"""Pre-training of the nano base, in the spirit of nanochat, by the loop of `bases/sft_trainer.py`.

The corpus is made on the fly in a child process, so every document is new. A build is reproducible
(same seed, machine, threads and versions) if it ends by its token budget, not by its minutes.
"""

import json
import shutil
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import torch
import torch._dynamo

from azr_population.bases.demonstrations import encode
from azr_population.bases.nano.tokenizer import build_tokenizer, save_tokenizer
from azr_population.bases.sft_trainer import (
    Document,
    TrainingSchedule,
    made_ahead,
    save_base,
    train,
)
from azr_population.domains.code.formats import NanoFormat
from azr_population.domains.code.generator.corpus import draw_groups

SAMPLE = (
    "<PO>def f(n):\n    x = 0\n    for i in range(2):\n        x -= i - 7\n"
    "    x = [i + n for i in range(4)]\n    return [i - n for i in range(4)]<in>5<eos>"
)
"""A base proves itself on this text when loaded; see `base_model.check_sample`."""


@dataclass(frozen=True, kw_only=True)
class Phase(TrainingSchedule):
    """A part of the training, with a new optimizer; `minutes` is its share of the build's."""

    warmup_steps: int = 200
    rows: int = 32
    length: int = 192
    strict: bool = True
    tail: bool = False
    """Which documents: see `corpus.draw_groups`."""


@dataclass(frozen=True)
class BuildRecipe:
    """Everything that a build depends on, except the seed."""

    hidden: int = 128
    layers: int = 6
    heads: int = 4
    mlp: int = 384
    phases: tuple[Phase, ...] = (
        Phase(tokens=36_500_000, minutes=0.77, learning_rate=3e-3, strict=False),
        Phase(tokens=8_000_000, minutes=0.17, learning_rate=1.2e-3),
        Phase(tokens=2_500_000, minutes=0.06, learning_rate=1.2e-3, tail=True),
    )
    """First all kinds of programs; then a shorter phase with strictly valid proposals; then a short
    one that adds the long tail."""
    weight_decay: float = 0.05
    """Of matrices; biases and norms do not decay."""
    betas: tuple[float, float] = (0.9, 0.95)
    chunk: int = 4000
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
        rope_theta=10_000.0,  # transformers 4 and 5 keep it in different fields
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
) -> dict[str, Any]:
    """Makes corpus, tokenizer and weights; writes a folder that the Auto classes load, with the log
    in `build.json`.

    Args:
        minutes: wall-clock limit. A phase's learning rate is at zero when its share of them or its
            token budget ends.
        threads: torch threads. The corpus needs about a sixth of another core.

    Returns the facts of the build: per phase steps, tokens, seconds and the loss curve.
    """
    recipe, out = recipe or BuildRecipe(), Path(out_dir)
    out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(threads)
    tokenizer, model = build_tokenizer(), new_model(recipe, seed)
    if compile and shutil.which("g++"):
        # Twice as fast. A compiler that fails (without Python's headers, say) costs speed only.
        torch._dynamo.config.suppress_errors = True
        model.base_model.compile(dynamic=False)
    print(f"parameters {model.num_parameters():,}, vocabulary {len(tokenizer)}")
    phases = []
    for number, phase in enumerate(recipe.phases):
        draw = partial(_documents, tokenizer, seed, recipe.chunk, phase)
        decay = [
            {
                "params": [p for p in model.parameters() if (p.ndim == 2) is matrices],
                "weight_decay": recipe.weight_decay * matrices,
            }
            for matrices in (True, False)
        ]
        optimizer = torch.optim.AdamW(decay, lr=0.0, betas=recipe.betas, fused=True)
        # No phase draws a program stream of another one.
        documents = made_ahead(draw, count(number * 10**6))
        schedule = replace(phase, minutes=minutes * phase.minutes)
        progress = train(model, documents, optimizer, schedule)
        phases.append(asdict(progress))
        if progress.stopped_by:
            break
    save_base(model, tokenizer, out, SAMPLE)
    save_tokenizer(out)
    facts = {"seed": seed, "recipe": asdict(recipe), "torch": torch.__version__,
             "threads": threads, "phases": phases}  # fmt: skip
    (out / "build.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    return facts


def _documents(tokenizer: Any, seed: int, size: int, phase: Phase, chunk: int) -> list[Document]:
    rng = Random(f"nano corpus {seed} {chunk}")
    groups = draw_groups(rng, size, strict=phase.strict, tail=phase.tail)
    return [encode(group, NanoFormat(), tokenizer) for group in groups]
