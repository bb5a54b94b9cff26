"""Pre-training of the nano base: one plain loop, in the spirit of nanochat.

Covered: corpus made on the fly by killed children (every document is new), packed rows with a mask
that keeps documents and branches apart, AdamW with warm-up and linear decay to zero, bfloat16
matrix products, `torch.compile` where a C++ compiler is found, a checkpoint every few minutes.
Not covered: several machines or GPUs, resuming a broken build, a search over hyper-parameters.

A build is reproducible (same seed, machine, threads and versions) when its token budget ends it;
one that its minutes end has seen as much as the machine could do in that time.
"""

import json
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from azr_population.bases.nano import corpus
from azr_population.bases.nano.forward import logits, may_attend, rotary_table
from azr_population.bases.nano.packing import Batch, Document, pack, read_document
from azr_population.bases.nano.tokenizer import build_tokenizer, save_tokenizer
from azr_population.engines.base_sample import write_sample
from azr_population.errors import first_line

_CHUNKS = 10**6
"""Chunks of the corpus that a phase can draw on."""

ROPE_THETA = 10_000.0
"""Period of the rotary tables; transformers 4 and 5 keep it in different fields of the config."""

SAMPLE = (
    "<PO>def f(n):\n    x = 0\n    for i in range(2):\n        x -= i - 7\n"
    "    x = [i + n for i in range(4)]\n    return [i - n for i in range(4)]<in>5<eos>"
)
"""What a base has to read and score as it did when it was built; see `engines/base_sample.py`."""


@dataclass(frozen=True)
class Phase:
    """A stretch of training with an optimizer and a learning-rate curve of its own."""

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
"""All kinds of programs first; then a shorter stretch whose proposals are chosen for validity; then
a short one that adds the long tail."""


@dataclass(frozen=True)
class BuildRecipe:
    """Everything that a build depends on but the seed."""

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
    """Documents that a child makes before it is replaced."""
    shuffle: int = 2048
    """Documents in the buffer that mixes what the corpus yields."""


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
    # Smaller steps into the residual stream the deeper the model, as GPT-2 does it.
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
    start: str | Path | None = None,
    checkpoint_minutes: float = 5.0,
    compile: bool = True,
    log: Callable[[str], None] = print,
    log_steps: int = 200,
) -> dict[str, Any]:
    """Make corpus, tokenizer and weights; write a folder that the Auto classes load.

    Args:
        out_dir: written at every checkpoint and at the end; `build.json` there has the log.
        minutes: wall-clock limit. A phase's learning rate is at zero when its share of them or its
            token budget ends.
        threads: torch threads. The corpus needs about a sixth of another core.
        start: a folder of an earlier build whose weights to go on from, with the last phase only.

    Returns the facts of the build: per phase steps, tokens, seconds and the loss curve.
    """
    recipe = recipe or BuildRecipe()
    out = Path(out_dir)
    out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(threads)
    tokenizer = save_tokenizer(out)
    model = new_model(recipe, seed)
    phases = list(enumerate(recipe.phases))
    facts: dict[str, Any] = {"seed": seed, "recipe": asdict(recipe), "torch": torch.__version__,
                             "threads": threads, "phases": []}  # fmt: skip
    if start is not None:
        model.load_state_dict(type(model).from_pretrained(start).float().state_dict())
        phases = phases[-1:]
        facts["phases"] = json.loads((Path(start) / "build.json").read_text())["phases"]
    loss_of = _loss_function(model, recipe, compile, log)
    log(f"parameters {model.num_parameters():,}, vocabulary {len(tokenizer)}")
    for number, phase in phases:
        documents = _documents(tokenizer, seed, recipe, number, phase)
        shuffled = _shuffled(documents, recipe.shuffle, np.random.default_rng((seed, number)))
        trainer = _Trainer(model, recipe, phase, loss_of, out, log, log_steps)
        facts["phases"].append(
            trainer.run(
                pack(shuffled, recipe.rows, recipe.length),
                60.0 * minutes * phase.minutes,
                60.0 * checkpoint_minutes,
            )
        )
        save(model, out)
    write_sample(out, model, tokenizer, SAMPLE)
    (out / "build.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    return facts


@dataclass
class _Trainer:
    """The loop of one phase."""

    model: Any
    recipe: BuildRecipe
    phase: Phase
    loss_of: Callable[[Batch], torch.Tensor]
    out: Path
    log: Callable[[str], None]
    log_steps: int

    def run(self, batches: Iterator[Batch], seconds: float, checkpoint: float) -> dict[str, Any]:
        """Until the tokens or the seconds are used up; a checkpoint every so many seconds."""
        optimizer = _optimizer(self.model, self.recipe)
        started = saved = time.monotonic()
        seen = 0
        curve: list[dict[str, float]] = []
        window: list[float] = []
        for step in count(1):
            elapsed = time.monotonic() - started
            progress = max(seen / self.phase.tokens, elapsed / seconds)
            if progress >= 1.0:
                break
            batch = next(batches)
            rate = self.phase.learning_rate
            rate *= min(step / self.recipe.warmup_steps, 1.0 - progress, 1.0)
            for group in optimizer.param_groups:
                group["lr"] = rate
            loss = self.loss_of(batch)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.recipe.max_grad_norm)
            optimizer.step()
            optimizer.zero_grad()
            seen += batch.tokens
            window.append(loss.item())
            if step % self.log_steps == 0:
                mean = sum(window) / len(window)
                curve.append({"step": step, "tokens": seen, "loss": round(mean, 4)})
                self.log(
                    f"step {step} tokens {seen / 1e6:.2f}M loss {mean:.4f} lr {rate:.2e} "
                    f"{seen / (time.monotonic() - started):.0f} tok/s {elapsed / 60:.1f} min"
                )
                window = []
            if time.monotonic() - saved > checkpoint:
                save(self.model, self.out)
                saved = time.monotonic()
        return {
            "steps": step - 1,
            "tokens": seen,
            "seconds": round(time.monotonic() - started, 1),
            "curve": curve,
        }


def save(model: Any, out: Path) -> None:
    """Write config and bfloat16 weights; what is in the folder is replaced at once."""
    import copy

    half = copy.deepcopy(model).to(torch.bfloat16)
    scratch = out / "writing"
    half.save_pretrained(scratch)
    for path in scratch.iterdir():
        path.chmod(0o644)
        path.replace(out / path.name)
    shutil.rmtree(scratch)


def _documents(
    tokenizer: Any, seed: int, recipe: BuildRecipe, number: int, phase: Phase
) -> Iterator[Document]:
    chunks = range(number * _CHUNKS, (number + 1) * _CHUNKS)  # no program stream comes twice
    kind = {"strict": phase.strict, "tail": phase.tail}
    for texts in corpus.generate(seed, chunks, size=recipe.chunk, **kind):
        for encoding in tokenizer.backend_tokenizer.encode_batch(texts):
            yield read_document(encoding.ids)


def _shuffled(
    documents: Iterator[Document], size: int, rng: np.random.Generator
) -> Iterator[Document]:
    held: list[Document] = []
    for document in documents:
        if len(held) < size:
            held.append(document)
            continue
        place = int(rng.integers(size))
        held[place], document = document, held[place]
        yield document


def _optimizer(model: Any, recipe: BuildRecipe) -> torch.optim.Optimizer:
    """AdamW; biases and norms do not decay."""
    matrices = [p for p in model.parameters() if p.ndim == 2]
    vectors = [p for p in model.parameters() if p.ndim < 2]
    groups = [
        {"params": matrices, "weight_decay": recipe.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=0.0, betas=recipe.betas, fused=True)


def _loss_function(
    model: Any, recipe: BuildRecipe, compile: bool, log: Callable[[str], None]
) -> Callable[[Batch], torch.Tensor]:
    """Batch -> weighted mean cross-entropy of the tokens with a weight."""
    config = model.config
    table = rotary_table(
        recipe.length, config.hidden_size // config.num_attention_heads, ROPE_THETA
    )

    def loss(
        ids: torch.Tensor,
        positions: torch.Tensor,
        documents: torch.Tensor,
        branches: torch.Tensor,
        weights: torch.Tensor,
    ) -> torch.Tensor:
        allowed = may_attend(documents, branches)
        scores = logits(model, ids, positions, allowed, table, torch.bfloat16)
        each = F.cross_entropy(scores[:, :-1].flatten(0, 1), ids[:, 1:].flatten(), reduction="none")
        wanted = weights[:, 1:].flatten()
        return (each * wanted).sum() / wanted.sum()

    compiled: Callable[..., torch.Tensor] | None = None
    if compile and shutil.which("g++"):
        compiled = torch.compile(loss, dynamic=False)
    elif compile:
        log("no g++: training without torch.compile, about half as fast")

    def of_batch(batch: Batch) -> torch.Tensor:
        nonlocal compiled
        arrays = (batch.ids, batch.positions, batch.documents, batch.branches, batch.weights)
        tensors = [torch.from_numpy(array) for array in arrays]
        if compiled is not None:
            try:
                return compiled(*tensors)
            except Exception as error:  # a compiler without Python's headers, say
                reason = first_line(error)
                log(f"torch.compile failed, training without it, about half as fast: {reason}")
                compiled = None
        return loss(*tensors)

    return of_batch
