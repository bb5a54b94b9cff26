"""Whether an AZR command fits its GPUs, by `engines/memory.py`, and the settings that mend it or
make a step shorter."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

from omegaconf import OmegaConf, open_dict

from azr_population.config.inside_azr import PopulationSettings
from azr_population.engines.memory import (
    SEQUENCES,
    Architecture,
    Load,
    check_memory,
    fitted,
    kept_tokens,
)
from azr_population.errors import UserError
from azr_population.hosts.azr.environment import Machine, describe, machine_of
from azr_population.hosts.azr.settings import engine_settings, learner_config

ROLLOUT = "actor_rollout_ref.rollout."


def load_of(
    config: Any, settings: PopulationSettings, architecture: Architecture, gpus: int
) -> Load:
    """What each GPU holds and computes."""
    split = settings.placement == "split"
    return Load.of(
        architecture,
        engine_settings(config, settings, "cuda"),
        int(config.data.max_prompt_length),
        int(config.data.max_response_length),
        slots=max(settings.teachers, settings.students) if split else None,
        ranks=max(1, gpus // 2 if split else gpus),
    )


def suggest_fix(load: Load, total: float) -> str:
    """The settings, as few as will do, with which the load fits; by trying."""
    heads, alone = load.architecture.heads, load.parallel == 1 and not load.shard
    cuts = [n for n in (1, 2, 4, 8) if load.ranks % n == 0 and heads % n == 0]
    ways: list[tuple[str, list[dict[str, Any]]]] = [
        (
            "actor_rollout_ref.model.enable_gradient_checkpointing=true",
            [{"checkpointing": True}] * (not load.checkpointing),
        ),
        ("population.shard_base=true", [{"shard": True}] * (load.ranks > 1 and not load.shard)),
        ("population.offload=true", [{"offload": True}] * (not load.offload)),
        (f"{ROLLOUT}gpu_memory_utilization={{share:.2f}}", [{"share": x} for x in _shares(load)]),
        (
            f"{ROLLOUT}tensor_model_parallel_size={{parallel}}",
            [{"parallel": n} for n in cuts if n != load.parallel],
        ),
        (f"{ROLLOUT}max_num_seqs={{sequences}}", [{"sequences": SEQUENCES}]),
        ("data.max_response_length={response}", [{"response": load.response // 2}]),
        ("population.lora.rank={rank}", [{"rank": load.rank // 2}]),
        ("population.quantization=nf4", [{"nf4": True}] * (alone and not load.nf4)),
    ]
    if not load.vllm:
        ways = [way for way in ways if way[0].startswith(("data.", "population.lora"))] + ways[:1]
    choices = [[None, *((words, change) for change in changes)] for words, changes in ways]
    # As few as will do, and of as many the earlier ones, which cost less.
    tried = sorted(
        product(*choices), key=lambda each: (sum(map(bool, each)), [not change for change in each])
    )
    for changes in tried:
        named = [change for change in changes if change]
        changed = replace(load, **{k: v for _, change in named for k, v in change.items()})
        if changed.nf4 and (changed.shard or changed.parallel > 1):
            continue
        if named and check_memory(changed, total) is None:
            return "set " + " ".join(words.format(**vars(changed)) for words, _ in named)
    return "take GPUs with more memory, a smaller base or fewer members"


def faster(
    load: Load, total: float, seconds: Callable[[Load], float]
) -> tuple[str, float, float] | None:
    """vLLM's settings with which a step takes at least a twentieth less, if there are any, and its
    seconds with them and without."""
    if not load.vllm:
        return None
    now = seconds(load)
    best: tuple[float, Load] | None = None
    shares, rows = [load.share, *_shares(load)], {SEQUENCES, load.sequences}
    for share, sequences, offload in product(shares, rows, {load.offload, True}):
        changed = replace(load, share=share, sequences=sequences, offload=offload)
        if check_memory(changed, total) is None:
            took = seconds(changed)
            # Not for a second: a share that is larger than needed is room that is missed elsewhere.
            if best is None or took < 0.99 * best[0]:
                best = took, changed
    if best is None or best[0] > 0.95 * now:
        return None
    settings = {
        f"{ROLLOUT}gpu_memory_utilization=": ("share", f"{best[1].share:.2f}"),
        f"{ROLLOUT}max_num_seqs=": ("sequences", str(best[1].sequences)),
        "population.offload=": ("offload", "true"),
    }
    differing = (
        f"{key}{value}"
        for key, (field, value) in settings.items()
        if getattr(best[1], field) != getattr(load, field)
    )
    return " ".join(differing), best[0], now


def plan_memory(
    config: Any, settings: PopulationSettings, architecture: Architecture, machine: Machine
) -> tuple[Load, str | None]:
    """The load with what is left to us, and why it does not fit, with the way out: the base is
    shared out, or the learner offloaded, where only that makes it fit, and as many tokens keep
    their activations as fit then."""
    total = machine.bytes_each
    load, learner = (
        load_of(config, settings, architecture, machine.gpus),
        learner_config(config, settings),
    )
    may_shard = learner.shard_base is None and load.ranks > 1 and not load.nf4
    if load.vllm:
        load = fitted(load, total, may_shard, may_offload=learner.offload is None)
    if lacking := check_memory(load, total):
        return load, f"{lacking}; {suggest_fix(load, total)}"
    if settings.recompute_above_tokens is None:
        load = replace(load, keep=kept_tokens(load, total))
    return load, None


def check_gpus(config: Any, settings: PopulationSettings) -> None:
    """The sums of a real start, on GPUs. Sets what `plan_memory` has decided.

    Raises:
        UserError: what does not fit, and the setting that mends it.
    """
    if OmegaConf.select(config, "trainer.device", default="cuda") != "cuda":
        return
    architecture = Architecture.of(describe(config.actor_rollout_ref.model.path))
    machine = machine_of(config, settings)
    offload = learner_config(config, settings).offload
    if architecture is None or not machine.known:
        chosen: dict[str, Any] = {"offload": offload}
    else:
        load, refused = plan_memory(config, settings, architecture, machine)
        if refused:
            raise UserError(refused)
        for key, before, after in (
            ("shard_base", settings.shard_base, load.shard),
            ("offload", offload, load.offload),
        ):
            if after and not before:
                print(
                    f"azr-population: population.{key}=true, because the run does not fit "
                    "otherwise",
                    flush=True,
                )
        chosen = {
            "shard_base": load.shard,
            "offload": load.offload,
            "recompute_above_tokens": load.keep,
        }
    # The trainer, in another process, reads the configuration.
    with open_dict(config):
        for key, value in chosen.items():
            setattr(settings, key, value)
            config.population[key] = value


def _shares(load: Load) -> list[float]:
    """Larger shares of the GPU for vLLM, in steps of 0.05."""
    return [x / 100 for x in range(5 * math.ceil(20 * load.share + 1e-6), 95, 5)]
