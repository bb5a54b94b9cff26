"""Whether a run fits its GPUs: the sums of `engines/costs.py` for AZR's command; the way out."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from omegaconf import OmegaConf, open_dict

from azr_population.config.inside_azr import PopulationSettings
from azr_population.engines import costs
from azr_population.engines.costs import Architecture, Load
from azr_population.errors import UserError
from azr_population.hosts.azr import surroundings
from azr_population.hosts.azr.vllm_options import vllm_options

ASSUMED_GIB = 80
"""Of a GPU that nobody has named and that is not there."""


@dataclass(frozen=True)
class Machine:
    """GPUs as far as they are known: how many, and each one's bytes."""

    gpus: int
    bytes_each: float
    told: str


def machine_of(config: Any, settings: PopulationSettings) -> Machine:
    """By the command, and by `population.gpu_memory` or what is here."""
    gpus = int(config.trainer.n_gpus_per_node) * int(config.trainer.nnodes)
    found = surroundings.gpu_bytes(settings)
    told = "" if found else ", assumed: population.gpu_memory says what there will be"
    return Machine(gpus, found or ASSUMED_GIB * costs.CARD * 2**30, told)


def load_of(
    config: Any, settings: PopulationSettings, architecture: Architecture, gpus: int
) -> Load:
    """What each GPU holds and does, by the command."""
    split = settings.placement == "split"
    slots = max(settings.teachers, settings.students) if split else settings.members
    options = vllm_options(config, "cuda")
    return Load(
        architecture,
        slots,
        settings.lora.rank,
        int(config.data.max_prompt_length),
        int(config.data.max_response_length),
        tuple(settings.lora.target_modules),
        size=4 if settings.dtype == "float32" else 2,
        products=4 if "float32" in (settings.dtype, settings.products) else 2,
        ranks=max(1, gpus // 2 if split else gpus),
        shard=bool(settings.shard),
        piece=settings.micro_batch_tokens,
        keep=settings.keep_tokens or 0,
        checkpointing=bool(config.actor_rollout_ref.model.enable_gradient_checkpointing),
        vllm=settings.rollout != "torch",
        parallel=int(options.get("tensor_parallel_size") or 1),
        share=float(options.get("gpu_memory_utilization", 0.9)),
        batched_tokens=int(options.get("max_num_batched_tokens", 8192)),
        sequences=int(options.get("max_num_seqs", 256)),
        generate_tokens=settings.generate_tokens,
    )


def too_much(load: Load, total: float) -> str | None:
    """What does not fit a GPU of `total` bytes, in words; None where all does."""
    tokens = costs.cache_tokens(load, total)
    if tokens < load.row:
        need = sum(costs.vllm_bytes(load).values()) + costs.CONTEXT
        return (
            f"vLLM's share of {load.share:.2f} is {load.share * total / 1e9:.1f} GB a GPU, it "
            f"takes {need / 1e9:.1f} without a KV cache, and what is left holds "
            f"{max(0, tokens):,} tokens where a row has up to {load.row:,}"
        )
    for phase, parts in costs.phases(load, total).items():
        if (needed := sum(parts.values())) > total:
            return (
                f"to {phase} takes {needed / 1e9:.1f} GB a GPU, and it has {total / 1e9:.1f} "
                f"(the base {parts['base'] / 1e9:.1f}, members and moments "
                f"{12e-9 * load.slots * load.member:.1f})"
            )
    return None


def mend(load: Load, total: float) -> str:
    """The settings, as few as will do, with which the load fits; by trying."""
    shard = [{"shard": True}] if load.vllm and load.ranks > 1 and not load.shard else []
    rollout = "actor_rollout_ref.rollout."
    shares = [x / 100 for x in range(5 * math.ceil(20 * load.share + 1e-6), 95, 5)]
    ways: list[tuple[str, list[dict[str, Any]]]] = [
        ("population.shard=true", shard),
        ("{rollout}gpu_memory_utilization={share:.2f}", [{"share": share} for share in shares]),
        ("{rollout}max_num_seqs={sequences}", [{"sequences": 256}]),
        ("data.max_response_length={response}", [{"response": load.response // 2}]),
        ("population.lora.rank={rank}", [{"rank": load.rank // 2}]),
    ]
    heads = load.architecture.kv_heads
    cuts = [n for n in (2, 4, 8) if load.ranks % n == 0 and heads % n == 0]
    if load.vllm:
        key = "{rollout}tensor_model_parallel_size={parallel}"
        ways.insert(2, (key, [{"parallel": n} for n in cuts if n > load.parallel]))
    tried: list[tuple[list[str], Load]] = [([], load)]
    for words, changes in ways:
        tried += [
            ([*done, words], replace(known, **change))
            for done, known in tried
            for change in changes
        ]
    for all_words, changed in sorted(tried, key=lambda one: len(one[0])):
        if all_words and too_much(changed, total) is None:
            figures = {**vars(changed), "rollout": rollout}
            return "set " + " ".join(word.format(**figures) for word in all_words)
    return "take GPUs with more memory, a smaller base or fewer members"


def planned(load: Load, total: float, settings: PopulationSettings) -> Load:
    """The load with what is left to us: the base is shared out where only that makes it fit, and
    as many tokens keep their activations as fit then."""
    cut = replace(load, shard=True)
    ours = settings.shard is None and load.vllm and load.ranks > 1
    if ours and too_much(load, total) and not too_much(cut, total):
        load = cut
    ours = settings.keep_tokens is None and not too_much(load, total)
    return replace(load, keep=costs.kept_tokens(load, total)) if ours else load


def fit(config: Any, settings: PopulationSettings) -> None:
    """The sums of a real start, on GPUs. Sets what `planned` has decided.

    Raises:
        UserError: what does not fit, and the setting that mends it.
    """
    if OmegaConf.select(config, "trainer.device", default="cuda") != "cuda":
        return
    architecture = Architecture.of(surroundings.describe(config.actor_rollout_ref.model.path))
    machine = machine_of(config, settings)
    if architecture is None or machine.told:
        return
    total = machine.bytes_each
    load = planned(load_of(config, settings, architecture, machine.gpus), total, settings)
    if told := too_much(load, total):
        raise UserError(f"{told}; {mend(load, total)}")
    if load.shard and not settings.shard:
        print(
            "azr-population: population.shard=true, because the base does not fit otherwise: each "
            f"of {load.ranks} GPUs holds its part",
            flush=True,
        )
    # The trainer, in another process, reads the configuration.
    with open_dict(config):
        config.population.shard = settings.shard = load.shard
        config.population.keep_tokens = settings.keep_tokens = load.keep
