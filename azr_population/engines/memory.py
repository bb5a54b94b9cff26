"""Estimates a population's GPU memory from the base's dimensions; all in bytes.

Pure functions of the base's config.json: nothing is loaded. The learner's bytes are tested against
its code, run on tensors without contents (`tests/engines/test_memory.py`); those of vLLM follow its
sources, with an allowance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import torch

from azr_population.engines.decoding import PREFILL_TOKENS
from azr_population.engines.kv_cache import ATTENDING
from azr_population.engines.optimizers import moments
from azr_population.engines.token_log_probs import NUMBERS

if TYPE_CHECKING:
    from azr_population.engines.assembly import EngineSettings

GIB = 0.9887 * 2**30  # usable of each GiB of a card: of an H100's 80 torch sees 84.9 GB
MARGIN = 1.5e9  # must stay free on a GPU: the error of these estimates
CONTEXT = 1.5e9  # CUDA's context, NCCL, workspaces; assumed
GRAPHS = 1.0e9  # vLLM's CUDA graphs; assumed
SCORED, LEARNED = 12, 14  # for each of a chunk's logits, scored and learned from
SUM = 8  # for a member's weight while it learns: its gradients are summed in float64
NF4 = 0.5 + 1 / 64 + 4 / (64 * 256)  # a weight: 8 bits of scale for 64, 32 bits for 256 of those
SAMPLER = 25  # for a row and entry of the vocabulary, when vLLM measures its sampler
# For a token in a block at its peak, by number of the MLP's and of the hidden width, with members
# multiplied in 2 or 4 bytes: forward, backward, and what is kept for backward without
# checkpointing. Fitted to what the learner asks for at the shapes of 3B, 7B and 14B in bfloat16.
FORWARD = {2: (6.0, 8.0), 4: (8.0, 12.0)}
BACKWARD = {2: (12.0, 19.2), 4: (13.6, 48.0)}
KEPT = {2: (8.05, 17.5), 4: (12.05, 30.0)}

SEQUENCES = 256
"""vLLM's default for max_num_seqs. AZR's 1024 make it reserve room for as many rows of logits."""


_SIZES = (
    "vocab_size",
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
)
"""What a configuration calls the first fields of `Architecture`."""


_ROUGHLY = 0.02


@dataclass(frozen=True)
class Architecture:
    """The dimensions of a decoder of Llama's kind: Llama, Mistral, Qwen2, Qwen3, SmolLM."""

    vocabulary: int
    hidden: int
    intermediate: int
    layers: int
    heads: int
    kv_heads: int
    head: int
    tied: bool = False
    qkv_bias: bool = False
    qk_norm: bool = False
    windowed: int = 0
    """Layers that attend to the last `window` tokens only."""
    window: int = 0

    @classmethod
    def of(cls, config: Any) -> Architecture | None:
        """That of a transformers configuration; None where these sums are not made for it: the
        weights of the model that it makes, on torch's meta device, must be those that they give,
        but for 2% (norms, biases)."""
        sizes: list[Any] = [getattr(config, name, None) for name in _SIZES]
        mixture = any(getattr(config, n, None) for n in ("num_experts", "num_local_experts"))
        if mixture or not all(isinstance(size, int) for size in sizes):
            return None
        vocabulary, hidden, intermediate, layers, heads = sizes
        kind, window = getattr(config, "model_type", ""), getattr(config, "sliding_window", 0) or 0
        # Without a list of kinds (Mistral in transformers 4) all layers have the window.
        kinds = getattr(config, "layer_types", None) or ["sliding_attention"] * layers
        if {*kinds} - ATTENDING:
            return None
        shape = cls(
            vocabulary,
            hidden,
            intermediate,
            layers,
            heads,
            kv_heads=getattr(config, "num_key_value_heads", None) or heads,
            head=getattr(config, "head_dim", None) or hidden // heads,
            tied=bool(getattr(config, "tie_word_embeddings", False)),
            qkv_bias=kind == "qwen2" or bool(getattr(config, "attention_bias", False)),
            qk_norm=kind == "qwen3",
            windowed=kinds.count("sliding_attention") if window else 0,
            window=window,
        )
        from transformers import AutoModelForCausalLM

        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(config)
        counted = sum(weight.numel() for weight in model.parameters())
        return shape if abs(shape.weights - counted) <= _ROUGHLY * counted else None

    @property
    def linear(self) -> dict[str, tuple[int, int]]:
        """(inputs, outputs) of each linear layer of a block."""
        query, key = self.heads * self.head, self.kv_heads * self.head
        return {
            "q_proj": (self.hidden, query),
            "k_proj": (self.hidden, key),
            "v_proj": (self.hidden, key),
            "o_proj": (query, self.hidden),
            "gate_proj": (self.hidden, self.intermediate),
            "up_proj": (self.hidden, self.intermediate),
            "down_proj": (self.intermediate, self.hidden),
        }

    @property
    def linear_weights(self) -> int:
        """Weights of all linear layers but the head."""
        return self.layers * sum(inputs * outputs for inputs, outputs in self.linear.values())

    @property
    def block(self) -> int:
        """Weights of one block."""
        biases = sum(self.linear[name][1] for name in ("q_proj", "k_proj", "v_proj"))
        norms = 2 * self.hidden + 2 * self.head * self.qk_norm
        return self.linear_weights // self.layers + biases * self.qkv_bias + norms

    @property
    def ends(self) -> int:
        """Weights of the embeddings, the head and the last norm."""
        return self.vocabulary * self.hidden * (1 if self.tied else 2) + self.hidden

    @property
    def weights(self) -> int:
        return self.layers * self.block + self.ends

    @property
    def cache(self) -> int:
        """Numbers in the KV cache for one token, which every layer keeps."""
        return 2 * self.layers * self.kv_heads * self.head

    def attended(self, past: float) -> float:
        """Tokens that a layer attends to behind `past` of them, as a mean over layers."""
        beyond = max(0.0, past - self.window)
        return past - beyond * self.windowed / self.layers

    def adapter(self, rank: int, targets: Sequence[str] = ("all-linear",), parts: int = 1) -> int:
        """Weights of one member, on one of `parts` GPUs of a tensor-parallel vLLM: the side of a
        layer that is cut is cut for the member too, the other is whole."""
        total = 0
        for name, (inputs, outputs) in self.linear.items():
            if "all-linear" in targets or name in targets:
                by_row = name in ("o_proj", "down_proj")
                total += inputs // parts + outputs if by_row else inputs + outputs // parts
        return self.layers * rank * total


@dataclass(frozen=True)
class Load:
    """What each GPU of a group holds and computes."""

    architecture: Architecture
    slots: int  # members of the GPU's group
    rank: int
    prompt: int  # most tokens of a prompt
    response: int  # most tokens of a response
    targets: tuple[str, ...] = ("all-linear",)
    size: int = 2  # bytes of a number of the base
    products: int = 4  # bytes of a number where members are multiplied in updates and scoring
    ranks: int = 1  # GPUs of the group
    shard: bool = False  # each of them holds its part of the base only
    piece: int = 8192  # tokens that go through the learner at once; a longer row goes by itself
    checkpointing: bool = True
    keep: int = 0  # with checkpointing: pieces of at most this many tokens keep their activations
    vllm: bool = True
    share: float = 0.4  # of the card, for vLLM: its base, its slots, its work and its KV cache
    parallel: int = 1  # GPUs that share one vLLM
    batched_tokens: int = 16_384
    sequences: int = 1024
    generate_tokens: int = 393_216  # most tokens in the KV cache where torch samples
    on_gpu: bool = True
    nf4: bool = False  # the base's linear layers are quantised
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
    ) -> Load:
        """That of an engine with these settings. `rows` are generated at once, if they are fewer
        than the settings allow; `more` are fields of a load."""
        learner, options = settings.learner, settings.vllm
        on_gpu = settings.device.startswith("cuda")
        vllm = on_gpu and settings.rollout != "torch"
        products = learner.lora_dtype or (settings.dtype if on_gpu else "float32")
        optimizer, kept = moments(learner.optimizer)
        rows = min(settings.generate_rows, rows or settings.generate_rows)
        return cls(
            architecture,
            settings.slots,
            settings.lora.rank,
            prompt,
            response,
            tuple(settings.lora.target_modules),
            size=getattr(torch, settings.dtype).itemsize,
            products=getattr(torch, products).itemsize,
            shard=bool(learner.shard_base),
            piece=learner.micro_batch_tokens,
            checkpointing=learner.gradient_checkpointing,
            keep=learner.recompute_above_tokens or 0,
            vllm=vllm,
            share=float(options.get("gpu_memory_utilization", 0.9)),
            parallel=settings.together,
            batched_tokens=int(options.get("max_num_batched_tokens", 8192)),
            sequences=int(options.get("max_num_seqs", SEQUENCES)),
            generate_tokens=min(rows * (prompt + response), settings.generate_tokens),
            on_gpu=on_gpu,
            nf4=settings.quantization == "nf4",
            offload=vllm and bool(learner.offload),
            optimizer=optimizer,
            moments=kept,
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
def phases(load: Load, total: float) -> dict[str, dict[str, float]]:
    """The table: each part on one GPU of `total` bytes, in each phase of a step; only to be
    read."""
    a, member = load.architecture, load.member
    runtime = {"CUDA, NCCL, graphs": (CONTEXT + GRAPHS * load.vllm) * load.on_gpu}
    held = {
        "base": load.weights / (load.ranks if load.shard else 1),
        "members, float32": 4.0 * load.slots * member,
        load.moments_name: 4.0 * load.moments * load.slots * member,
        # In the base's dtype, applied where nothing is learned.
        "their copies": float(load.size * load.slots * member) if load.size < 4 else 0.0,
    } | runtime
    scored, learned, resting = held, held, held
    if load.offload:
        scored = held | {load.moments_name: 0.0}
        learned = scored | {load.moments_name: 4.0 * load.moments * member, "their copies": 0.0}
        resting = dict.fromkeys(held, 0.0) | {"base": held["base"] * load.shard} | runtime
    tokens = max(load.row, load.piece)
    whole = _learning(load, tokens, load.checkpointing)
    computing = {
        "score": scored | {"work": _work(load, tokens, FORWARD, SCORED)},
        "update": learned | {"work": max(whole, _learning(load, load.keep, False))},
    }
    if not load.vllm:
        # A layer's part is there twice while rows are taken out.
        cache = (1 + 1 / a.layers) * load.generate_tokens * a.cache * load.size
        prompts = min(PREFILL_TOKENS, load.generate_tokens) * _widths(a, FORWARD[2])
        sampling = {"KV cache": cache, "work": prompts + _gathered(load)}
        return {"generate": held | sampling} | computing
    served = {
        "vLLM: base": load.weights / load.parallel,
        # One more for the rows of the bare base.
        "vLLM: slots": float((load.slots + 1) * load.size)
        * a.adapter(load.rank, load.targets, load.parallel),
    }
    # As vLLM measures itself before it makes its cache.
    block = load.batched_tokens * (6 * a.intermediate / load.parallel + 8 * a.hidden)
    work = _restored(load) + max(block, float(load.sequences * a.vocabulary * SAMPLER))
    cache = load.share * total - CONTEXT - sum((*served.values(), work))
    pushed = (4.0 * (not load.offload) + load.size) * member
    awake = resting | served
    return {
        "generate": awake | {"vLLM: work": work, "KV cache": cache},
        **computing,
        "wake": awake | {"KV cache": cache, "work": min(work, pushed)},
    }


def _work(load: Load, tokens: int, block: dict[int, tuple[float, float]], each_logit: int) -> float:
    """While `tokens` go through the learner: a block's work or a chunk of logits, and weights that
    are there for a while (two blocks and the ends of a shared base, a quantised layer in full)."""
    a = load.architecture
    logits = min(NUMBERS, load.response * a.vocabulary)
    work = max(tokens * _widths(a, block[load.products]), logits * each_logit)
    return work + _gathered(load) + _restored(load)


def _learning(load: Load, tokens: int, checkpointing: bool) -> float:
    """The work of learning from `tokens`: beside it what the blocks keep (with checkpointing their
    inputs only) and the gradients of one member."""
    a = load.architecture
    kept = load.size * a.hidden if checkpointing else _widths(a, KEPT[load.products])
    work = _work(load, tokens, BACKWARD if checkpointing else FORWARD, LEARNED)
    return a.layers * kept * tokens + load.member * SUM + work


def _gathered(load: Load) -> float:
    a = load.architecture
    return float((2 * a.block + a.ends) * load.size) if load.shard else 0.0


def _restored(load: Load) -> float:
    layers = load.architecture.linear.values()
    return load.nf4 * max(inputs * outputs for inputs, outputs in layers) * load.size


def _widths(a: Architecture, bytes_each: tuple[float, float]) -> float:
    """Bytes per token: `bytes_each` of the MLP's width and of the hidden width."""
    return bytes_each[0] * a.intermediate + bytes_each[1] * a.hidden


def kept_tokens(load: Load, total: float) -> int:
    """How long a piece may be that keeps its activations, in 0.6 of what the update leaves free of
    `total` (a real allocator loses some). 0 if that is less than half of what goes through at once:
    many small pieces, each of which gathers a shared base, would cost more than is saved."""
    held = sum(value for name, value in phases(load, total)["update"].items() if name != "work")
    room = 0.6 * (total - held)
    fitting = (n for n in range(256, load.piece + 1, 256) if _learning(load, n, False) <= room)
    most = max(fitting, default=0) if load.checkpointing else 0
    return most if 2 * most >= load.piece else 0


def cache_tokens(load: Load, total: float) -> int:
    """Tokens in the KV cache of a vLLM (over all GPUs that share it), or of the torch rollout.
    Below 0 where vLLM's share does not hold more than its base."""
    if not load.vllm:
        return load.generate_tokens
    token = load.architecture.cache * load.size / (_kv_parts(load) or 1)
    return int(phases(load, total)["generate"]["KV cache"] / token)


def _kv_parts(load: Load) -> int | None:
    """Parts that keys and values are cut into by a tensor-parallel vLLM, which copies heads where
    it has more GPUs; None where it can do neither."""
    heads, parallel = load.architecture.kv_heads, load.parallel
    return min(heads, parallel) if heads % parallel == 0 or parallel % heads == 0 else None


def host_bytes(load: Load, total: float) -> float:
    """A GPU's part of the host's memory, at most: a vLLM asleep, and what is offloaded."""
    parts = phases(replace(load, offload=False), total)["generate"]
    asleep = parts.get("vLLM: base", 0.0) + parts.get("vLLM: slots", 0.0)
    moments = parts[load.moments_name] * load.offload
    return asleep + offloaded_bytes(load, total) + moments


def offloaded_bytes(load: Load, total: float) -> float:
    """What moves to the GPU and back when an offloaded learner computes: all but moments, which
    follow one member at a time, and a sharded base."""
    resting, computing = (phases(load, total)[phase] for phase in ("generate", "score"))
    return sum(computing[part] - resting[part] for part in ("base", "members, float32"))


def vllm_utilisation(load: Load, total: float) -> float:
    """`gpu_memory_utilization` with which vLLM 0.8.5 has `load.share` of the card for itself: its
    V1 engine counts all that its process holds when it starts, the learner included. Later ones
    count what they add."""
    parts = phases(load, total)["generate"]
    return load.share + (parts["base"] + parts["members, float32"]) / total


def check_memory(load: Load, total: float) -> str | None:
    """A sentence: what does not fit a device of `total` bytes; None if everything fits."""
    a, margin = load.architecture, MARGIN if load.on_gpu else 0.0
    if load.vllm and (a.heads % load.parallel or _kv_parts(load) is None):
        return (
            f"tensor_model_parallel_size={load.parallel} does not divide the base's {a.heads} "
            f"attention heads ({a.kv_heads} of keys and values)"
        )
    table = phases(load, total)
    if load.vllm and (tokens := cache_tokens(load, total)) < load.row:
        share = load.share * total
        return (
            f"vLLM's share of {load.share:.2f} is {share / 1e9:.1f} GB a GPU, it takes "
            f"{(share - table['generate']['KV cache']) / 1e9:.1f} without a KV cache, and what is "
            f"left holds {max(0, tokens):,} tokens where a row has up to {load.row:,}"
        )
    for phase, parts in table.items():
        if (needed := sum(parts.values())) > total - margin:
            free = f", of which {margin / 1e9:.1f} have to stay free" if margin else ""
            return (
                f"to {phase} takes {needed / 1e9:.1f} GB a GPU, and it has {total / 1e9:.1f}{free} "
                f"(the base {parts['base'] / 1e9:.1f}, members and moments "
                f"{(parts['members, float32'] + parts[load.moments_name]) / 1e9:.1f})"
            )
    return None


def size(amount: float) -> str:
    """Bytes in a readable unit."""
    return f"{amount / 1e9:.1f} GB" if amount >= 1e9 else f"{amount / 1e6:.0f} MB"
