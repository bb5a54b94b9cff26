"""Whether an AZR command fits its GPUs, by `engines/memory.py`, and the settings that mend it."""

from __future__ import annotations

import math
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from azr_population.config.inside_azr import PopulationSettings
from azr_population.engines.memory import (
    GIB,
    SEQUENCES,
    Architecture,
    Load,
    check_memory,
    kept_tokens,
)
from azr_population.engines.step_counts import DEVICES, Device, device_of
from azr_population.errors import UserError
from azr_population.hosts.azr.checks import config_of_base
from azr_population.hosts.azr.plan import DECIDED, AzrPlan

_DRIVER = 0.993
"""What torch sees of the memory that nvidia-smi tells."""

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


@dataclass(frozen=True)
class Machine:
    """GPUs as far as they are known: how many, of what kind, and each one's bytes for torch."""

    gpus: int
    device: Device
    bytes_each: float
    known: bool


def machine_of(config: Any, settings: PopulationSettings) -> Machine:
    """As the command, `population.gpu` and `population.gpu_memory` say, or as this machine's
    smallest GPU is. Raises UserError: no such kind."""
    gpus = int(config.trainer.n_gpus_per_node) * int(config.trainer.nnodes)
    name, gib = settings.gpu, settings.gpu_memory
    if name is not None and name not in DEVICES:
        raise UserError(f"population.gpu={name} is unknown; choose from {', '.join(DEVICES)}")
    if name is not None or gib is not None:
        device = DEVICES[name] if name is not None else device_of(gib or 0.0)
        return Machine(gpus, device, (gib or device.memory) * GIB, True)
    command = ["nvidia-smi", "--query-gpu=memory.total,name", "--format=csv,noheader,nounits"]
    try:
        listed = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
        lines = [line.partition(", ") for line in listed.stdout.splitlines()]
        mib, product = min((float(mib), product) for mib, _, product in lines)
    except (OSError, ValueError, subprocess.SubprocessError):
        return Machine(gpus, Device(), Device().memory * GIB, False)
    return Machine(gpus, device_of(mib / 1024, product), mib * _DRIVER * 2**20, True)


def vary(load: Load, fields: Sequence[str]) -> Iterator[Load]:
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
    choices = [sorted({getattr(load, name), *filter(None, others[name])}) for name in fields]
    for values in product(*choices):
        changed = replace(load, **dict(zip(fields, values, strict=True)))
        if not (changed.nf4 and (changed.shard or changed.parallel > 1)):
            yield changed


def find_fit(load: Load, total: float, fields: Sequence[str]) -> Load | None:
    """The load that fits with the fewest of these fields changed, the first ones by preference."""

    def cost(changed: Load) -> tuple[int, list[bool]]:
        same = [getattr(changed, name) == getattr(load, name) for name in fields]
        return -sum(same), same

    loads = sorted(vary(load, fields), key=cost)
    return next((changed for changed in loads if check_memory(changed, total) is None), None)


def settings_of(changed: Load, load: Load, fields: Iterable[str] = SETTINGS) -> str:
    """The settings that make the load the changed one."""
    return " ".join(
        SETTINGS[name].format(**vars(changed))
        for name in fields
        if getattr(changed, name) != getattr(load, name)
    )


def suggest_fix(load: Load, total: float) -> str:
    """The settings, as few as possible, with which a load fits that does not."""
    fields = tuple(SETTINGS) if load.vllm else ("checkpointing", "response", "rank")
    if changed := find_fit(load, total, fields):
        return f"set {settings_of(changed, load)}"
    return "take GPUs with more memory, a smaller base or fewer members"


def plan_memory(
    plan: AzrPlan, command: Any, architecture: Architecture, machine: Machine
) -> tuple[AzrPlan, str | None]:
    """The plan with its layout, and why it does not fit, with the way out: the base is shared out,
    or the learner offloaded, where only that makes it fit, and as many tokens keep their
    activations as fit then."""
    total, learner = machine.bytes_each, plan.engine.learner
    prompt, response = int(command.data.max_prompt_length), int(command.data.max_response_length)
    load = Load.of(architecture, plan.engine, prompt, response, ranks=max(1, machine.gpus))
    ours = {"shard": learner.shard_base, "offload": learner.offload}
    if load.vllm:
        load = find_fit(load, total, [k for k, given in ours.items() if given is None]) or load
    lacking = check_memory(load, total)
    if not lacking and plan.settings.recompute_above_tokens is None:
        load = replace(load, keep=kept_tokens(load, total))
    values = dict(zip(DECIDED, (load.shard, load.offload, load.keep), strict=True))
    engine = replace(plan.engine, learner=learner.model_copy(update=values))
    refused = f"{lacking}; {suggest_fix(load, total)}" if lacking else None
    return replace(plan, engine=engine, layout=load), refused


def fit(command: Any, plan: AzrPlan) -> AzrPlan:
    """The sums of a real start, on GPUs: the plan with what makes it fit. Raises UserError: what
    does not fit, and the setting that mends it."""
    if plan.engine.device != "cuda":
        return plan
    architecture = Architecture.of(config_of_base(plan.engine.base))
    machine = machine_of(command, plan.settings)
    if architecture is None or not machine.known:
        return plan
    fitted, refused = plan_memory(plan, command, architecture, machine)
    if refused:
        raise UserError(refused)
    for key in ("shard_base", "offload"):
        if fitted.decided[key] and not plan.decided[key]:
            print(
                f"azr-population: population.{key}=true, because the run does not fit otherwise",
                flush=True,
            )
    return fitted
