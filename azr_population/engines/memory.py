"""Estimates a population's GPU memory from the base's dimensions; all in bytes.

Pure functions of the base's config.json: nothing is loaded. The learner's bytes are tested against
its code, run on tensors without contents (`tests/engines/test_memory.py`); those of vLLM follow its
sources, with an allowance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import torch

from azr_population.engines.architecture import Architecture
from azr_population.engines.decoding import PREFILL_TOKENS
from azr_population.engines.engine import EngineSettings
from azr_population.engines.optimizers import moments
from azr_population.engines.token_log_probs import MAX_LOGITS

GIB = 0.9887 * 2**30  # usable of each GiB of a card: of an H100's 80 torch sees 84.9 GB
MARGIN = 1.5e9  # must stay free on a GPU: the error of these estimates
CONTEXT = 1.5e9  # CUDA's context, NCCL, workspaces; assumed
GRAPHS = 1.0e9  # vLLM's CUDA graphs; assumed
SCORED_BYTES_PER_LOGIT, LEARNED_BYTES_PER_LOGIT = 12, 14
GRADIENT_BYTES = 8  # for a member's weight while it learns: its gradients are summed in float64
NF4 = 0.5 + 1 / 64 + 4 / (64 * 256)  # a weight: 8 bits of scale for 64, 32 bits for 256 of those
SAMPLER = 25  # for a row and entry of the vocabulary, when vLLM measures its sampler
# For a token in a block at its peak, by number of the MLP's and of the hidden width, with members
# multiplied in 2 or 4 bytes: forward, backward, and what is kept for backward without
# checkpointing, or with it where products are kept. Fitted to what the learner asks for at the
# shapes of 3B, 7B and 14B in bfloat16.
FORWARD = {2: (6.0, 8.0), 4: (8.0, 12.0)}
BACKWARD = {2: (12.0, 19.2), 4: (13.6, 48.0)}
KEPT = {2: (8.05, 17.5), 4: (12.05, 30.0)}
PRODUCTS = {2: (4.0, 10.8), 4: (12.0, 24.0)}

SLEEPS = "enable_sleep_mode"
"""vLLM's option; without it vLLM stays awake while members learn."""

SEQUENCES = 256
"""vLLM's default for max_num_seqs. AZR's 1024 make it reserve room for as many rows of logits."""


@dataclass(frozen=True)
class GpuLayout:
    """Contents and work of each GPU of a group."""

    architecture: Architecture
    slots: int  # members of the GPU's group
    rank: int
    prompt: int  # most tokens of a prompt
    response: int  # most tokens of a response
    targets: tuple[str, ...] = ("all-linear",)
    size: int = 2  # bytes of a number of the base
    lora_bytes: int = 4  # bytes of a number where members are multiplied in updates and scoring
    ranks: int = 1  # GPUs of the group
    # Tokens that go through the learner at once; a longer row goes by itself.
    micro_batch_tokens: int = 8192
    checkpointing: bool = True
    # With checkpointing: pieces of at most this many tokens keep the results of their products.
    no_recompute_tokens: int = 0
    vllm: bool = True
    # Of the card, for vLLM: its base, its slots, its work and its KV cache.
    vllm_fraction: float = 0.4
    parallel: int = 1  # GPUs that share one vLLM
    batched_tokens: int = 16_384
    sequences: int = 1024
    generate_tokens: int = 393_216  # most tokens in the KV cache where torch samples
    on_gpu: bool = True
    nf4: bool = False  # the base's linear layers are quantised
    sleeps: bool = True  # vLLM leaves the GPU to the learner while that computes
    offload: bool = False  # the learner leaves the GPU to a vLLM that is awake
    optimizer: str = "AdamW"
    moments: int = 2  # numbers that the optimizer keeps for each weight, in float32

    @classmethod
    def of(
        cls,
        architecture: Architecture,
        settings: EngineSettings,
        prompt: int,
        response: int,
        *,
        rows: int | None = None,
        **more: Any,
    ) -> GpuLayout:
        """That of an engine with these settings. `rows` are generated at once, if they are fewer
        than the settings allow; `more` are fields of a layout."""
        settings = settings.for_base(architecture.weights)
        learner, options = settings.learner, settings.vllm
        on_gpu = settings.device.startswith("cuda")
        vllm = on_gpu and settings.rollout != "torch"
        products = learner.lora_dtype or (settings.dtype if on_gpu else "float32")
        optimizer, moment_count = moments(learner.optimizer)
        most = settings.generate_rows or 0
        rows = min(most, rows or most)
        return cls(
            architecture,
            settings.slots,
            settings.lora.rank,
            prompt,
            response,
            tuple(settings.lora.target_modules),
            size=getattr(torch, settings.dtype).itemsize,
            lora_bytes=getattr(torch, products).itemsize,
            micro_batch_tokens=learner.micro_batch_tokens,
            checkpointing=bool(learner.gradient_checkpointing),
            no_recompute_tokens=learner.recompute_above_tokens or 0,
            vllm=vllm,
            vllm_fraction=float(options.get("gpu_memory_utilization", 0.9)),
            parallel=settings.tensor_parallel_size,
            batched_tokens=int(options.get("max_num_batched_tokens", 8192)),
            sequences=int(options.get("max_num_seqs", SEQUENCES)),
            sleeps=bool(options.get(SLEEPS, True)),
            generate_tokens=min(rows * (prompt + response), settings.generate_tokens),
            on_gpu=on_gpu,
            nf4=settings.quantization == "nf4",
            offload=vllm and bool(learner.offload),
            optimizer=optimizer,
            moments=moment_count,
            **more,
        )

    @property
    def moments_name(self) -> str:
        """The optimizer's row of the table by phase."""
        return f"{self.optimizer}'s moments"

    @property
    def row(self) -> int:
        """Tokens of the longest row."""
        return self.prompt + self.response

    @property
    def member(self) -> int:
        """Weights of a member."""
        return self.architecture.adapter(self.rank, self.targets)

    @property
    def weights(self) -> float:
        """Bytes of the whole base."""
        saved = self.architecture.linear_weights * (self.size - NF4) if self.nf4 else 0.0
        return self.architecture.weights * self.size - saved


@lru_cache(maxsize=8)
def phases(layout: GpuLayout, total: float) -> dict[str, dict[str, float]]:
    """The table: each part on one GPU of `total` bytes, in each phase of a step; only to be
    read."""
    a, member = layout.architecture, layout.member
    runtime = {"CUDA, NCCL, graphs": (CONTEXT + GRAPHS * layout.vllm) * layout.on_gpu}
    held = {
        "base": float(layout.weights),
        "members, float32": 4.0 * layout.slots * member,
        layout.moments_name: 4.0 * layout.moments * layout.slots * member,
        # In the base's dtype, applied where nothing is learned.
        "their copies": float(layout.size * layout.slots * member) if layout.size < 4 else 0.0,
    } | runtime
    scored, learned, resting = held, held, held
    if layout.offload:
        scored = held | {layout.moments_name: 0.0}
        learned = scored | {layout.moments_name: 4.0 * layout.moments * member, "their copies": 0.0}
        resting = dict.fromkeys(held, 0.0) | runtime
    tokens = max(layout.row, layout.micro_batch_tokens)
    whole = _learning(layout, tokens, None if layout.checkpointing else KEPT)
    kept = _learning(layout, layout.no_recompute_tokens, PRODUCTS)
    computing = {
        "score": scored | {"work": _work(layout, tokens, FORWARD, SCORED_BYTES_PER_LOGIT)},
        "update": learned | {"work": max(whole, kept)},
    }
    if not layout.vllm:
        # A layer's part is there twice while rows are taken out.
        cache = (1 + 1 / a.layers) * layout.generate_tokens * a.cache * layout.size
        prompts = min(PREFILL_TOKENS, layout.generate_tokens) * _widths(a, FORWARD[2])
        sampling = {"KV cache": cache, "work": prompts}
        return {"generate": held | sampling} | computing
    served = {
        "vLLM: base": layout.weights / layout.parallel,
        # One more for the rows of the bare base.
        "vLLM: slots": float((layout.slots + 1) * layout.size)
        * a.adapter(layout.rank, layout.targets, layout.parallel),
    }
    # As vLLM measures itself before it makes its cache.
    block = layout.batched_tokens * (6 * a.intermediate / layout.parallel + 8 * a.hidden)
    work = _restored(layout) + max(block, float(layout.sequences * a.vocabulary * SAMPLER))
    cache = layout.vllm_fraction * total - CONTEXT - sum((*served.values(), work))
    pushed = (4.0 * (not layout.offload) + layout.size) * member
    awake = resting | served
    generating = awake | {"vLLM: work": work, "KV cache": cache}
    if not layout.sleeps:
        beside = served | {"KV cache": cache}
        return {"generate": generating} | {name: computing[name] | beside for name in computing}
    waking = awake | {"KV cache": cache, "work": min(work, pushed)}
    return {"generate": generating, **computing, "wake": waking}


def _work(
    layout: GpuLayout, tokens: int, block: dict[int, tuple[float, float]], each_logit: int
) -> float:
    """While `tokens` go through the learner: a block's work or a chunk of logits, and a
    quantised layer in full."""
    a = layout.architecture
    logits = min(MAX_LOGITS, layout.response * a.vocabulary)
    work = max(tokens * _widths(a, block[layout.lora_bytes]), logits * each_logit)
    return work + _restored(layout)


def _learning(layout: GpuLayout, tokens: int, kept: dict[int, tuple[float, float]] | None) -> float:
    """The work of learning from `tokens`: beside it what the blocks keep (`KEPT`, `PRODUCTS`, or
    their inputs only) and the gradients of one member."""
    a = layout.architecture
    stored = _widths(a, kept[layout.lora_bytes]) if kept else layout.size * a.hidden
    block = FORWARD if kept is KEPT else BACKWARD
    work = _work(layout, tokens, block, LEARNED_BYTES_PER_LOGIT)
    return a.layers * stored * tokens + layout.member * GRADIENT_BYTES + work


def _restored(layout: GpuLayout) -> float:
    layers = layout.architecture.linear.values()
    return layout.nf4 * max(inputs * outputs for inputs, outputs in layers) * layout.size


def _widths(a: Architecture, bytes_each: tuple[float, float]) -> float:
    """Bytes per token: `bytes_each` of the MLP's width and of the hidden width."""
    return bytes_each[0] * a.intermediate + bytes_each[1] * a.hidden


def kept_tokens(layout: GpuLayout, total: float) -> int:
    """How long a piece may be that keeps its products, in 0.6 of what the update leaves free of
    `total` (a real allocator loses some). 0 if that is less than half of what goes through at once:
    many small pieces, each of which gathers a shared base, would cost more than is saved."""
    held = sum(value for name, value in phases(layout, total)["update"].items() if name != "work")
    room = 0.6 * (total - held)
    fitting = (
        n
        for n in range(256, layout.micro_batch_tokens + 1, 256)
        if _learning(layout, n, PRODUCTS) <= room
    )
    most = max(fitting, default=0) if layout.checkpointing else 0
    return most if 2 * most >= layout.micro_batch_tokens else 0


def cache_tokens(layout: GpuLayout, total: float) -> int:
    """Tokens in the KV cache of a vLLM (over all GPUs that share it), or of the torch rollout.
    Below 0 where vLLM's share does not hold more than its base."""
    if not layout.vllm:
        return layout.generate_tokens
    token = layout.architecture.cache * layout.size / (_kv_parts(layout) or 1)
    return int(phases(layout, total)["generate"]["KV cache"] / token)


def _kv_parts(layout: GpuLayout) -> int | None:
    """Parts that keys and values are cut into by a tensor-parallel vLLM, which copies heads where
    it has more GPUs; None where it can do neither."""
    heads, parallel = layout.architecture.kv_heads, layout.parallel
    return min(heads, parallel) if heads % parallel == 0 or parallel % heads == 0 else None


def host_bytes(layout: GpuLayout, total: float) -> float:
    """A GPU's part of the host's memory, at most: a vLLM asleep, and what is offloaded."""
    parts = phases(replace(layout, offload=False), total)["generate"]
    asleep = layout.sleeps * (parts.get("vLLM: base", 0.0) + parts.get("vLLM: slots", 0.0))
    moved = parts["base"] + parts["members, float32"] + parts[layout.moments_name]
    return asleep + layout.offload * moved


def vllm_utilisation(layout: GpuLayout, total: float) -> float:
    """`gpu_memory_utilization` with which vLLM 0.8.5 has `vllm_fraction` of the card for itself:
    its V1 engine counts all that its process holds when it starts, the learner included. Later ones
    count what they add."""
    parts = phases(layout, total)["generate"]
    return layout.vllm_fraction + (parts["base"] + parts["members, float32"]) / total


def check_memory(layout: GpuLayout, total: float) -> str | None:
    """A sentence: what does not fit a device of `total` bytes; None if everything fits."""
    a, margin = layout.architecture, MARGIN if layout.on_gpu else 0.0
    if layout.vllm and (a.heads % layout.parallel or _kv_parts(layout) is None):
        return (
            f"tensor_model_parallel_size={layout.parallel} does not divide the base's {a.heads} "
            f"attention heads ({a.kv_heads} of keys and values)"
        )
    table = phases(layout, total)
    if layout.vllm and (tokens := cache_tokens(layout, total)) < layout.row:
        share = layout.vllm_fraction * total
        return (
            f"vLLM's share of {layout.vllm_fraction:.2f} is {share / 1e9:.1f} GB a GPU, it takes "
            f"{(share - table['generate']['KV cache']) / 1e9:.1f} without a KV cache, and what is "
            f"left holds {max(0, tokens):,} tokens where a row has up to {layout.row:,}"
        )
    for phase, parts in table.items():
        if (needed := sum(parts.values())) > total - margin:
            free = f", of which {margin / 1e9:.1f} have to stay free" if margin else ""
            return (
                f"to {phase} takes {needed / 1e9:.1f} GB a GPU, and it has {total / 1e9:.1f}{free} "
                f"(the base {parts['base'] / 1e9:.1f}, members and moments "
                f"{(parts['members, float32'] + parts[layout.moments_name]) / 1e9:.1f})"
            )
    return None


def size(amount: float) -> str:
    """Bytes in a readable unit."""
    return f"{amount / 1e9:.1f} GB" if amount >= 1e9 else f"{amount / 1e6:.0f} MB"
