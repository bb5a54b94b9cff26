"""Whether an AZR command fits its GPUs, by `engines/memory.py`, and the settings that mend it or
make a step shorter."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
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

SETTINGS = {
    "checkpointing": "actor_rollout_ref.model.enable_gradient_checkpointing=true",
    "shard": "population.shard_base=true",
    "offload": "population.offload=true",
    "share": "actor_rollout_ref.rollout.gpu_memory_utilization={share:.2f}",
    "parallel": "actor_rollout_ref.rollout.tensor_model_parallel_size={parallel}",
    "sequences": "actor_rollout_ref.rollout.max_num_seqs={sequences}",
    "response": "data.max_response_length={response}",
    "rank": "population.lora.rank={rank}",
    "nf4": "population.quantization=nf4",
}
"""Field of a load -> the setting that changes it; those that cost least come first."""


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


def changed_loads(load: Load, fields: Sequence[str]) -> Iterator[Load]:
    """The load with every combination of values that these fields could have."""
    heads, alone = load.architecture.heads, load.parallel == 1 and not load.shard
    others: dict[str, list[Any]] = {
        "checkpointing": [True],
        "shard": [load.ranks > 1],
        "offload": [True],
        "share": [x / 100 for x in range(5 * math.ceil(20 * load.share + 1e-6), 95, 5)],
        "parallel": [n for n in (1, 2, 4, 8) if load.ranks % n == 0 and heads % n == 0],
        "sequences": [SEQUENCES],
        "response": [load.response // 2],
        "rank": [load.rank // 2],
        "nf4": [alone],
    }
    choices = [
        sorted({getattr(load, name), *(value for value in others[name] if value)})
        for name in fields
    ]
    for values in product(*choices):
        changed = replace(load, **dict(zip(fields, values, strict=True)))
        if not (changed.nf4 and (changed.shard or changed.parallel > 1)):
            yield changed


def settings_of(changed: Load, load: Load, fields: Iterable[str]) -> str:
    """The settings that make the load the changed one."""
    return " ".join(
        SETTINGS[name].format(**vars(changed))
        for name in fields
        if getattr(changed, name) != getattr(load, name)
    )


def suggest_fix(load: Load, total: float) -> str:
    """The settings, as few as possible, with which the load fits."""
    fields = tuple(SETTINGS) if load.vllm else ("checkpointing", "response", "rank")

    def cost(changed: Load) -> tuple[int, list[bool]]:
        same = [getattr(changed, name) == getattr(load, name) for name in fields]
        return -sum(same), same

    for changed in sorted(changed_loads(load, fields), key=cost):
        if changed != load and check_memory(changed, total) is None:
            return f"set {settings_of(changed, load, fields)}"
    return "take GPUs with more memory, a smaller base or fewer members"


def faster(
    load: Load, total: float, seconds: Callable[[Load], float]
) -> tuple[str, float, float] | None:
    """vLLM's settings with which a step takes at least a twentieth less, if there are any, and its
    seconds with them and without."""
    if not load.vllm:
        return None
    now = seconds(load)
    best, least = load, math.inf
    fields = ("share", "sequences", "offload")
    for changed in changed_loads(load, fields):
        if check_memory(changed, total) is None and (took := seconds(changed)) < 0.99 * least:
            # Not for a second: a larger share than needed is room that is missed elsewhere.
            best, least = changed, took
    return None if least > 0.95 * now else (settings_of(best, load, fields), least, now)


def plan_memory(
    config: Any, settings: PopulationSettings, architecture: Architecture, machine: Machine
) -> tuple[Load, str | None]:
    """The load with what is left to us, and why it does not fit, with the way out: the base is
    shared out, or the learner offloaded, where only that makes it fit, and as many tokens keep
    their activations as fit then."""
    total = machine.bytes_each
    load = load_of(config, settings, architecture, machine.gpus)
    learner = learner_config(config, settings)
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
