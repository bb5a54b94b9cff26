"""The dry run inside AZR: members, memory, counts of a step, and what would be refused.

`population.dry_run=true` prints it and ends. It needs the base's config.json and no GPU: told of
another machine (`population.gpu_memory`, `population.gpu`), it only notes what this one lacks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from azr_population.engines import memory
from azr_population.engines.memory import Architecture, Load
from azr_population.engines.optimizers import moments
from azr_population.engines.step_counts import StepCounts
from azr_population.errors import NotInstalled, UserError
from azr_population.hosts.azr import checks, overrides
from azr_population.hosts.azr.fitting import Machine, machine_of, plan_memory
from azr_population.hosts.azr.plan import AzrPlan, resolve
from azr_population.method.config_check import replacement_line
from azr_population.method.population import Population

PROMPT, RESPONSE, VALID = 1500, 1000, 2 / 3
"""Tokens that a prompt and a response have on average, and the share of proposals that are valid:
assumed, for counts only."""
SMALL = "examples/azr_coder7b_24gb.sh, examples/azr_coder3b_24gb.sh"


def dry_run(config: Any, plan: AzrPlan) -> tuple[list[str], bool]:
    """The page as lines, and whether the run could start."""
    on_gpus = plan if plan.engine.device == "cuda" else resolve(config, "cuda")
    lines = list(_who(config, on_gpus))
    missing, uninstalled = list(checks.missing(config)), []
    elsewhere = plan.settings.gpu is not None or plan.settings.gpu_memory is not None
    refused = []
    for check in (checks.check_config, checks.check_base):
        try:
            check(config, plan)
        except NotInstalled as error:
            uninstalled.append(str(error))
        except UserError as error:
            refused.append(str(error))
    # What samples and AZR itself may want the same vLLM: one line.
    here = [*checks.missing_gpus(config), *(uninstalled or checks.missing_vllm(config))]
    missing += [] if elsewhere else here
    architecture, kind = None, "without its config.json"
    try:
        described = checks.config_of_base(plan.engine.base)
        architecture, kind = Architecture.of(described), f"of the kind {described.model_type}"
    except UserError:
        pass  # `missing` has said why.
    if architecture is None:
        lines.append(f"memory and counts: not worked out for a base {kind} (docs/bases.md)")
    else:
        machine = machine_of(config, plan.settings)
        fitted, too_large = plan_memory(on_gpus, config, architecture, machine)
        assert fitted.layout is not None
        lines += _memory(fitted.layout, machine)
        if too_large:
            refused.append(too_large)
            if machine.bytes_each < 30e9:
                lines.append(f"for one GPU of 24 GB: {SMALL}")
        else:
            lines += _counts(config, plan, fitted.layout, machine)
    for reason, keys in overrides.unused(overrides.given(config)).items():
        lines.append(f"set and not used: {', '.join(map(_short, keys))} ({reason})")
    lines += [f"not on this machine: {line}" for line in here if elsewhere]
    lines += [f"missing: {line}" for line in missing]
    lines += [f"refused: {line}" for line in refused]
    ready = not missing and not refused
    lines.append(
        "nothing was started; leave out population.dry_run to play"
        if ready
        else "nothing was started, and nothing would be before that is mended"
    )
    return lines, ready


def _who(config: Any, plan: AzrPlan) -> Iterator[str]:
    settings, population = plan.settings, Population(plan.config, plan.domain)
    roster, kinds = population.roster, config.azr.problem_types
    gpus = int(config.trainer.n_gpus_per_node) * int(config.trainer.nnodes)
    a_member, (_, attempts, _) = plan.config.population.batch_size, _rows(config, plan)
    yield (
        f"{settings.name} on {plan.engine.base}: {', '.join(plan.engine.names)}; "
        f"{replacement_line(settings.evolution, settings.teachers, settings.students)}"
    )
    longest = config.data.max_prompt_length + config.data.max_response_length
    yield (
        f"a step: {a_member} rows a member, {a_member * len(roster):,} in all, "
        f"{a_member * len(roster) / gpus:,.0f} on each of {gpus} GPUs, of up to {longest:,} tokens "
        f"({', '.join(kinds)}); up to {attempts * len(kinds):,} attempts that estimate solve rates"
    )
    settings_of = population.hyperparameters()
    rates: dict[str, list[float]] = {}
    for member in roster:
        rates.setdefault(f"{member.role}s", []).append(settings_of[member.slot].lr)
    optimizer, _ = moments(settings.optimizer)
    listed = ", ".join(
        f"{role} " + " to ".join(f"{rate:.3g}" for rate in sorted({min(each), max(each)}))
        for role, each in rates.items()
    )
    yield (
        f"{optimizer}'s steps: {listed}; rank {settings.lora.rank}, alpha {settings.lora.alpha:g}, "
        f"importance weights up to {plan.engine.importance_sampling_cap:g}, seed {settings.seed}"
    )


def _rows(config: Any, plan: AzrPlan) -> tuple[int, int, int]:
    """Rows of each problem type in a step: proposals, attempts at all of them, answers to train."""
    roster, rows = plan.roster, plan.member_rows
    proposals = rows * len(roster.teachers)
    attempts = proposals * config.azr.reward.n_samples
    return proposals, attempts, rows * len(roster.students)


def _memory(load: Load, machine: Machine) -> Iterator[str]:
    """The table by phase, in GB."""
    total, phases = machine.bytes_each, memory.phases(load, machine.bytes_each)
    assumed = "" if machine.known else ", assumed: population.gpu_memory says what there will be"
    cut = f", population.shard_base: the learner's base cut over {load.ranks}" if load.shard else ""
    cut += f", vLLM's over {load.parallel}" if load.parallel > 1 else ""
    cut += ", population.offload: the learner leaves them to vLLM" if load.offload else ""
    yield (
        f"memory of each of {machine.gpus} GPUs, {total / 1e9:.1f} GB usable{assumed}{cut}; "
        f"rows of up to {load.row:,} tokens:"
    )
    names = list(dict.fromkeys(name for parts in phases.values() for name in parts))
    yield _cells("GB", phases)
    for name in names:
        yield _cells(name, [_gigabytes(parts.get(name)) for parts in phases.values()])
    sums = [sum(parts.values()) for parts in phases.values()]
    yield _cells("in all", map(_gigabytes, sums))
    yield _cells("left", [_gigabytes(total - used) for used in sums])
    tokens = memory.cache_tokens(load, total)
    if tokens > 0:
        yield (
            f"KV cache: {tokens:,} tokens of {load.architecture.cache * load.size / 1e3:.0f} kB, "
            f"{tokens / load.row:.1f} rows of full length or "
            f"{tokens // (PROMPT + RESPONSE):,} of {PROMPT + RESPONSE:,}"
        )
    if load.architecture.windowed:
        yield (
            f"{load.architecture.windowed} of {load.architecture.layers} layers look back "
            f"{load.architecture.window:,} tokens; their keys and values are counted whole, and "
            "vLLM may need less"
        )
    if load.keep:
        yield (
            f"an update keeps the activations of pieces of up to {load.keep:,} tokens "
            "(population.recompute_above_tokens), and runs the layers of a longer row again"
        )
    if load.vllm:
        share = memory.vllm_utilisation(load, total)
        yield (
            f"gpu_memory_utilization={load.share:g} is vLLM's own share; vLLM 0.8.5 is told "
            f"{share:.2f}, as it counts the learner too; of each GPU up to "
            f"{memory.host_bytes(load, total) / 1e9:.1f} GB are in the host's memory"
        )


def _counts(config: Any, plan: AzrPlan, load: Load, machine: Machine) -> Iterator[str]:
    """What a step asks for, and the least time that it can take."""
    settings = plan.settings
    kinds, samples = len(config.azr.problem_types), config.azr.reward.n_samples
    proposals, attempts, solved = (kinds * rows for rows in _rows(config, plan))
    response = min(RESPONSE, int(config.data.max_response_length))
    calls, valid = 2 if settings.merge_calls else 3 * kinds, round(attempts * VALID)
    step = StepCounts(calls, proposals, valid, solved, samples, PROMPT, response)
    costs = {
        "sampling": step.sampling(load),
        "updates": step.update(load, settings.kl_loss_coef > 0),
    }
    asked = "; ".join(
        f"{name} {cost.flops / 1e15:,.1f} PFLOP and {cost.bytes / 1e12:,.1f} TB"
        for name, cost in costs.items()
    )
    yield (
        f"counted for prompts of {PROMPT:,} tokens, answers of {response:,}, {VALID:.0%} valid "
        f"proposals: {calls} calls of the sampler a step, {step.generated / 1e6:,.1f} million "
        f"tokens generated, {step.trained / 1e6:,.1f} million trained on; {asked}"
    )
    device = machine.device
    speeds = {name: cost.seconds(device, machine.gpus) for name, cost in costs.items()}
    parts = ", ".join(f"{name} {seconds:,.0f}" for name, seconds in speeds.items())
    yield (
        f"roofline: at least {sum(speeds.values()):,.0f} s a step ({parts}) on {machine.gpus} "
        f"{device.name} at its data sheet's {device.flops / 1e12:.0f} TFLOPS and "
        f"{device.bandwidth / 1e12:.2f} TB/s, which no run reaches; executions of programs and "
        "moves between GPU and host come on top"
    )


def _cells(name: str, values: Any) -> str:
    return f"  {name:<20}" + "".join(f"{value:>10}" for value in values)


def _gigabytes(amount: float | None) -> str:
    return "-" if amount is None else f"{amount / 1e9:.1f}"


def _short(key: str) -> str:
    return key.removeprefix("actor_rollout_ref.")
