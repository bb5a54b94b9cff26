"""Estimates a population's GPU memory from the base's dimensions.

Pure functions of the base's config.json: nothing is loaded. The learner's bytes are tested against
its code, run on tensors without contents (`tests/engines/test_memory.py`); those of vLLM follow its
sources, with an allowance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from azr_population.engines.optimizers import moments
from azr_population.engines.token_log_probs import NUMBERS

if TYPE_CHECKING:
    from azr_population.engines.assembly import EngineSettings

GIB = 0.9887 * 2**30
"""Usable bytes for each GiB that a card is sold with: of an H100's 80 torch sees 84.9 GB."""
MARGIN = 1.5e9
"""Bytes that have to stay free on a GPU, the error of these estimates."""
CONTEXT, GRAPHS = 1.5e9, 1.0e9
"""Bytes that no tensor explains, assumed: CUDA's context, NCCL and workspaces; vLLM's graphs."""
FORWARD = {2: (6.0, 8.0), 4: (8.0, 12.0)}
BACKWARD = {2: (12.0, 19.2), 4: (13.6, 48.0)}
KEPT = {2: (8.05, 17.5), 4: (12.05, 30.0)}
"""Bytes a token that a block takes at its peak, by number of the MLP's and of the hidden width:
forward, backward, and what it keeps for backward without checkpointing; members multiplied in 2 or
4 bytes. Fitted to what the learner asks for at the shapes of 3B, 7B and 14B, base in bfloat16."""
SCORED, LEARNED = 12, 14
"""Bytes that are made of each of a chunk's logits when they are scored, and learned from."""
SUM = 8
"""Bytes of a member's weight while it learns: the sum of its gradients is in float64."""
NF4_BYTES = 0.5 + 1 / 64 + 4 / (64 * 256)
"""Bytes of a weight in NF4 with double quantisation: a scale of 8 bits for 64 weights, and one of
32 bits for 256 of those."""
SPARED, _STEP = 0.6, 256
"""Of the memory that an update leaves free, for activations that are kept: the rest is for what a
real allocator loses. In steps of so many tokens."""
SAMPLER = 25
"""Bytes a row and entry of the vocabulary in vLLM's sampler when it measures itself."""
SEQUENCES = 256
"""vLLM's default for max_num_seqs. AZR's 1024 make it reserve room for as many rows of logits."""
PREFILL = 32_768
"""Tokens of the prompts that the torch rollout puts through at once (`decoding.py`)."""


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

    @classmethod
    def of(cls, config: Any) -> Architecture | None:
        """That of a transformers configuration; None where these sums are not made for it."""
        names = (
            "vocab_size",
            "hidden_size",
            "intermediate_size",
            "num_hidden_layers",
            "num_attention_heads",
        )
        values: list[Any] = [getattr(config, name, None) for name in names]
        mixture = any(getattr(config, n, None) for n in ("num_experts", "num_local_experts"))
        if mixture or not all(isinstance(value, int) for value in values):
            return None
        vocabulary, hidden, intermediate, layers, heads = values
        kind = getattr(config, "model_type", "")
        return cls(
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
        )

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
    def block(self) -> int:
        """Weights of one block."""
        products = sum(inputs * outputs for inputs, outputs in self.linear.values())
        biases = sum(self.linear[name][1] for name in ("q_proj", "k_proj", "v_proj"))
        return products + biases * self.qkv_bias + 2 * self.hidden + 2 * self.head * self.qk_norm

    @property
    def ends(self) -> int:
        """Weights of the embeddings, the head and the last norm."""
        return self.vocabulary * self.hidden * (1 if self.tied else 2) + self.hidden

    @property
    def weights(self) -> int:
        """The number of weights."""
        return self.layers * self.block + self.ends

    @property
    def products(self) -> int:
        """Weights that a token is multiplied by: all but the embeddings."""
        return self.layers * self.block + self.vocabulary * self.hidden

    @property
    def cache(self) -> int:
        """Numbers in the KV cache for one token."""
        return 2 * self.layers * self.kv_heads * self.head

    def adapter(self, rank: int, targets: Sequence[str] = ("all-linear",)) -> int:
        """Weights of one member."""
        return self.layers * rank * sum(map(sum, self._adapted(targets).values()))

    def served(self, rank: int, targets: Sequence[str], parts: int) -> int:
        """Weights of one member on one of `parts` GPUs of a tensor-parallel vLLM: the side of a
        layer that is cut is cut for the member too, the other is whole."""
        total = 0
        for name, (inputs, outputs) in self._adapted(targets).items():
            by_row = name in ("o_proj", "down_proj")
            total += inputs // parts + outputs if by_row else inputs + outputs // parts
        return self.layers * rank * total

    def _adapted(self, targets: Sequence[str]) -> dict[str, tuple[int, int]]:
        every = "all-linear" in targets
        return {name: pair for name, pair in self.linear.items() if every or name in targets}


@dataclass(frozen=True)
class Load:
    """What each GPU of a group holds and computes."""

    architecture: Architecture
    slots: int
    """Members of the GPU's group."""
    rank: int
    prompt: int
    response: int
    """Most tokens of a prompt, and of a response."""
    targets: tuple[str, ...] = ("all-linear",)
    size: int = 2
    """Bytes of a number of the base."""
    products: int = 4
    """Bytes of a number where members are multiplied in updates and scoring."""
    ranks: int = 1
    """GPUs of the group."""
    shard: bool = False
    """Whether each of them holds its part of the base only."""
    piece: int = 8192
    """Tokens that go through the learner at once; a longer row goes by itself."""
    checkpointing: bool = True
    keep: int = 0
    """With checkpointing: tokens of a piece that keeps its activations all the same."""
    vllm: bool = True
    share: float = 0.4
    """Of the card, for vLLM: its copy of the base, its slots, its work and its KV cache."""
    parallel: int = 1
    """GPUs that share one vLLM."""
    batched_tokens: int = 16_384
    sequences: int = 1024
    generate_tokens: int = 393_216
    """Most tokens in the KV cache where torch samples."""
    on_gpu: bool = True
    past: int = 0
    """Slots of past opponents, which do not learn."""
    nf4: bool = False
    """Whether the base's linear layers are quantised."""
    offload: bool = False
    """Whether the learner leaves the GPU to a vLLM that is awake."""
    optimizer: str = "AdamW"
    moments: int = 2
    """Numbers that the optimizer keeps for each weight, in float32."""

    @classmethod
    def of(
        cls,
        architecture: Architecture,
        settings: EngineSettings,
        prompt: int,
        response: int,
        *,
        slots: int | None = None,
        rows: int | None = None,
        **more: Any,
    ) -> Load:
        """That of an engine with these settings; `slots` and `rows` (generated at once) where they
        are fewer than the settings have, `more` are fields of a load."""
        learner, rollout, options = settings.learner, settings.rollout, settings.rollout.vllm
        on_gpu = settings.device.startswith("cuda")
        vllm = on_gpu and rollout.name != "torch"
        products = learner.lora_dtype or (settings.dtype if on_gpu else "float32")
        optimizer, kept = moments(learner.optimizer)
        return cls(
            architecture,
            settings.slots if slots is None else slots,
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
            parallel=rollout.together,
            batched_tokens=int(options.get("max_num_batched_tokens", 8192)),
            sequences=int(options.get("max_num_seqs", SEQUENCES)),
            generate_tokens=min(
                min(rollout.rows, rows or rollout.rows) * (prompt + response), rollout.tokens
            ),
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
    def weights(self) -> float:
        """Bytes of the whole base."""
        a = self.architecture
        linear = a.layers * sum(inputs * outputs for inputs, outputs in a.linear.values())
        saved = linear * (self.size - NF4_BYTES) if self.nf4 else 0.0
        return a.weights * self.size - saved

    @property
    def dequantized(self) -> float:
        """Bytes of the largest linear layer while it is multiplied by, if it is quantised."""
        layers = self.architecture.linear.values()
        return self.nf4 * max(inputs * outputs for inputs, outputs in layers) * self.size

    @property
    def row(self) -> int:
        """Tokens of the longest row."""
        return self.prompt + self.response

    @property
    def tokens(self) -> int:
        """Most tokens in one forward of the learner."""
        return max(self.row, self.piece)

    @property
    def member(self) -> int:
        """Weights of a member."""
        return self.architecture.adapter(self.rank, self.targets)


def base_bytes(load: Load) -> float:
    """Of the learner's base, on a GPU all the time."""
    return load.weights / (load.ranks if load.shard else 1)


def copies_bytes(load: Load) -> float:
    """Of members in the base's dtype, which are applied where nothing is learned."""
    return float(load.size * load.slots * load.member) if load.size < 4 else 0.0


def gathered_bytes(load: Load) -> float:
    """Of a sharded base, beside its part while it computes: two blocks, embeddings and head."""
    a = load.architecture
    return float((2 * a.block + a.ends) * load.size) if load.shard else 0.0


def score_peak(load: Load) -> float:
    """Bytes while log-probabilities are computed: a block's work, or a chunk of logits."""
    work = load.tokens * _widths(load.architecture, FORWARD[load.products])
    return max(work, _logits(load) * SCORED) + gathered_bytes(load) + load.dequantized


def update_peak(load: Load) -> float:
    """Bytes while the longest row is learned from: what the blocks keep (with checkpointing their
    inputs only), a block's work or a chunk of logits, the gradients of one member."""
    return max(_learned(load, load.tokens, load.checkpointing), _learned(load, load.keep, False))


def kept_tokens(load: Load, total: float) -> int:
    """How long a piece may be that keeps its activations, in the share `SPARED` of what the update
    leaves free of `total` bytes. 0 where it is less than half of what goes through at once: many
    small pieces, each of which gathers a shared base, would cost more than is saved."""
    held = sum(value for name, value in phases(load, total)["update"].items() if name != "work")
    fitting = [
        tokens
        for tokens in range(_STEP, load.piece + 1, _STEP)
        if _learned(load, tokens, False) <= SPARED * (total - held)
    ]
    most = max(fitting, default=0) if load.checkpointing else 0
    return most if 2 * most >= load.piece else 0


def vllm_bytes(load: Load) -> dict[str, float]:
    """Of one GPU's vLLM but for its KV cache, as it measures them before it makes that."""
    a, member = load.architecture, load.architecture.served(load.rank, load.targets, load.parallel)
    forward = load.batched_tokens * (6 * a.intermediate / load.parallel + 8 * a.hidden)
    return {
        "vLLM: base": load.weights / load.parallel,
        # One more for the rows of the bare base.
        "vLLM: slots": float((load.slots + 1) * member * load.size),
        "vLLM: work": load.dequantized
        + max(forward, float(load.sequences * a.vocabulary * SAMPLER)),
    }


def cache_bytes(load: Load, total: float) -> float:
    """Of the KV cache on each GPU of `total` bytes; below 0 where vLLM's share does not hold more
    than its base."""
    if not load.vllm:
        # A layer's part is there twice while a token is added to it.
        twice = 1 + 1 / load.architecture.layers
        return twice * load.generate_tokens * load.architecture.cache * load.size
    return load.share * total - CONTEXT - sum(vllm_bytes(load).values())


def cache_tokens(load: Load, total: float) -> int:
    """Tokens in the KV cache of a vLLM (over all GPUs that share it), or of the torch rollout."""
    if not load.vllm:
        return load.generate_tokens
    token = load.architecture.cache * load.size / (_kv_parts(load) or 1)
    return int(cache_bytes(load, total) / token)


def learner_bytes(load: Load) -> dict[str, float]:
    """Of what a learner keeps from step to step."""
    return {
        "base": base_bytes(load),
        "members, float32": 4.0 * load.slots * load.member,
        load.moments_name: 4.0 * load.moments * (load.slots - load.past) * load.member,
    }


def offloaded_bytes(load: Load) -> float:
    """Of what moves to the GPU and back when an offloaded learner computes: all but moments, which
    follow one member at a time, and a sharded base."""
    held = learner_bytes(load)
    return (held["base"] * (not load.shard) + held["members, float32"]) * load.offload


def host_bytes(load: Load) -> float:
    """Of a GPU's part in the host's memory, at most: a vLLM asleep, and what is offloaded."""
    served = vllm_bytes(load)
    asleep = (served["vLLM: base"] + served["vLLM: slots"]) * load.vllm
    resting = learner_bytes(load)[load.moments_name] * load.offload
    return asleep + offloaded_bytes(load) + resting


def vllm_utilisation(load: Load, total: float, whole_process: bool) -> float:
    """`gpu_memory_utilization` with which vLLM has `load.share` of the card for itself.

    vLLM 0.8.5's V1 engine counts all that its process has on the GPU when it starts, the learner
    included (`whole_process`); later ones count what they add.
    """
    held = base_bytes(load) + 4 * load.slots * load.member - offloaded_bytes(load)
    return load.share + held / total if whole_process else load.share


def phases(load: Load, total: float) -> dict[str, dict[str, float]]:
    """Bytes of each part on one GPU of `total` bytes, in each phase of a step."""
    runtime = {"CUDA, NCCL, graphs": (CONTEXT + GRAPHS * load.vllm) * load.on_gpu}
    learner, copies = learner_bytes(load), {"their copies": copies_bytes(load)}
    held = learner | copies | runtime
    scored, learned, resting = held, held, held
    if load.offload:
        scored = held | {load.moments_name: 0.0}
        learned = held | {
            load.moments_name: 4.0 * load.moments * load.member,
            "their copies": 0.0,
        }
        resting = dict.fromkeys(held, 0.0) | {"base": learner["base"] * load.shard} | runtime
    cache = {"KV cache": cache_bytes(load, total)}
    if load.vllm:
        served = vllm_bytes(load)
        generate = resting | served | cache
        work = served.pop("vLLM: work")
        pushed = (4.0 * (not load.offload) + load.size) * load.member
        wake = resting | served | cache | {"work": min(work, pushed)}
    else:
        work = min(PREFILL, load.generate_tokens) * _widths(
            load.architecture, FORWARD[2]
        ) + gathered_bytes(load)
        generate, wake = held | cache | {"work": work}, {}
    parts = {
        "generate": generate,
        "score": scored | {"work": score_peak(load)},
        "update": learned | {"work": update_peak(load)},
    }
    return parts | ({"wake": wake} if wake else {})


def check_memory(load: Load, total: float) -> str | None:
    """A sentence: what does not fit a device of `total` bytes; None if everything fits."""
    a, margin = load.architecture, MARGIN if load.on_gpu else 0.0
    if load.vllm and (a.heads % load.parallel or _kv_parts(load) is None):
        return (
            f"tensor_model_parallel_size={load.parallel} does not divide the base's {a.heads} "
            f"attention heads ({a.kv_heads} of keys and values)"
        )
    if load.vllm and (tokens := cache_tokens(load, total)) < load.row:
        need = sum(vllm_bytes(load).values()) + CONTEXT
        return (
            f"vLLM's share of {load.share:.2f} is {load.share * total / 1e9:.1f} GB a GPU, it "
            f"takes {need / 1e9:.1f} without a KV cache, and what is left holds "
            f"{max(0, tokens):,} tokens where a row has up to {load.row:,}"
        )
    for phase, parts in phases(load, total).items():
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


def _kv_parts(load: Load) -> int | None:
    """Parts that keys and values are cut into by a tensor-parallel vLLM, which copies heads where
    it has more GPUs; None where it can do neither."""
    heads, parallel = load.architecture.kv_heads, load.parallel
    return min(heads, parallel) if heads % parallel == 0 or parallel % heads == 0 else None


def _learned(load: Load, tokens: int, checkpointing: bool) -> float:
    """Bytes while a piece of so many tokens is learned from."""
    a = load.architecture
    saved = load.size * a.hidden if checkpointing else _widths(a, KEPT[load.products])
    block = _widths(a, (BACKWARD if checkpointing else FORWARD)[load.products])
    work = max(tokens * block, _logits(load) * LEARNED)
    held = a.layers * saved * tokens + load.member * SUM
    return held + work + gathered_bytes(load) + load.dequantized


def _widths(a: Architecture, bytes_each: tuple[float, float]) -> float:
    """Bytes a token, of so many numbers of the MLP's width and of the hidden width."""
    return bytes_each[0] * a.intermediate + bytes_each[1] * a.hidden


def _logits(load: Load) -> float:
    """Logits that are there at once."""
    return min(NUMBERS, load.response * load.architecture.vocabulary)
