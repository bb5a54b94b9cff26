"""Whether an AZR run can start: its plan checked, and made to fit its GPUs by `engines/memory.py`,
with the settings that mend what does not. A start and a dry run are prepared alike."""

from __future__ import annotations

import math
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any

from azr_population.config.inside_azr import PopulationSettings
from azr_population.engines.architecture import Architecture
from azr_population.engines.memory import (
    GIB,
    SEQUENCES,
    SLEEPS,
    GpuLayout,
    check_memory,
    kept_tokens,
)
from azr_population.engines.step_counts import DEVICES, Device, device_of
from azr_population.errors import NotInstalled, UserError
from azr_population.hosts.azr import checks, overrides
from azr_population.hosts.azr.azr_plan import DECIDED, AzrPlan

_DRIVER = 0.993
"""Share of nvidia-smi's memory that torch sees."""

SETTINGS = {
    "checkpointing": "actor_rollout_ref.model.enable_gradient_checkpointing=true",
    "offload": "population.offload=true",
    "vllm_fraction": "actor_rollout_ref.rollout.gpu_memory_utilization={vllm_fraction:.2f}",
    "parallel": "actor_rollout_ref.rollout.tensor_model_parallel_size={parallel}",
    "sequences": "actor_rollout_ref.rollout.max_num_seqs={sequences}",
    "response": "data.max_response_length={response}",
    "rank": "population.lora.rank={rank}",
    "nf4": "population.quantization=nf4",
}
"""Field of a layout -> the setting that changes it; those that cost least come first."""


@dataclass(frozen=True)
class Machine:
    """GPUs as far as they are known: how many, of what kind, and each one's bytes for torch."""

    gpus: int
    device: Device
    bytes_each: float
    known: bool


def machine_of(config: Any, settings: PopulationSettings) -> Machine:
    """The machine of the command, `population.gpu` and `population.gpu_memory`, or with this
    machine's smallest GPU. Raises UserError: no such kind."""
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


def find_fit(layout: GpuLayout, total: float, fields: Sequence[str]) -> GpuLayout | None:
    """The layout that fits with the fewest of these fields changed, by preference the first."""
    fractions = range(5 * math.ceil(20 * layout.vllm_fraction + 1e-6), 95, 5)
    ways = [n for n in (1, 2, 4, 8) if not (layout.ranks % n or layout.architecture.heads % n)]
    values: dict[str, list[Any]] = {
        "checkpointing": [True],
        "offload": [True],
        "vllm_fraction": [percent / 100 for percent in fractions],
        "parallel": ways,
        "sequences": [SEQUENCES],
        "response": [layout.response // 2],
        "rank": [layout.rank // 2],
        "nf4": [True],
    }
    others = {
        name: [v for v in values[name] if v and v != getattr(layout, name)] for name in fields
    }
    for count in range(len(fields) + 1):
        for names in combinations(fields, count):
            for chosen in product(*(others[name] for name in names)):
                changed = replace(layout, **dict(zip(names, chosen, strict=True)))
                impossible = changed.nf4 and changed.parallel > 1
                if not impossible and check_memory(changed, total) is None:
                    return changed
    return None


def settings_of(changed: GpuLayout, layout: GpuLayout) -> str:
    """The settings that make the layout the changed one."""
    return " ".join(
        SETTINGS[name].format(**vars(changed))
        for name in SETTINGS
        if getattr(changed, name) != getattr(layout, name)
    )


def suggest_fix(layout: GpuLayout, total: float) -> str:
    """The settings, as few as possible, with which a layout fits that does not."""
    fields = tuple(SETTINGS) if layout.vllm else ("checkpointing", "response", "rank")
    if changed := find_fit(layout, total, fields):
        return f"set {settings_of(changed, layout)}"
    return "take GPUs with more memory, a smaller base or fewer members"


def plan_memory(
    plan: AzrPlan, command: Any, architecture: Architecture, machine: Machine
) -> tuple[AzrPlan, str | None]:
    """The plan with its layout, and why it does not fit, with the way out: vLLM sleeps while
    members learn only where both do not fit awake, the learner is offloaded where only that makes
    it fit, and micro-batches keep their products up to as many tokens as fit then."""
    total, learner = machine.bytes_each, plan.engine.learner
    prompt, response = int(command.data.max_prompt_length), int(command.data.max_response_length)
    layout = GpuLayout.of(architecture, plan.engine, prompt, response, ranks=max(1, machine.gpus))
    awake = replace(layout, sleeps=False)
    free = SLEEPS not in plan.engine.vllm and not layout.offload
    if layout.vllm and free and not check_memory(awake, total):
        layout = awake
    elif layout.vllm and learner.offload is None:
        layout = find_fit(layout, total, ["offload"]) or layout
    lacking = check_memory(layout, total)
    if not lacking and plan.settings.recompute_above_tokens is None:
        layout = replace(layout, no_recompute_tokens=kept_tokens(layout, total))
    values = dict(zip(DECIDED, (layout.offload, layout.no_recompute_tokens), strict=True))
    vllm = {SLEEPS: False} if layout.vllm and not layout.sleeps else {}
    engine = replace(
        plan.engine,
        learner=learner.model_copy(update=values),
        vllm={**plan.engine.vllm, **vllm},
    )
    refused = f"{lacking}; {suggest_fix(layout, total)}" if lacking else None
    return replace(plan, engine=engine, layout=layout), refused


@dataclass(frozen=True)
class Start:
    """A plan, held against its command, its base and its machine."""

    plan: AzrPlan
    """The plan to play; where the GPUs are known, with settings that make it fit."""
    machine: Machine
    layout: GpuLayout | None
    """Contents of each of the machine's GPUs; None: not worked out."""
    why_no_layout: str
    faults: list[str]
    """Reasons why the run cannot start, with the way out, in the order in which to mend them."""
    lacking_here: list[str]
    """Faults of this machine, which need not be the one that the run is for."""
    notes: list[str]
    """Lines that are printed as the run starts."""


def prepare(command: Any, plan: AzrPlan) -> Start:
    """Makes all checks that need no model. Raises UserError: `population.gpu` names no GPU."""
    faults, here = list[str](), list[str]()
    for fault in checks.faults(command, plan):
        (here if isinstance(fault, NotInstalled) else faults).append(str(fault))
    faults += checks.missing(command)
    # What samples and AZR itself may want the same vLLM: one line.
    here = [*checks.missing_gpus(command), *(here or checks.missing_vllm(command))]
    machine = machine_of(command, plan.settings)
    fitted, too_large, why_no_layout = plan, None, "for CPUs"
    if plan.engine.device == "cuda":
        why_no_layout = "for a base without its config.json"
        with suppress(UserError):  # `missing` says so
            described = checks.config_of_base(plan.engine.base)
            why_no_layout = f"for a base of the kind {described.model_type} (docs/bases.md)"
            if (architecture := Architecture.of(described)) is not None:
                fitted, too_large = plan_memory(plan, command, architecture, machine)
    notes = [
        f"set and not used: {', '.join(keys)} ({reason})"
        for reason, keys in overrides.unused(overrides.given(command)).items()
    ]
    notes += checks.unstarted_loggers(command)
    if too_large:
        (faults if machine.known else notes).append(too_large)
    elif machine.known and fitted.decided["offload"] and not plan.decided["offload"]:
        notes.append("population.offload=true, because the run does not fit otherwise")
    played = fitted if machine.known else plan
    return Start(played, machine, fitted.layout, why_no_layout, faults, here, notes)
